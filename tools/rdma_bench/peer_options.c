/* SPDX-License-Identifier: Apache-2.0 */
/* peer_options: see peer_options.h. */
#include "tools/rdma_bench/peer_options.h"

#include <inttypes.h>
#include <string.h>

#include "base/assert.h"
#include "tools/command.h"
#include "tools/rdma_bench/peer_words.h"

#define FIELD(name) offsetof(struct wf_peer_settings, name)
#define PORT_MAX 65533 /* two more follow */

static const struct wf_option table[] = {
	{.name = "transport",
	 .type = WF_OPTION_CHOICE,
	 .offset = FIELD(transport),
	 .initial = "auto",
	 .choices = "auto|verbs|tcp|shm",
	 .help = "The medium to measure; the client decides. auto: verbs if this host has "
		 "an RDMA device, otherwise tcp."},
	{.name = "op",
	 .type = WF_OPTION_CHOICE,
	 .offset = FIELD(op),
	 .initial = "both",
	 .choices = "both|put|send",
	 .help = "What to measure: PUTs into memory that the other end has granted, or "
		 "messages, which carry at most 4,032 bytes."},
	{.name = "size",
	 .type = WF_OPTION_BYTES,
	 .offset = FIELD(bytes),
	 .max = WF_PEER_BYTES_MAX,
	 .help = "-s. Bytes of a message, up to 8 MiB. 8 unless given, for bw 64 KiB. For "
		 "rate: bytes of an update, a multiple of 8."},
	{.name = "all",
	 .type = WF_OPTION_BOOL,
	 .offset = FIELD(all),
	 .help = "-a. Measure all sizes from 2 bytes to 8 MiB, each twice the one before; "
		 "not for rate."},
	{.name = "iters",
	 .type = WF_OPTION_U64,
	 .offset = FIELD(count),
	 .max = WF_PEER_COUNT_MAX,
	 .help = "-n. Operations of each side of a pair. 1000 unless given; for bw and rate "
		 "5000, but not more than 64 MiB in all."},
	{.name = "pairs",
	 .type = WF_OPTION_U64,
	 .offset = FIELD(pairs),
	 .initial = "5",
	 .min = 1,
	 .max = 64,
	 .help = "Number of times that weft and the raw loop take turns; figures are "
		 "medians over them."},
	{.name = "tx_depth",
	 .type = WF_OPTION_U64,
	 .offset = FIELD(depth),
	 .initial = "128",
	 .min = 1,
	 .max = WF_PEER_DEPTH_MAX,
	 .help = "-t. Operations under way at once, on both sides."},
	{.name = "bidirectional",
	 .type = WF_OPTION_BOOL,
	 .offset = FIELD(both_ways),
	 .help = "-b. bw: both ends send at once; the figure is the sum."},
	{.name = "verify",
	 .type = WF_OPTION_BOOL,
	 .offset = FIELD(verify),
	 .help = "Give each of weft's messages its own pattern, which the receiver checks. "
		 "This takes time. If bytes differ the exit code is 1."},
	{.name = "json",
	 .type = WF_OPTION_BOOL,
	 .offset = FIELD(json),
	 .help = "Print one JSON object on the client's stdout instead of the table."},
	{.name = "port",
	 .type = WF_OPTION_U64,
	 .offset = FIELD(port),
	 .initial = "18515",
	 .min = 1,
	 .max = PORT_MAX,
	 .help = "-p. The server's TCP port; the two that follow are used too."},
	{.name = "listen",
	 .type = WF_OPTION_STRING,
	 .offset = FIELD(listen),
	 .metavar = "ADDRESS",
	 .help = "The address on which the server listens; any unless given."},
	{.name = "device",
	 .type = WF_OPTION_STRING,
	 .offset = FIELD(device),
	 .metavar = "NAME",
	 .help = "-d. The RDMA device of this end (rdma link show lists them)."},
	{.name = "ib_port",
	 .type = WF_OPTION_U64,
	 .offset = FIELD(ib_port),
	 .min = 1,
	 .max = 255,
	 .help = "-i. The port of the device."},
	{.name = "gid_index",
	 .type = WF_OPTION_U64,
	 .offset = FIELD(gid_index),
	 .max = 255,
	 .help = "-x. The address of the device, by its index; needs -d."},
	{.name = "mtu",
	 .type = WF_OPTION_U64,
	 .offset = FIELD(mtu),
	 .min = 256,
	 .max = 4096,
	 .help = "-m. The most bytes in a packet."},
	{.name = "sl",
	 .type = WF_OPTION_U64,
	 .offset = FIELD(service_level),
	 .max = 15,
	 .help = "-S. The service level."},
	{.name = "verbs",
	 .type = WF_OPTION_STRING,
	 .offset = FIELD(verbs),
	 .metavar = "KEY=VALUE,...",
	 .help = "More settings of weft's RDMA transport at this end: docs/rdma.md. The raw "
		 "loop has its own."},
	{.name = "tcp_congestion",
	 .type = WF_OPTION_STRING,
	 .offset = FIELD(congestion),
	 .heading = WF_HEADING_THIS_END,
	 .metavar = "NAME",
	 .help = "Congestion control of this end's TCP sockets, the raw ones included. "
		 "cubic unless given, or the system's if this user may not choose cubic."},
	{.name = "force",
	 .type = WF_OPTION_BOOL,
	 .offset = FIELD(force),
	 .help = "-F. Accepted without effect: nothing depends on the clock of the CPU."},
	{.name = "rdma_cm",
	 .type = WF_OPTION_BOOL,
	 .offset = FIELD(cm),
	 .help = "-R. Accepted without effect: rdma_cm is always used."},
};

