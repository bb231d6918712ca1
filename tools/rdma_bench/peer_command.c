/* SPDX-License-Identifier: Apache-2.0 */
/* peer_command: see peer_command.h. */
#include "tools/rdma_bench/peer_command.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tools/command.h"
#include "tools/rdma_bench/peer_run.h"

static const struct {
	const char *program, *what;
} commands[] = {
	[WF_PEER_LAT] = {"rdma_bench lat",
			 "Latency: a message to and fro, one at a time; half of the way there and "
			 "back.\n"},
	[WF_PEER_BW] = {"rdma_bench bw",
			"Bandwidth: many messages one behind the other, or both ways at once "
			"(-b).\n"},
	[WF_PEER_RATE] = {"rdma_bench rate",
			  "Small updates of a table, which the receiver applies: each a message of "
			  "its own,\nand as many as there is room for in one.\n"},
};

static int
print_help(enum wf_peer_kind kind, const struct wf_options *options)
{
	const char *program = commands[kind].program;
	printf("  %s -d mlx5_0              on one host: waits for a client, serves it\n"
	       "  %s -d mlx5_0 node7        on another\n"
	       "  %s --listen=127.0.0.1 &\n"
	       "  %s --transport=shm localhost\n"
	       "\n%s\n"
	       "weft and a raw loop take turns over the same path: value, limit and fraction are\n"
	       "as in `rdma_bench self`: docs/benchmark.md. The client's options decide; of the\n"
	       "server's only those of its own device, address and port are looked at. Table or\n"
	       "JSON go to the client's stdout, everything else to stderr.\n"
	       "\n"
	       "Exit codes: 0 measured, whatever the figures; 1 --verify found other bytes; 64\n"
	       "usage, an unknown device, another version there; 69 nobody there, or lost; 70\n"
	       "internal; 74 input or output; 77 not permitted.\n"
	       "\n",
	       program, program, program, program, commands[kind].what);
	wf_options_print_help(options, stdout);
	return WF_EXIT_OK;
}

static int
complain(const char *program, const struct wf_peer_run *run)
{
	if (run->wrong > 0) {
		fprintf(stderr,
			"%s: %" PRIu64 " of %" PRIu64
			" messages came with other bytes than were sent; the first: number %" PRIu64
			", from byte %" PRIu64 " on\n",
			program, run->wrong, run->checked, run->wrong_number, run->wrong_at);
		return WF_EXIT_FAILED;
	}
	return WF_EXIT_OK;
}

/* `*code`: of the exit, when all went well. */
static enum weft_status
run_end(struct wf_peer_end *end, int *code)
{
	static struct wf_peer_run run; /* too large for a stack; there is one */
	const char *program = commands[end->set->kind].program;
	bool right = true;
	if (end->set->is_server) {
		enum weft_status st = wf_peer_serve(end, &right);
		*code = right ? WF_EXIT_OK : WF_EXIT_FAILED;
		if (st == WEFT_OK && !right) {
			fprintf(stderr, "%s: messages came with other bytes than were sent\n",
				program);
		}
		return st;
	}
	enum weft_status st = wf_peer_measure(end, &run);
	if (st != WEFT_OK) {
		return st;
	}
	if (end->set->json) {
		wf_peer_report_json(&run, stdout);
	} else {
		wf_peer_report_table(&run, stdout);
	}
	*code = complain(program, &run);
	return WEFT_OK;
}

static enum weft_status
run_settings(const struct wf_peer_settings *set, int *code)
{
	struct wf_peer_end end = {
		.set = set,
		.client = !set->is_server,
		.control = {.fd = -1, .listener = -1},
	};
	enum weft_status st = wf_env_system_create(WF_LOG_ERROR, 2, &end.env);
	if (st != WEFT_OK) {
		return st;
	}
	end.control.env = end.env;
	st = wf_congestion_choose(set->tcp_congestion, end.congestion);
	if (st == WEFT_OK) {
		st = run_end(&end, code);
	}
	wf_peer_control_close(&end.control);
	wf_env_system_destroy(end.env);
	return st;
}

int
wf_peer_command(enum wf_peer_kind kind, int argc, char **argv)
{
	struct wf_peer_settings set = {.kind = kind};
	enum wf_option_origin origin[WF_PEER_OPTION_MAX];
	const char *env_name[WF_PEER_OPTION_MAX];
	struct wf_peer_spelled spelled;
	const char *host[1] = {NULL};
	struct wf_option_file file;
	struct wf_options options = {
		.program = commands[kind].program,
		.target = &set,
		.origin = origin,
		.env_name = env_name,
		.file = &file,
		.positional = host,
		.positional_max = 1,
	};
	int code = WF_EXIT_OK;
	options.table = wf_peer_options(&options.option_count);
	enum weft_status st = wf_peer_spell(argc, argv, &spelled);
	if (st == WEFT_OK) {
		st = wf_options_parse(&options, spelled.count, spelled.word);
	}
	if (st == WEFT_OK && options.help_wanted) {
		return print_help(kind, &options);
	}
	if (st == WEFT_OK && options.print_wanted) {
		return wf_command_print_options(&options);
	}
	if (st == WEFT_OK) {
		st = wf_peer_settle(&set, &options, options.positional_count > 0 ? host[0] : NULL);
	}
	if (st == WEFT_OK) {
		st = run_settings(&set, &code);
	}
	return st == WEFT_OK ? code : wf_command_fail(commands[kind].program, st);
}
