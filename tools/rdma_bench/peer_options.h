/* SPDX-License-Identifier: Apache-2.0 */
/* peer_options: of `rdma_bench lat`, `bw` and `rate`, with perftest's one-letter names for those
 * that it has too. Thread: main. */
#pragma once

#include "base/options.h"
#include "base/url.h"
#include "tools/rdma_bench/path.h"

#define WF_PEER_OPTION_MAX 32
#define WF_HEADING_THIS_END "This end"
#define WF_PEER_WORDS_MAX 128 /* arguments, one-letter options being two each */
#define WF_PEER_NAME_BYTES 20

enum wf_peer_kind {
	WF_PEER_LAT,
	WF_PEER_BW,
	WF_PEER_RATE,
};

struct wf_peer_settings {
	enum wf_peer_kind kind;
	bool is_server; /* no host was named */
	struct wf_host to;

	const char *transport;  /* "auto", "verbs", "tcp", "shm" */
	const char *op;         /* "both", "put", "send" */
	const char *device;     /* NULL: any */
	const char *verbs;      /* more settings of the backend; NULL: none */
	const char *listen;     /* NULL: any address */
	const char *congestion; /* as of self */
	uint64_t gid_index, ib_port, mtu, service_level;
	bool gid_given, ib_port_given, mtu_given, service_level_given;
	uint64_t bytes; /* 0: as the command does without */
	uint64_t count; /* operations of a leg; 0: by size */
	uint64_t depth, pairs, port;
	bool all, both_ways, verify, json;
	bool force, cm; /* perftest's, which change nothing here */
};

const struct wf_option *wf_peer_options(unsigned *count);
/* Arguments with all options in full. */
struct wf_peer_spelled {
	char *word[WF_PEER_WORDS_MAX + 1]; /* and a NULL */
	int count;
	char name[WF_PEER_WORDS_MAX][WF_PEER_NAME_BYTES];
};
/* "-s 64" and "-s64" become "--size" "64". WEFT_INVALID: a letter that is not known, too many
 * arguments. */
enum weft_status wf_peer_spell(int argc, char *const *argv,
			       struct wf_peer_spelled *out) WEFT_MUST_CHECK;
/* After parsing: what options mean together. `set->kind` is set. */
enum weft_status wf_peer_settle(struct wf_peer_settings *set, const struct wf_options *options,
				const char *host) WEFT_MUST_CHECK;
/* Settings for the backend "verbs" out of all the options for it. */
enum weft_status wf_peer_verbs_settings(const struct wf_peer_settings *set,
					char out[WF_PEER_VERBS_BYTES]) WEFT_MUST_CHECK;
