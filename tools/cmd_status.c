/* SPDX-License-Identifier: Apache-2.0 */
/* weft status and weft top: how a running job is, once and again and again. Both ask the pserver
 * over its own port (tools/watch/client.h). Thread: main. */
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/url.h"
#include "status/document.h"
#include "tools/command.h"
#include "tools/watch/client.h"
#include "tools/watch/screen.h"
#include "transport/address.h"

#define PORT 7164
#define COLUMNS 120u
#define BEFORE_NS (WF_NS_PER_S / 2) /* between the two pictures that a rate is made of */

#define EXIT_CODES                                                                                 \
	"   0  it has answered\n"                                                                  \
	"  64  an option is wrong\n"                                                               \
	"  69  no answer: nothing listens there, it is no pserver of this version, or the\n"       \
	"      job has a secret that --secret_file has not"

struct settings {
	bool json;
	const char *secret_file;
	uint64_t timeout_ns;
	uint64_t interval_ns;
	uint64_t count;
	const char *colour;
};

#define AT(field) .offset = offsetof(struct settings, field)
#define SECRET                                                                                     \
	{                                                                                          \
		.name = "secret_file", .type = WF_OPTION_STRING, AT(secret_file),                  \
		.metavar = "FILE",                                                                 \
		.help = "The file with the job's secret, where the job has one: who lacks it is "  \
			"told "                                                                    \
			"nothing."                                                                 \
	}
#define TIMEOUT                                                                                    \
	{                                                                                          \
		.name = "timeout", .type = WF_OPTION_DURATION, AT(timeout_ns), .initial = "5s",    \
		.min = WF_NS_PER_MS, .max = 3600 * WF_NS_PER_S,                                    \
		.help = "How long to wait for the connection, and for an answer."                  \
	}
#define COLOUR                                                                                     \
	{                                                                                          \
		.name = "color", .type = WF_OPTION_CHOICE, AT(colour), .initial = "auto",          \
		.choices = "auto|always|never",                                                    \
		.help = "Whether to use colours. auto: on a terminal, unless NO_COLOR is set."     \
	}

static const struct wf_option status_table[] = {
	{.name = "json",
	 .type = WF_OPTION_BOOL,
	 AT(json),
	 .help = "Print one JSON object, the same as the page's /api/v1/status."},
	SECRET,
	TIMEOUT,
	COLOUR,
};

static const struct wf_option top_table[] = {
	{.name = "interval",
	 .type = WF_OPTION_DURATION,
	 AT(interval_ns),
	 .initial = "1s",
	 .min = WF_NS_PER_S / 5,
	 .max = 3600 * WF_NS_PER_S,
	 .help = "Time between two looks."},
	{.name = "count",
	 .type = WF_OPTION_U64,
	 AT(count),
	 .initial = "0",
	 .help = "End after so many looks. 0: not before it is stopped."},
	SECRET,
	TIMEOUT,
	COLOUR,
};

static const struct wf_help status_help = {
	.usage = "weft status [HOST:PORT]",
	.about = "Asks a running pserver how its job is, and prints it: the job, its trainers and "
		 "where the time of their steps goes, lanes, tables, memory, snapshots, and what "
		 "came and went. HOST:PORT is the pserver's first port, 127.0.0.1:7164 unless "
		 "given. The job needs no option for it, and is not disturbed. Times of steps are "
		 "measured from the first question on, or from the start with --status or "
		 "--stats_period of the pserver.",
	.examples = "  weft status\n"
		    "  weft status node7:7164 --json\n"
		    "  weft status node7 --secret_file=job.secret",
	.exit_codes = EXIT_CODES,
};

static const struct wf_help top_help = {
	.usage = "weft top [HOST:PORT]",
	.about =
		"Shows what weft status prints, again and again, until q or Ctrl-C. Where standard "
		"output is no terminal it prints one row of figures for each look.",
	.examples = "  weft top node7:7164\n"
		    "  weft top --interval=5s > rows.txt",
	.exit_codes = EXIT_CODES,
};

/* What both commands have while they run. */
struct watch {
	const struct settings *set;
	struct wf_env *env;
	struct wf_watch_opts opts;
	struct wf_watch_client *client; /* NULL: not connected */
	struct wf_picture now, before;
	bool has_before;
	struct wf_summary *summary;
};