WF_STATIC_ASSERT(WF_ARRAY_COUNT(table) <= WF_PEER_OPTION_MAX, "callers' arrays hold the table");

static const struct letter {
	char letter;
	const char *name;
	bool has_value;
} letters[] = {
	{'a', "--all", false},     {'b', "--bidirectional", false}, {'d', "--device", true},
	{'F', "--force", false},   {'h', "--help", false},          {'i', "--ib_port", true},
	{'m', "--mtu", true},      {'n', "--iters", true},          {'p', "--port", true},
	{'R', "--rdma_cm", false}, {'s', "--size", true},           {'S', "--sl", true},
	{'t', "--tx_depth", true}, {'x', "--gid_index", true},
};

const struct wf_option *
wf_peer_options(unsigned *count)
{
	*count = (unsigned)WF_ARRAY_COUNT(table);
	return table;
}

static const struct letter *
find_letter(char c)
{
	for (size_t i = 0; i < WF_ARRAY_COUNT(letters); i++) {
		if (letters[i].letter == c) {
			return &letters[i];
		}
	}
	return NULL;
}

/* false: no more room. */
static bool
add_word(struct wf_peer_spelled *out, char *word)
{
	if (out->count == WF_PEER_WORDS_MAX) {
		return false;
	}
	out->word[out->count++] = word;
	return true;
}

static bool
add_name(struct wf_peer_spelled *out, const char *name)
{
	if (out->count == WF_PEER_WORDS_MAX) {
		return false;
	}
	char *text = out->name[out->count];
	(void)snprintf(text, WF_PEER_NAME_BYTES, "%s", name);
	return add_word(out, text);
}

/* The letters of one argument, up to the one whose value is the rest. */
static enum weft_status
spell_word(char *word, struct wf_peer_spelled *out, bool *room)
{
	for (char *at = word + 1; *at != '\0'; at++) {
		const struct letter *letter = find_letter(*at);
		if (letter == NULL) {
			return wf_fail(WEFT_INVALID, "unknown option '-%c'; see --help", *at);
		}
		*room = *room && add_name(out, letter->name);
		if (letter->has_value && at[1] != '\0') {
			*room = *room && add_word(out, at + 1);
			return WEFT_OK;
		}
	}
	return WEFT_OK;
}

enum weft_status
wf_peer_spell(int argc, char *const *argv, struct wf_peer_spelled *out)
{
	enum weft_status st = WEFT_OK;
	bool options = true, room = true;
	out->count = 0;
	for (int i = 0; i < argc && st == WEFT_OK; i++) {
		char *word = argv[i];
		options = options && strcmp(word, "--") != 0;
		if (options && word[0] == '-' && word[1] != '-' && word[1] != '\0') {
			st = spell_word(word, out, &room);
		} else {
			room = room && add_word(out, word);
		}
	}
	out->word[out->count] = NULL;
	if (st == WEFT_OK && !room) {
		return wf_fail(WEFT_INVALID, "more than %d arguments", WF_PEER_WORDS_MAX);
	}
	return st;
}

