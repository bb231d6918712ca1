/* SPDX-License-Identifier: Apache-2.0 */
/* link: see link.h. */
#include "tools/launch/link.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/exit_code.h"
#include "base/outlet.h"
#include "tools/launch/child.h"

#define PATIENCE_NS (60 * WF_NS_PER_S) /* for a peer that receives nothing */
#define LAST_WORDS_NS WF_NS_PER_S      /* for what ssh prints at its end */
#define SHOWN_BYTES 80                 /* of what a shell printed */

static struct wf_link *
link_of(struct wf_site *site)
{
	return (struct wf_link *)(void *)site;
}

/* A line of ssh or of the agent's hook: it may hold anything. */
static void
show(struct wf_link *link, const char *text)
{
	char line[WF_LINE_BYTES + WF_SITE_NAME_BYTES + 8];

	int bytes = snprintf(line, sizeof(line), "%s | %.*s\n", link->site.name, (int)WF_LINE_BYTES,
			     text);
	if (link->err != NULL) {
		(void)wf_outlet_put(link->err, line, (size_t)bytes);
	} else {
		(void)wf_outlet_write(STDERR_FILENO, line, (size_t)bytes, WF_OUTLET_PATIENCE_NS);
	}
}

static void
on_error_line(void *arg, const char *text)
{
	struct wf_link *link = arg;

	snprintf(link->last_error, sizeof(link->last_error), "%.*s",
		 (int)sizeof(link->last_error) - 1, text);
	show(link, text);
}

static void
read_errors(struct wf_link *link)
{
	char bytes[4096];
	int fd = link->ssh.fd[WF_PROCESS_STDERR];

	if (fd < 0) {
		return;
	}
	ssize_t got = read(fd, bytes, sizeof(bytes));
	if (got > 0) {
		wf_lines_feed(&link->errors, bytes, (size_t)got, on_error_line, link);
	} else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
		wf_lines_end(&link->errors, on_error_line, link);
		wf_process_close(&link->ssh, WF_PROCESS_STDERR);
	}
}

/* Waits until ssh has ended and its last words are read, as they say why. */
static void
read_last_words(struct wf_link *link)
{
	uint64_t deadline_ns = wf_now_ns(link->env) + LAST_WORDS_NS;

	while (link->ssh.fd[WF_PROCESS_STDERR] >= 0 && wf_now_ns(link->env) < deadline_ns) {
		wf_wait(link->env, link->ssh.fd[WF_PROCESS_STDERR], deadline_ns);
		read_errors(link);
	}
	while (!wf_process_reap(&link->ssh) && !link->ssh.ended &&
	       wf_now_ns(link->env) < deadline_ns) {
		wf_wait(link->env, -1, wf_now_ns(link->env) + WF_NS_PER_S / 100);
	}
}

/* Marks the link as lost, ends ssh, and with it all that runs there. */
static void
lose(struct wf_link *link, const char *why)
{
	if (link->lost) {
		return;
	}
	link->lost = true;
	wf_process_close(&link->ssh, WF_PROCESS_STDIN);
	wf_process_close(&link->ssh, WF_PROCESS_STDOUT);
	if (why == NULL) {
		read_last_words(link);
	}
	wf_process_signal(&link->ssh, SIGTERM);
	if (why != NULL) {
		snprintf(link->why, sizeof(link->why), "%s", why);
	} else if (link->ssh.ended && WIFEXITED(link->ssh.wait_status) &&
		   WEXITSTATUS(link->ssh.wait_status) == 127) {
		snprintf(link->why, sizeof(link->why),
			 "%.500s: the program was not found; install weft there, or name it with "
			 "--remote_weft=PATH",
			 link->last_error);
	} else {
		snprintf(link->why, sizeof(link->why), "the connection ended: %.500s",
			 link->last_error[0] != '\0' ? link->last_error : "ssh printed nothing");
	}
	for (unsigned i = 0; i < link->child_count; i++) {
		struct wf_child *child = link->child[i];
		if (child != NULL && !child->over) {
			snprintf(child->last_error, sizeof(child->last_error), "%s: %s",
				 link->site.name, link->why);
			wf_child_on_end(child, W_EXITCODE(WF_EXIT_UNAVAILABLE, 0));
		}
	}
}

static enum weft_status
fail_lost(const struct wf_link *link)
{
	return wf_fail(WEFT_UNAVAILABLE, "%s: %.450s", link->site.name, link->why);
}

/* ---- what an agent sends: nothing of it is believed ---- */