static enum weft_status
watch_open(struct watch *watch, const struct wf_options *options)
{
	const char *where = options->positional_count > 0 ? options->positional[0] : NULL;
	watch->set = options->target;
	enum weft_status st = wf_host_parse(where != NULL ? where : wf_address_loopback(), PORT,
					    &watch->opts.host);
	st = st == WEFT_OK ? wf_env_system_create(WF_LOG_ERROR, STDERR_FILENO, &watch->env) : st;
	if (st != WEFT_OK) {
		return st;
	}
	watch->summary = wf_zalloc(wf_env_memory(), sizeof(*watch->summary));
	watch->opts.env = watch->env;
	watch->opts.secret_file = watch->set->secret_file;
	watch->opts.timeout_ns = watch->set->timeout_ns;
	return watch->summary != NULL ? WEFT_OK
				      : wf_fail(WEFT_NOMEM, "%zu bytes", sizeof(*watch->summary));
}

static void
watch_close(struct watch *watch)
{
	wf_watch_client_close(watch->client);
	wf_picture_fini(&watch->now);
	wf_picture_fini(&watch->before);
	wf_free(wf_env_memory(), watch->summary, sizeof(*watch->summary));
	wf_env_system_destroy(watch->env);
}

/* Takes a picture. After a failure the next look connects anew. */
static enum weft_status
look(struct watch *watch)
{
	const struct wf_watch_ask ask = {.question = WF_WATCH_STATUS};
	enum weft_status st =
		watch->client == NULL ? wf_watch_open(&watch->opts, &watch->client) : WEFT_OK;
	struct wf_picture last = watch->now;
	watch->now = watch->before;
	watch->before = last;
	wf_picture_clear(&watch->now);
	st = st == WEFT_OK ? wf_watch_request(watch->client, &ask, &watch->now) : st;
	if (st != WEFT_OK) {
		const struct wf_error error = *wf_error_record();
		wf_watch_client_close(watch->client);
		watch->client = NULL;
		watch->has_before = false;
		return wf_fail(st, "%s", error.text);
	}
	wf_summary_make(&watch->now, watch->has_before ? &watch->before : NULL, watch->summary);
	watch->has_before = true;
	return WEFT_OK;
}

static bool
wants_colour(const char *choice)
{
	const char *no_colour = getenv("NO_COLOR");
	const char *term = getenv("TERM");
	if (strcmp(choice, "auto") != 0) {
		return strcmp(choice, "always") == 0;
	}
	return isatty(STDOUT_FILENO) == 1 && (no_colour == NULL || no_colour[0] == '\0') &&
	       (term == NULL || strcmp(term, "dumb") != 0);
}

static struct wf_screen
screen_of(const struct watch *watch)
{
	struct winsize size = {0};
	struct wf_screen screen = {.out = stdout,
				   .has_colour = wants_colour(watch->set->colour),
				   .columns = COLUMNS,
				   .end = "\n"};
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
		screen.columns = size.ws_col;
		screen.rows = size.ws_row;
	}
	return screen;
}

/* ---- weft status ---- */

static enum weft_status
show_once(const struct wf_options *options)
{
	struct watch watch = {0};
	enum weft_status st = watch_open(&watch, options);
	st = st == WEFT_OK ? look(&watch) : st;
	if (st == WEFT_OK) { /* rates are of the time between two looks */
		wf_wait(watch.env, -1, wf_now_ns(watch.env) + BEFORE_NS);
		st = look(&watch);
	}
	if (st == WEFT_OK && watch.set->json) {
		wf_document_write(&watch.now, watch.summary, NULL, stdout);
	} else if (st == WEFT_OK) {
		struct wf_screen screen = screen_of(&watch);
		screen.rows = 0;
		wf_screen_show(&screen, &watch.now, watch.summary);
	}
	const struct wf_error error = *wf_error_record();
	watch_close(&watch);
	return st == WEFT_OK ? st : wf_fail(st, "%s", error.text);
}

int
wf_cmd_status(int argc, char **argv)
{
	struct settings set = {0};
	const char *where[1] = {NULL};
	enum wf_option_origin origin[WF_ARRAY_COUNT(status_table)];
	const char *env_name[WF_ARRAY_COUNT(status_table)];
	struct wf_options options = {
		.table = status_table,
		.option_count = (unsigned)WF_ARRAY_COUNT(status_table),
		.program = "weft status",
		.help = &status_help,
		.target = &set,
		.origin = origin,
		.env_name = env_name,
		.positional = where,
		.positional_max = WF_ARRAY_COUNT(where),
	};
	return wf_command_run(show_once, &options, argc, argv);
}

/* ---- weft top ---- */

/* The terminal as it is taken over, and was before. */
struct terminal {
	bool is_one;
	bool has_input;
	struct termios before;
	int signal_fd;
};

