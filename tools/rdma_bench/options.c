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
	 .help = "Print one JSON object on stdout instead of the table."},
	{.name = "quick",
	 .type = WF_OPTION_BOOL,
	 .offset = FIELD(quick),
	 .help = "Measure two short pairs of everything. This shows that it works, and "
		 "measures nothing."},
	{.name = "only",
	 .type = WF_OPTION_STRING,
	 .offset = FIELD(only),
	 .metavar = "NAME,NAME...",
	 .help = "The figures to measure: " WF_BENCH_FIGURES ". All of them unless given."},
	{.name = "transport",
	 .type = WF_OPTION_CHOICE,
	 .offset = FIELD(transport),
	 .initial = "both",
	 .choices = "tcp|shm|both",
	 .help = "The transports to measure."},
	{.name = "pairs",
	 .type = WF_OPTION_U64,
	 .offset = FIELD(pairs),
	 .initial = "7",
	 .min = 1,
	 .max = 64,
	 .help = "Number of pairs of one placement whose median a figure is. At most three "
		 "times as many are tried."},
	{.name = "rows",
	 .type = WF_OPTION_U64,
	 .offset = FIELD(rows),
	 .initial = "10000000",
	 .min = 20000,
	 .max = 1u << 30,
	 .help = "Number of rows of the sparse tables. With too little memory it is halved "
		 "until they fit."},
	{.name = "seconds",
	 .type = WF_OPTION_DURATION,
	 .offset = FIELD(seconds_ns),
	 .initial = "0.3s",
	 .min = WF_NS_PER_MS,
	 .max = 60 * WF_NS_PER_S,
	 .help = "How long each side of a pair runs."},
	{.name = "slow",
	 .type = WF_OPTION_CHOICE,
	 .offset = FIELD(slow),
	 .initial = "none",
	 .choices = "none|product|limit",
	 .help = "Check of the benchmark itself: make each operation of one of the two sides "
		 "take twice its time. Fractions have to be halved, or doubled."},
	{.name = "limit",
	 .type = WF_OPTION_DURATION,
	 .offset = FIELD(limit_ns),
	 .initial = "10m",
	 .min = WF_NS_PER_S,
	 .max = 24 * 3600 * WF_NS_PER_S,
	 .help = "Longest time for the whole run, which then ends with an error."},
	{.name = "cpus",
	 .type = WF_OPTION_STRING,
	 .offset = FIELD(cpus),
	 .initial = "auto",
	 .metavar = "auto|A,B",
	 .help = "The two CPUs: pservers and kernels run on the first, trainers on the "
		 "second. auto takes two cores, of one NUMA node if possible."},
	{.name = "tcp_congestion",
	 .type = WF_OPTION_STRING,
	 .offset = FIELD(congestion),
	 .heading = WF_HEADING_MEASURED,
	 .metavar = "NAME",
	 .help = "Congestion control of all TCP sockets, those of the limits included. "
		 "cubic unless given, or the system's if this user may not choose cubic."},
};

WF_STATIC_ASSERT(WF_ARRAY_COUNT(table) <= WF_SELF_OPTION_MAX, "callers' arrays hold the table");

const struct wf_option *
wf_self_options(unsigned *count)
{
	*count = (unsigned)WF_ARRAY_COUNT(table);
	return table;
}