static bool
is_end(uint32_t status)
{
	int wait_status = (int)status;
	return status <= UINT16_MAX && (WIFEXITED(wait_status) || WIFSIGNALED(wait_status));
}

static void
copy_line(char *out, size_t room, const char *text)
{
	snprintf(out, room, "%s", text);
	for (char *at = out; (at = strchr(at, '\n')) != NULL;) {
		*at = '?';
	}
}

/* Copies a text that becomes part of this program's own lines: it holds no control characters. */
static void
copy_words(char *out, size_t room, const char *text)
{
	snprintf(out, room, "%s", text);
	for (char *at = out; *at != '\0'; at++) {
		*at = (unsigned char)*at < ' ' || *at == 0x7f ? '?' : *at;
	}
}

static struct wf_child *
find_child(struct wf_link *link, uint32_t number)
{
	if (number >= link->child_count || link->child[number] == NULL ||
	    !link->child[number]->started || link->child[number]->over) {
		return NULL;
	}
	return link->child[number];
}

static bool
on_line_frame(struct wf_link *link, struct wf_frame *frame)
{
	char line[WF_LINE_BYTES];
	uint32_t number = wf_frame_read_number(frame);
	uint32_t stream = wf_frame_read_number(frame);

	copy_line(line, sizeof(line), wf_frame_read_text(frame));
	if (frame->bad || (stream != WF_PROCESS_STDOUT && stream != WF_PROCESS_STDERR)) {
		return false;
	}
	if (number == WF_FRAME_AGENT) {
		show(link, line);
		return true;
	}
	struct wf_child *child = find_child(link, number);
	if (child != NULL) {
		wf_child_on_line(child, (enum wf_process_stream)stream, line);
	}
	return child != NULL;
}

static bool
on_reply(struct wf_link *link, struct wf_frame *frame)
{
	uint32_t status = wf_frame_read_number(frame);

	copy_words(link->reply.text, sizeof(link->reply.text), wf_frame_read_text(frame));
	link->reply.status = status < WEFT_STATUS_COUNT ? (enum weft_status)status : WEFT_PROTOCOL;
	link->reply.received = true;
	return !frame->bad;
}

static bool
on_frame(struct wf_link *link, struct wf_frame *frame)
{
	bool good = false;

	if (frame->type == WF_FRAME_REPLY) {
		good = !link->reply.received && on_reply(link, frame);
	} else if (frame->type == WF_FRAME_ALIVE) {
		good = true;
	} else if (frame->type == WF_FRAME_LINE) {
		good = on_line_frame(link, frame);
	} else if (frame->type == WF_FRAME_STARTED || frame->type == WF_FRAME_ENDED) {
		struct wf_child *child = find_child(link, wf_frame_read_number(frame));
		uint32_t value = wf_frame_read_number(frame);
		good = !frame->bad && child != NULL && value <= INT32_MAX;
		if (good && frame->type == WF_FRAME_STARTED) {
			wf_child_on_start(child, (pid_t)value);
		} else if (good) {
			good = is_end(value);
			wf_child_on_end(child, good ? (int)value : W_EXITCODE(WF_EXIT_INTERNAL, 0));
		}
	}
	return good && frame->left == 0;
}

/* Handles the frames that are complete. */
static void
handle_frames(struct wf_link *link)
{
	struct wf_frame frame;
	enum weft_status st = WEFT_OK;

	while (!link->lost && (st = wf_frame_next(&link->stream, &frame)) == WEFT_OK) {
		if (!on_frame(link, &frame)) {
			st = WEFT_PROTOCOL;
			break;
		}
	}
	if (st == WEFT_PROTOCOL) {
		lose(link, "its agent sent a malformed message");
	}
}

/* Receives what is there. */
static void
receive(struct wf_link *link)
{
	size_t room;

	if (link->lost) {
		return;
	}
	void *to = wf_frame_room(&link->stream, &room);
	ssize_t got = read(link->ssh.fd[WF_PROCESS_STDOUT], to, room < 65536 ? room : 65536);
	if (got > 0) {
		link->life.heard_ns = wf_now_ns(link->env);
		wf_frame_received(&link->stream, (size_t)got);
	} else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
		lose(link, NULL);
	}
}

/* ---- what the supervisor sends ---- */

/* Watches ssh's stdin while something waits for room there. */
static void
watch_queue(struct wf_link *link, bool wanted)
{
	struct epoll_event event = {.events = EPOLLOUT, .data.fd = WF_PROCESS_STDIN};
	int op = wanted ? EPOLL_CTL_ADD : EPOLL_CTL_DEL;

	if (wanted != link->queue.watched &&
	    epoll_ctl(link->site.fd, op, link->ssh.fd[WF_PROCESS_STDIN], &event) == 0) {
		link->queue.watched = wanted;
	}
}