static enum weft_status
terminal_open(struct terminal *terminal)
{
	sigset_t signals;
	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGHUP);
	sigaddset(&signals, SIGWINCH);
	(void)sigprocmask(SIG_BLOCK, &signals, NULL);
	terminal->signal_fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
	if (terminal->signal_fd < 0) {
		return wf_fail(WEFT_IO, "no descriptor for signals");
	}
	terminal->is_one = isatty(STDOUT_FILENO) == 1;
	terminal->has_input = terminal->is_one && tcgetattr(STDIN_FILENO, &terminal->before) == 0;
	if (terminal->has_input) {
		struct termios raw = terminal->before;
		raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
		(void)tcsetattr(STDIN_FILENO, TCSANOW, &raw);
	}
	if (terminal->is_one) { /* another screen, without a cursor */
		(void)fputs("\033[?1049h\033[?25l", stdout);
		(void)fflush(stdout);
	}
	return WEFT_OK;
}

static void
terminal_close(struct terminal *terminal)
{
	if (terminal->is_one) {
		(void)fputs("\033[?25h\033[?1049l", stdout);
		(void)fflush(stdout);
	}
	if (terminal->has_input) {
		(void)tcsetattr(STDIN_FILENO, TCSANOW, &terminal->before);
	}
	if (terminal->signal_fd >= 0) {
		(void)close(terminal->signal_fd);
	}
}

/* Waits for so long, or until something is to be done at once. Returns whether to go on. */
static bool
pause_for(struct watch *watch, const struct terminal *terminal, uint64_t until_ns)
{
	struct pollfd fds[] = {
		{.fd = terminal->signal_fd, .events = POLLIN},
		{.fd = terminal->has_input ? STDIN_FILENO : -1, .events = POLLIN},
	};
	uint64_t now_ns = wf_now_ns(watch->env);
	int ms = now_ns < until_ns ? (int)((until_ns - now_ns) / WF_NS_PER_MS) + 1 : 0;
	if (poll(fds, WF_ARRAY_COUNT(fds), ms) <= 0) {
		return true;
	}
	struct signalfd_siginfo info;
	if (read(terminal->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		return info.ssi_signo == SIGWINCH;
	}
	char key = ' ';
	return read(STDIN_FILENO, &key, 1) == 1 && key != 'q' && key != 'Q';
}

static void
draw(const struct watch *watch, enum weft_status st)
{
	struct wf_screen screen = screen_of(watch);
	screen.end = "\033[K\n";
	(void)fputs("\033[H", stdout);
	if (st != WEFT_OK) {
		(void)fprintf(stdout, "%.*s\033[K\n", (int)screen.columns, weft_last_error());
	} else {
		wf_screen_show(&screen, &watch->now, watch->summary);
	}
	(void)fputs("\033[J", stdout);
	(void)fflush(stdout);
}

static enum weft_status
show_again(const struct wf_options *options)
{
	struct watch watch = {0};
	struct terminal terminal = {.signal_fd = -1};
	enum weft_status st = watch_open(&watch, options);
	st = st == WEFT_OK ? look(&watch) : st;
	st = st == WEFT_OK ? terminal_open(&terminal) : st;
	const struct wf_error error = *wf_error_record();
	for (uint64_t i = 0; st == WEFT_OK; i++) {
		uint64_t next_ns = wf_now_ns(watch.env) + watch.set->interval_ns;
		enum weft_status seen = i > 0 ? look(&watch) : WEFT_OK;
		if (terminal.is_one) {
			draw(&watch, seen);
		} else if (seen != WEFT_OK) {
			(void)printf("%s\n", weft_last_error());
		} else if (i > 0) { /* the first look has no rates */
			wf_screen_row(stdout, watch.summary, i == 1);
		}
		if (i == watch.set->count && i > 0) {
			break;
		}
		if (!pause_for(&watch, &terminal, next_ns) || ferror(stdout) != 0) {
			break;
		}
	}
	terminal_close(&terminal);
	watch_close(&watch);
	return st == WEFT_OK ? st : wf_fail(st, "%s", error.text);
}

int
wf_cmd_top(int argc, char **argv)
{
	struct settings set = {0};
	const char *where[1] = {NULL};
	enum wf_option_origin origin[WF_ARRAY_COUNT(top_table)];
	const char *env_name[WF_ARRAY_COUNT(top_table)];
	struct wf_options options = {
		.table = top_table,
		.option_count = (unsigned)WF_ARRAY_COUNT(top_table),
		.program = "weft top",
		.help = &top_help,
		.target = &set,
		.origin = origin,
		.env_name = env_name,
		.positional = where,
		.positional_max = WF_ARRAY_COUNT(where),
	};
	return wf_command_run(show_again, &options, argc, argv);
}
