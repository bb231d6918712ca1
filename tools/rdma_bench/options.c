/* SPDX-License-Identifier: Apache-2.0 */
/* options: see options.h. */
#include "tools/rdma_bench/options.h"

#include "base/assert.h"
#include "base/env.h"

#define FIELD(name) offsetof(struct wf_self_settings, name)

static const struct wf_option table[] = {
	{.name = "json",
	 .type = WF_OPTION_BOOL,
	 .offset = FIELD(json),
	 .help = "One JSON object on stdout instead of the table."},
	{.name = "quick",
	 .type = WF_OPTION_BOOL,
	 .offset = FIELD(quick),
	 .help = "Two short pairs of everything: shows that it works, measures nothing."},
	{.name = "only",
	 .type = WF_OPTION_STRING,
	 .offset = FIELD(only),
	 .metavar = "NAME,NAME...",
	 .help = "Which figures: fused_sum_sgd, exchange_bandwidth, exchange_latency, scaling,\n"
		 "async, idle_cpu, table, rows. All unless given."},
	{.name = "transport",
	 .type = WF_OPTION_CHOICE,
	 .offset = FIELD(transport),
	 .initial = "both",
	 .choices = "tcp|shm|both",
	 .help = "Which transports."},
	{.name = "pairs",
	 .type = WF_OPTION_U64,
	 .offset = FIELD(pairs),
	 .initial = "7",
	 .min = 1,
	 .max = 64,
	 .help = "Pairs of one placement that a figure is the median of. Three times as many\n"
		 "are tried at most."},
	{.name = "rows",
	 .type = WF_OPTION_U64,
	 .offset = FIELD(rows),
	 .initial = "10000000",
	 .min = 20000,
	 .max = 1u << 30,
	 .help = "Rows of the sparse tables; half as many, and so on, where memory ends."},
	{.name = "seconds",
	 .type = WF_OPTION_DURATION,
	 .offset = FIELD(seconds_ns),
	 .initial = "0.3s",
	 .min = WF_NS_PER_MS,
	 .max = 60 * WF_NS_PER_S,
	 .help = "How long each side of a pair runs."},
	{.name = "limit",
	 .type = WF_OPTION_DURATION,
	 .offset = FIELD(limit_ns),
	 .initial = "10m",
	 .min = WF_NS_PER_S,
	 .max = 24 * 3600 * WF_NS_PER_S,
	 .help = "How long all of it may take; then it ends with an error."},
	{.name = "cpus",
	 .type = WF_OPTION_STRING,
	 .offset = FIELD(cpus),
	 .initial = "auto",
	 .metavar = "auto|A,B",
	 .help = "The two CPUs: pservers and kernels on the first, trainers on the second.\n"
		 "auto takes two cores, of one NUMA node if that can be had."},
	{.name = "tcp_congestion",
	 .type = WF_OPTION_STRING,
	 .offset = FIELD(tcp_congestion),
	 .metavar = "NAME",
	 .help = "Congestion control of all TCP sockets, the limit's too. cubic unless given,\n"
		 "or the system's where there is no cubic for this user."},
};

WF_STATIC_ASSERT(WF_ARRAY_COUNT(table) <= WF_SELF_OPTION_MAX, "callers' arrays hold the table");

const struct wf_option *
wf_self_options(unsigned *count)
{
	*count = (unsigned)WF_ARRAY_COUNT(table);
	return table;
}