static enum weft_status
check_sizes(struct wf_peer_settings *set)
{
	bool sends = strcmp(set->op, "send") == 0;
	if (set->both_ways && set->kind != WF_PEER_BW) {
		return wf_fail(WEFT_INVALID, "-b (--bidirectional) is for bw");
	}
	if (set->all && set->kind == WF_PEER_RATE) {
		return wf_fail(WEFT_INVALID, "-a (--all) is for lat and bw; rate has updates of "
					     "one size (-s)");
	}
	if (set->all && set->bytes > 0) {
		return wf_fail(WEFT_INVALID, "give either -a (--all) or -s (--size)");
	}
	if (set->bytes == 0) {
		set->bytes = set->kind == WF_PEER_BW && !sends ? 64u << 10 : WF_PEER_UPDATE_BYTES;
	}
	bool messages = sends || set->kind == WF_PEER_RATE;
	if (messages && !set->all && set->bytes > WF_PEER_MESSAGE_MAX) {
		return wf_fail(WEFT_INVALID,
			       "-s %" PRIu64 ": a message carries %d bytes at most; --op=put "
			       "carries more",
			       set->bytes, WF_PEER_MESSAGE_MAX);
	}
	if (set->kind == WF_PEER_RATE && set->bytes % WF_PEER_UPDATE_BYTES != 0) {
		return wf_fail(WEFT_INVALID, "-s %" PRIu64 ": updates are multiples of %u bytes",
			       set->bytes, WF_PEER_UPDATE_BYTES);
	}
	return WEFT_OK;
}

enum weft_status
wf_peer_settle(struct wf_peer_settings *set, const struct wf_options *options, const char *host)
{
	set->gid_given = wf_options_origin(options, "gid_index") != WF_ORIGIN_DEFAULT;
	set->ib_port_given = wf_options_origin(options, "ib_port") != WF_ORIGIN_DEFAULT;
	set->mtu_given = wf_options_origin(options, "mtu") != WF_ORIGIN_DEFAULT;
	set->service_level_given = wf_options_origin(options, "sl") != WF_ORIGIN_DEFAULT;
	set->is_server = host == NULL;
	if (host != NULL) {
		enum weft_status st = wf_host_parse(host, (uint16_t)set->port, &set->to);
		if (st != WEFT_OK) {
			return st;
		}
		if (set->to.port > PORT_MAX) {
			return wf_fail(WEFT_INVALID,
				       "%.100s: the port must be at most %d, because the two that "
				       "follow are used too",
				       host, PORT_MAX);
		}
	}
	if (set->gid_given && set->device == NULL) {
		return wf_fail(WEFT_INVALID, "-x (--gid_index) needs -d (--device)");
	}
	return check_sizes(set);
}

static void
add(char *out, const char *key, const char *value)
{
	size_t used = strlen(out);
	(void)snprintf(out + used, WF_PEER_VERBS_BYTES - used, "%s%s%s", used > 0 ? "," : "", key,
		       value);
}

static void
add_number(char *out, const char *key, uint64_t value)
{
	char text[24];
	(void)snprintf(text, sizeof(text), "%" PRIu64, value);
	add(out, key, text);
}

enum weft_status
wf_peer_verbs_settings(const struct wf_peer_settings *set, char out[WF_PEER_VERBS_BYTES])
{
	out[0] = '\0';
	if (set->device != NULL && set->device[0] != '\0') {
		add(out, "device=", set->device);
	}
	if (set->gid_given) {
		add_number(out, "gid=", set->gid_index);
	}
	if (set->ib_port_given) {
		add_number(out, "port=", set->ib_port);
	}
	if (set->mtu_given) {
		add_number(out, "mtu=", set->mtu);
	}
	if (set->service_level_given) {
		add_number(out, "sl=", set->service_level);
	}
	if (set->verbs != NULL && set->verbs[0] != '\0') {
		add(out, "", set->verbs);
	}
	if (strlen(out) + 1 >= WF_PEER_VERBS_BYTES) {
		return wf_fail(WEFT_INVALID, "the settings for RDMA have more than %d characters",
			       WF_PEER_VERBS_BYTES - 2);
	}
	return WEFT_OK;
}