/* Writes what the pipe accepts of the queue. */
static void
flush_queue(struct wf_link *link)
{
	struct wf_link_queue *queue = &link->queue;

	while (!link->lost && queue->sent < queue->used) {
		ssize_t put = write(link->ssh.fd[WF_PROCESS_STDIN], queue->bytes + queue->sent,
				    queue->used - queue->sent);
		if (put > 0) {
			queue->sent += (size_t)put;
			queue->progress_ns = wf_now_ns(link->env);
		} else if (errno == EPIPE) {
			lose(link, NULL);
		} else if (errno != EINTR) {
			break;
		}
	}
	if (link->lost) {
		return; /* the pipe is closed, and with that no longer watched */
	}
	if (queue->sent == queue->used) {
		queue->sent = queue->used = 0;
	}
	watch_queue(link, queue->used > 0);
}

/* Sends the frame in link->writer as soon as its host receives it. */
static enum weft_status
post(struct wf_link *link)
{
	struct wf_link_queue *queue = &link->queue;
	enum weft_status st = wf_frame_end(&link->writer);

	if (st == WEFT_OK && !link->lost &&
	    link->writer.used > sizeof(queue->bytes) - queue->used) {
		lose(link, "too much waits for it to receive anything");
	}
	if (st == WEFT_OK && !link->lost) {
		if (queue->used == 0) {
			queue->progress_ns = wf_now_ns(link->env);
		}
		memcpy(queue->bytes + queue->used, link->writer.bytes, link->writer.used);
		queue->used += link->writer.used;
		flush_queue(link);
	}
	return st == WEFT_OK && link->lost ? fail_lost(link) : st;
}

/* Serves ssh's pipes as far as they are ready. */
static void
serve_pipes(struct wf_link *link)
{
	struct epoll_event events[WF_PROCESS_STREAMS];

	int count = epoll_wait(link->site.fd, events, WF_PROCESS_STREAMS, 0);
	for (int i = 0; i < count; i++) {
		if (events[i].data.fd == WF_PROCESS_STDIN) {
			flush_queue(link);
		} else if (events[i].data.fd == WF_PROCESS_STDERR) {
			read_errors(link);
		} else {
			receive(link);
		}
	}
}

/* ---- a site ---- */

static enum weft_status
start_child(struct wf_site *site, struct wf_child *child, const sigset_t *mask)
{
	struct wf_link *link = link_of(site);
	uint32_t number = child->spec->number;

	(void)mask; /* the agent has its own */
	WF_ASSERT(number < link->child_count &&
		  (link->child[number] == NULL || link->child[number] == child));
	link->child[number] = child;
	link->err = child->err;
	wf_frame_begin(&link->writer, WF_FRAME_START);
	wf_frame_add_number(&link->writer, number);
	return post(link);
}

static void
signal_child(struct wf_site *site, struct wf_child *child, int signal_number)
{
	struct wf_link *link = link_of(site);

	if (link->lost) {
		return;
	}
	wf_frame_begin(&link->writer, WF_FRAME_SIGNAL);
	wf_frame_add_number(&link->writer, child->spec->number);
	wf_frame_add_number(&link->writer, (uint32_t)signal_number);
	(void)!post(link); /* a link that is lost has reported the end of its processes */
}

static bool
is_there(const struct wf_site *site)
{
	return !((const struct wf_link *)(const void *)site)->lost;
}

static void
on_ready(struct wf_site *site)
{
	struct wf_link *link = link_of(site);

	serve_pipes(link);
	handle_frames(link);
}

static void
abandon(struct wf_site *site)
{
	lose(link_of(site), "it does not answer; its agent ends the processes there once it sees "
			    "that the connection has ended");
}

static void
tick(struct wf_site *site)
{
	wf_link_pulse(link_of(site));
}

static const struct wf_site_ops link_ops = {.start = start_child,
					    .signal = signal_child,
					    .is_there = is_there,
					    .on_ready = on_ready,
					    .abandon = abandon,
					    .tick = tick};

/* ---- signs of life ---- */

/* Bytes that the supervisor leaves in the pipe while nobody reads the results are signs of life. */
static bool
is_silent(struct wf_link *link, uint64_t now_ns)
{
	struct pollfd out = {link->ssh.fd[WF_PROCESS_STDOUT], POLLIN, 0};

	if (now_ns < link->life.heard_ns + WF_FRAME_SILENCE_NS) {
		return false;
	}
	if (poll(&out, 1, 0) == 1) {
		link->life.heard_ns = now_ns;
		return false;
	}
	return true;
}

