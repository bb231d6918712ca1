/* SPDX-License-Identifier: Apache-2.0 */
/* peer_command: see peer_command.h. */
#include "tools/rdma_bench/peer_command.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "tools/command.h"
#include "tools/rdma_bench/peer_run.h"

#define TURNS                                                                                      \
	"weft and a raw loop take turns over the same path; value, limit and fraction mean what "  \
	"they mean in rdma_bench self (docs/benchmark.md).\n\n"                                    \
	"Without a host it is the server, which waits for a client. The client's options decide; " \
	"of the server's only those of its own device, address and port count. The table or the "  \
	"JSON object is printed on the client's stdout, everything else on stderr."
#define EXAMPLES(name)                                                                             \
	"  rdma_bench " name " -d mlx5_0               on one host: the server\n"                  \
	"  rdma_bench " name " -d mlx5_0 node7         on another: the client\n"                   \
	"  rdma_bench " name " --listen=127.0.0.1 &\n"                                             \
	"  rdma_bench " name " --transport=shm localhost"
#define GROUPS .group = groups, .group_count = (unsigned)WF_ARRAY_COUNT(groups)

static const struct wf_help_group groups[] = {
	{"What is measured", "transport op size all bidirectional"},
	{"How it is measured", "iters pairs tx_depth verify"},
	{WF_HEADING_THIS_END, "port listen device ib_port gid_index mtu sl verbs"},
	{"Output", "json"},
	{"Accepted for perftest's command lines", "force rdma_cm"},
};

static const char exit_codes[] =
	"   0  measured, whatever the figures are\n"
	"   1  --verify found bytes that differ\n"
	"  64  an option is wrong, there is no such device, or the other end has\n"
	"      another version\n"
	"  69  the other end cannot be reached, or was lost\n"
	"  70  an internal error\n"
	"  74  input or output failed\n"
	"  77  not permitted";

static const struct {
	const char *program;
	struct wf_help help;
} commands[] = {
	[WF_PEER_LAT] = {"rdma_bench lat",
			 {.usage = "rdma_bench lat [HOST] [options]",
			  .about = "Latency: one message at a time goes to and fro; the figure is "
				   "half of the round trip.\n\n" TURNS,
			  .examples = EXAMPLES("lat"),
			  GROUPS,
			  .exit_codes = exit_codes}},
	[WF_PEER_BW] = {"rdma_bench bw",
			{.usage = "rdma_bench bw [HOST] [options]",
			 .about =
				 "Bandwidth: many messages are under way at once, in one direction "
				 "or in both (-b).\n\n" TURNS,
			 .examples = EXAMPLES("bw"),
			 GROUPS,
			 .exit_codes = exit_codes}},
	[WF_PEER_RATE] =
		{"rdma_bench rate",
		 {.usage = "rdma_bench rate [HOST] [options]",
		  .about = "Small updates of a table, which the receiver applies: first with "
			   "one message for each, then with as many as fit in one "
			   "message.\n\n" TURNS,
		  .examples = EXAMPLES("rate"),
		  GROUPS,
		  .exit_codes = exit_codes}},
};

static int
complain(const char *program, const struct wf_peer_run *run)
{
	const struct wf_peer_report *verified = &run->verified;
	if (verified->wrong > 0) {
		fprintf(stderr,
			"%s: %" PRIu64 " of %" PRIu64 " messages arrived with wrong bytes; "
			"the first one is number %" PRIu64 ", from byte %" PRIu64 " on\n",
			program, verified->wrong, verified->checked, verified->wrong_number,
			verified->wrong_at);
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
			fprintf(stderr, "%s: messages arrived with wrong bytes\n", program);
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
	st = wf_bench_congestion(set->congestion, end.congestion);
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
		.help = &commands[kind].help,
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
		return wf_command_print_help(&options);
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