void
wf_link_pulse(struct wf_link *link)
{
	static const uint8_t alive[WF_FRAME_HEAD_BYTES] = {WF_FRAME_ALIVE};
	uint64_t now_ns = wf_now_ns(link->env);

	if (link->lost || !link->hello.received) {
		return;
	}
	if (now_ns >= link->life.alive_ns && !link->life.sends && link->queue.used == 0) {
		/* All of it or nothing: if the pipe is full, the agent has enough to read. */
		(void)!write(link->ssh.fd[WF_PROCESS_STDIN], alive, sizeof(alive));
		link->life.alive_ns = now_ns + WF_FRAME_ALIVE_NS;
	}
	if (link->queue.used > 0 && now_ns >= link->queue.progress_ns + PATIENCE_NS) {
		lose(link, "nothing that is sent arrives there");
	} else if (is_silent(link, now_ns)) {
		lose(link, "it has been silent for two minutes");
	}
}

/* One turn of a wait: when it ends at the latest. */
static uint64_t
pulse_while_waiting(struct wf_link *link, uint64_t deadline_ns)
{
	uint64_t turn_ns = wf_now_ns(link->env) + WF_FRAME_ALIVE_NS;

	if (link->life.on_wait != NULL) {
		link->life.on_wait(link->life.on_wait_arg);
	}
	return turn_ns < deadline_ns ? turn_ns : deadline_ns;
}

/* ---- requests ---- */

void
wf_link_init(struct wf_link *link, struct wf_env *env, const char *name)
{
	memset(link, 0, sizeof(*link));
	link->site = (struct wf_site){.ops = &link_ops, .name = name, .fd = -1};
	link->env = env;
	wf_process_init(&link->ssh);
}

enum weft_status
wf_link_open(struct wf_link *link, const struct wf_args *ssh)
{
	sigset_t mask;

	sigprocmask(SIG_SETMASK, NULL, &mask);
	const struct wf_process_opts opts = {.name = link->site.name,
					     .program = ssh->argv[0],
					     .args = ssh,
					     .mask = &mask,
					     .has_stdin = true};
	enum weft_status st = wf_process_start(&link->ssh, &opts);
	if (st != WEFT_OK) {
		return st;
	}
	link->site.fd = epoll_create1(EPOLL_CLOEXEC);
	if (link->site.fd < 0) {
		return wf_fail_errno(WEFT_IO, errno, "epoll_create1");
	}
	for (int i = WF_PROCESS_STDOUT; i <= WF_PROCESS_STDERR; i++) {
		struct epoll_event event = {.events = EPOLLIN, .data.fd = i};
		if (epoll_ctl(link->site.fd, EPOLL_CTL_ADD, link->ssh.fd[i], &event) != 0) {
			return wf_fail_errno(WEFT_IO, errno, "epoll_ctl");
		}
	}
	return WEFT_OK;
}

enum weft_status
wf_link_send(struct wf_link *link)
{
	uint64_t deadline_ns = wf_now_ns(link->env) + PATIENCE_NS;

	WF_ASSERT(link->queue.used == 0);
	enum weft_status st = wf_frame_end(&link->writer);
	for (size_t at = 0; st == WEFT_OK && at < link->writer.used;) {
		if (link->lost) {
			return fail_lost(link);
		}
		link->life.sends = at > 0;
		int fd = link->ssh.fd[WF_PROCESS_STDIN];
		ssize_t put = write(fd, link->writer.bytes + at, link->writer.used - at);
		if (put > 0) {
			at += (size_t)put;
			deadline_ns = wf_now_ns(link->env) + PATIENCE_NS;
		} else if (errno == EPIPE) {
			lose(link, NULL);
		} else if (wf_now_ns(link->env) >= deadline_ns) {
			lose(link, "nothing that is sent arrives there");
		} else {
			struct pollfd both[] = {{fd, POLLOUT, 0},
						{link->ssh.fd[WF_PROCESS_STDERR], POLLIN, 0}};
			(void)poll(both, 2, 1000);
			read_errors(link);
			(void)pulse_while_waiting(link, deadline_ns);
		}
	}
	link->life.sends = false;
	return st;
}

/* Waits until something has arrived. WEFT_UNAVAILABLE: lost, or too late. */
static enum weft_status
wait_for_bytes(struct wf_link *link, uint64_t deadline_ns)
{
	uint64_t turn_ns = pulse_while_waiting(link, deadline_ns);

	if (link->lost) {
		return fail_lost(link);
	}
	if (wf_now_ns(link->env) >= deadline_ns) {
		lose(link, "no answer in time");
		return fail_lost(link);
	}
	wf_wait(link->env, link->site.fd, turn_ns);
	serve_pipes(link);
	return WEFT_OK;
}

enum weft_status
wf_link_await(struct wf_link *link, uint64_t deadline_ns)
{
	enum weft_status st = WEFT_OK;

	handle_frames(link);
	while (st == WEFT_OK && !link->reply.received) {
		st = wait_for_bytes(link, deadline_ns);
		handle_frames(link);
	}
	link->reply.received = false;
	if (st == WEFT_OK && link->reply.status != WEFT_OK) {
		st = wf_fail(link->reply.status == WEFT_AGAIN ? WEFT_PROTOCOL : link->reply.status,
			     "%s: %.450s", link->site.name, link->reply.text);
	}
	return st;
}

/* The first bytes are no frame: what a shell's start-up files print. */
static enum weft_status
refuse_noise(struct wf_link *link)
{
	char text[SHOWN_BYTES + 1];
	size_t bytes = 0;

	while (bytes < link->stream.used && bytes < SHOWN_BYTES &&
	       link->stream.bytes[bytes] >= ' ' && link->stream.bytes[bytes] < 127) {
		text[bytes] = (char)link->stream.bytes[bytes];
		bytes++;
	}
	text[bytes] = '\0';
	lose(link, "its output is not that of an agent");
	return wf_fail(WEFT_PROTOCOL,
		       "%s: printed '%s' instead of starting weft; commands in the start-up files "
		       "of a shell that is not interactive must print nothing",
		       link->site.name, text);
}

enum weft_status
wf_link_await_hello(struct wf_link *link, const char *version, uint64_t deadline_ns)
{
	struct wf_frame frame;
	enum weft_status st = WEFT_OK;

	for (;;) {
		st = wf_frame_next(&link->stream, &frame);
		if (st != WEFT_AGAIN) {
			break;
		}
		st = wait_for_bytes(link, deadline_ns);
		if (st != WEFT_OK) {
			return st;
		}
	}
	if (st == WEFT_PROTOCOL || frame.type != WF_FRAME_HELLO) {
		return refuse_noise(link);
	}
	uint32_t frames = wf_frame_read_number(&frame);
	copy_words(link->hello.version, sizeof(link->hello.version), wf_frame_read_text(&frame));
	link->hello.cpu_count = wf_frame_read_number(&frame);
	link->hello.received = true;
	copy_words(link->hello.ssh_address, sizeof(link->hello.ssh_address),
		   wf_frame_read_text(&frame));
	if (frames != WF_FRAME_VERSION || strcmp(link->hello.version, version) != 0) {
		return wf_fail(WEFT_UNSUPPORTED,
			       "%s has weft %s (messages of version %u), this is weft %s (%u): all "
			       "hosts of a job need the same version",
			       link->site.name, link->hello.version, frames, version,
			       WF_FRAME_VERSION);
	}
	return wf_frame_check(&frame);
}

void
wf_link_detach(struct wf_link *link)
{
	link->err = NULL;
	for (unsigned i = 0; i < link->child_count; i++) {
		link->child[i] = NULL;
	}
}

void
wf_link_close(struct wf_link *link, uint64_t deadline_ns)
{
	/* The deadline is that of all links, and may be over. */
	uint64_t soon_ns = wf_now_ns(link->env) + LAST_WORDS_NS;
	uint64_t leave_ns = deadline_ns + WF_PROCESS_STUCK_NS;

	leave_ns = leave_ns > soon_ns ? leave_ns : soon_ns;
	wf_process_close(&link->ssh, WF_PROCESS_STDIN);
	while (link->ssh.pid != 0 && !link->ssh.ended && !wf_process_reap(&link->ssh)) {
		uint64_t now_ns = wf_now_ns(link->env);
		if (now_ns >= leave_ns) {
			wf_process_leave(&link->ssh);
			break;
		}
		if (now_ns >= deadline_ns) {
			wf_process_signal(&link->ssh, SIGKILL);
		}
		wf_wait(link->env, -1, wf_now_ns(link->env) + WF_NS_PER_S / 100);
		if (link->site.fd >= 0 && !link->lost) {
			serve_pipes(link);
			link->stream.used = link->stream.done = 0; /* no frame matters now */
		}
	}
	if (link->site.fd >= 0) {
		close(link->site.fd);
		link->site.fd = -1;
	}
	wf_process_fini(&link->ssh);
}
