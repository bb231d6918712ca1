/* SPDX-License-Identifier: Apache-2.0 */
/* hello: HELLO, WELCOME and the rule of admission. Thread: any; pure functions. */
#include "wire/hello.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/settings.h"
#include "wire/bytes.h"
#include "wire/job.h"
#include "wire/shape.h"

#define WHOLE_WORD_MAX 40u /* characters of a word that a refusal quotes as it is */

#define HELLO "HELLO"
#define WELCOME "WELCOME"

static void
put_auth(struct wf_writer *w, const struct wf_auth *auth)
{
	wf_put_u16(w, auth->scheme);
	wf_put_bytes(w, auth->nonce, sizeof(auth->nonce));
	wf_put_bytes(w, auth->mac, sizeof(auth->mac));
}

static void
get_auth(struct wf_reader *r, struct wf_auth *auth)
{
	auth->scheme = wf_get_u16(r);
	wf_get_bytes(r, auth->nonce, sizeof(auth->nonce));
	wf_get_bytes(r, auth->mac, sizeof(auth->mac));
}

static enum weft_status
check_auth(const char *message, const struct wf_auth *auth)
{
	if (auth->scheme != 0) {
		return wf_refuse(message, "auth.scheme", auth->scheme,
				 "0: the path head before it has the code");
	}
	for (size_t i = 0; i < sizeof(auth->nonce); i++) {
		if (auth->nonce[i] != 0) {
			return wf_refuse(message, "a byte of auth.nonce", auth->nonce[i],
					 "0 under scheme 0");
		}
	}
	for (size_t i = 0; i < sizeof(auth->mac); i++) {
		if (auth->mac[i] != 0) {
			return wf_refuse(message, "a byte of auth.mac", auth->mac[i],
					 "0 under scheme 0");
		}
	}
	return WEFT_OK;
}

size_t
wf_hello_encode(const struct wf_hello *hello, uint8_t *out)
{
	struct wf_writer w = {.base = out, .capacity = WF_HELLO_MAX};

	wf_put_u16(&w, hello->version_min);
	wf_put_u16(&w, hello->version_max);
	wf_put_u8(&w, hello->service);
	wf_put_u32(&w, hello->pserver_idx);
	wf_put_u32(&w, hello->lane_idx);
	wf_put_u32(&w, hello->pserver_count);
	wf_put_u32(&w, hello->lane_count);
	wf_put_u32(&w, hello->trainer_id);
	wf_put_u32(&w, hello->trainer_count);
	wf_put_u64(&w, hello->incarnation);
	wf_put_u32(&w, hello->path);
	wf_put_u64(&w, hello->epoch);
	wf_put_u64(&w, hello->job_digest);
	wf_put_u64(&w, hello->tensors_digest);
	wf_put_u64(&w, hello->placement_digest);
	wf_put_u64(&w, hello->numerics_digest);
	wf_put_u64(&w, hello->job_bytes);
	wf_put_u32(&w, hello->msg_bytes_max);
	wf_put_u64(&w, hello->put_bytes_max);
	wf_put_u32(&w, hello->pid);
	wf_put_text(&w, hello->host, sizeof(hello->host));
	put_auth(&w, &hello->auth);
	wf_put_text(&w, hello->options, sizeof(hello->options));
	wf_put_text(&w, hello->tensors, sizeof(hello->tensors));
	wf_put_text(&w, hello->compared, sizeof(hello->compared));
	WF_ASSERT(!w.bad);
	return w.used;
}

/* Reads everything between the versions and the host name. */
static void
get_numbers(struct wf_reader *r, struct wf_hello *hello)
{
	hello->service = wf_get_u8(r);
	hello->pserver_idx = wf_get_u32(r);
	hello->lane_idx = wf_get_u32(r);
	hello->pserver_count = wf_get_u32(r);
	hello->lane_count = wf_get_u32(r);
	hello->trainer_id = wf_get_u32(r);
	hello->trainer_count = wf_get_u32(r);
	hello->incarnation = wf_get_u64(r);
	hello->path = wf_get_u32(r);
	hello->epoch = wf_get_u64(r);
	hello->job_digest = wf_get_u64(r);
	hello->tensors_digest = wf_get_u64(r);
	hello->placement_digest = wf_get_u64(r);
	hello->numerics_digest = wf_get_u64(r);
	hello->job_bytes = wf_get_u64(r);
	hello->msg_bytes_max = wf_get_u32(r);
	hello->put_bytes_max = wf_get_u64(r);
	hello->pid = wf_get_u32(r);
}

/* The two versions come first in every version of HELLO, so that this can be checked for any peer.
 */
static enum weft_status
check_versions(const struct wf_hello *hello)
{
	if (hello->version_min == 0) {
		return wf_refuse(HELLO, "version_min", 0, "1 or more");
	}
	if (hello->version_min > hello->version_max) {
		return wf_fail(WEFT_PROTOCOL, HELLO ": version_min is %u, above version_max %u",
			       hello->version_min, hello->version_max);
	}
	if (hello->version_min > WF_WIRE_VERSION || hello->version_max < WF_WIRE_VERSION_MIN) {
		return wf_fail(WEFT_MISMATCH,
			       "the trainer speaks wire versions %u to %u, this end %u to %u: "
			       "install the same weft on both",
			       hello->version_min, hello->version_max, WF_WIRE_VERSION_MIN,
			       WF_WIRE_VERSION);
	}
	return WEFT_OK;
}

static enum weft_status
check_counts(const struct wf_hello *hello)
{
	uint64_t lanes = (uint64_t)hello->pserver_count * hello->lane_count;

	if (lanes == 0 || lanes > WF_LANE_COUNT_MAX) {
		return wf_fail(WEFT_PROTOCOL,
			       HELLO ": pserver_count is %" PRIu32 " and lane_count %" PRIu32
				     ", the product must be 1 to %d",
			       hello->pserver_count, hello->lane_count, WF_LANE_COUNT_MAX);
	}
	if (hello->trainer_count == 0 || hello->trainer_count > WF_TRAINER_COUNT_MAX) {
		return wf_refuse(HELLO, "trainer_count", hello->trainer_count, "1 to 65536");
	}
	if (hello->pserver_idx >= hello->pserver_count) {
		return wf_refuse(HELLO, "pserver_idx", hello->pserver_idx, "below pserver_count");
	}
	if (hello->lane_idx >= hello->lane_count) {
		return wf_refuse(HELLO, "lane_idx", hello->lane_idx, "below lane_count");
	}
	if (hello->trainer_id >= hello->trainer_count) {
		return wf_fail(WEFT_PROTOCOL,
			       HELLO ": trainer_id is %" PRIu32
				     ", must be below %s, which is %" PRIu32,
			       hello->trainer_id,
			       hello->service == WF_SERVICE_REGISTRY ? "trainer_count"
								     : "num_gradient_servers",
			       hello->trainer_count);
	}
	return WEFT_OK;
}

/* Checks what differs in the HELLO of a pserver: it means the registrar, which is lane 0 of pserver
 * 0, and counts pservers where a trainer counts trainers. */
static enum weft_status
check_registry(const struct wf_hello *hello)
{
	if (hello->pserver_idx != 0) {
		return wf_refuse(HELLO, "pserver_idx", hello->pserver_idx, "0 for the registry");
	}
	if (hello->lane_idx != 0) {
		return wf_refuse(HELLO, "lane_idx", hello->lane_idx, "0 for the registry");
	}
	if (hello->trainer_count != hello->pserver_count) {
		return wf_refuse(HELLO, "trainer_count", hello->trainer_count,
				 "pserver_count for the registry");
	}
	return WEFT_OK;
}

/* A watcher is nobody's peer: it means lane 0 of the pserver that it has reached, and there is one
 * of everything. */
static enum weft_status
check_watch(const struct wf_hello *hello)
{
	const struct {
		const char *name;
		uint32_t value;
	} one[] = {
		{"pserver_count", hello->pserver_count},
		{"lane_count", hello->lane_count},
		{"trainer_count", hello->trainer_count},
	};
	for (size_t i = 0; i < WF_ARRAY_COUNT(one); i++) {
		if (one[i].value != 1) {
			return wf_refuse(HELLO, one[i].name, one[i].value, "1 for a watcher");
		}
	}
	return WEFT_OK;
}

static enum weft_status
check_hello(const struct wf_hello *hello)
{
	if (hello->service < WF_SERVICE_DENSE || hello->service > WF_SERVICE_WATCH) {
		return wf_refuse(HELLO, "service", hello->service,
				 "2 (dense), 3 (sparse), 4 (registry) or 5 (watch)");
	}
	enum weft_status st = check_counts(hello);
	if (st == WEFT_OK && hello->service == WF_SERVICE_REGISTRY) {
		st = check_registry(hello);
	} else if (st == WEFT_OK && hello->service == WF_SERVICE_WATCH) {
		st = check_watch(hello);
	}
	if (st != WEFT_OK) {
		return st;
	}
	if (hello->incarnation == 0) {
		return wf_refuse(HELLO, "incarnation", 0, "anything else");
	}
	if (hello->path == 0) {
		return wf_refuse(HELLO, "path", 0, "1 or more");
	}
	if (hello->job_bytes == 0 || hello->job_bytes > WF_JOB_BYTES_MAX) {
		return wf_refuse(HELLO, "job_bytes", hello->job_bytes, "1 to 16777216");
	}
	if (hello->msg_bytes_max == 0) {
		return wf_refuse(HELLO, "msg_bytes_max", 0, "1 or more");
	}
	if (hello->put_bytes_max == 0) {
		return wf_refuse(HELLO, "put_bytes_max", 0, "1 or more");
	}
	return check_auth(HELLO, &hello->auth);
}

/* Reads the texts behind auth. */
static enum weft_status
get_summaries(struct wf_reader *r, struct wf_hello *hello)
{
	const struct {
		const char *name;
		char *text;
	} summary[] = {
		{"options", hello->options},
		{"tensors", hello->tensors},
		{"compared", hello->compared},
	};
	for (size_t i = 0; i < WF_ARRAY_COUNT(summary); i++) {
		wf_get_string(r, summary[i].text, WF_SUMMARY_BYTES);
		if (r->bad) {
			return wf_refuse_text(HELLO, summary[i].name, r, WF_SUMMARY_BYTES);
		}
	}
	return WEFT_OK;
}

enum weft_status
wf_hello_decode(const uint8_t *in, size_t bytes, struct wf_hello *out)
{
	struct wf_reader r = {.base = in, .bytes = bytes};
	struct wf_hello hello = {0};

	if (bytes > WF_HELLO_MAX) {
		return wf_refuse(HELLO, "its length", bytes, "at most 1024");
	}
	hello.version_min = wf_get_u16(&r);
	hello.version_max = wf_get_u16(&r);
	if (r.bad) {
		return wf_refuse_length(HELLO, &r);
	}
	enum weft_status st = check_versions(&hello);
	if (st != WEFT_OK) {
		return st;
	}
	get_numbers(&r, &hello);
	if (r.bad) {
		return wf_refuse_length(HELLO, &r);
	}
	wf_get_string(&r, hello.host, sizeof(hello.host));
	if (r.bad) {
		return wf_refuse_text(HELLO, "host", &r, sizeof(hello.host));
	}
	get_auth(&r, &hello.auth);
	if (r.bad) {
		return wf_refuse_length(HELLO, &r);
	}
	st = get_summaries(&r, &hello);
	if (st != WEFT_OK) {
		return st;
	}
	if (!wf_reader_done(&r)) {
		return wf_refuse_length(HELLO, &r);
	}
	st = check_hello(&hello);
	if (st != WEFT_OK) {
		return st;
	}
	*out = hello;
	return WEFT_OK;
}

uint16_t
wf_hello_version(const struct wf_hello *hello)
{
	WF_ASSERT(hello->version_min <= WF_WIRE_VERSION);
	WF_ASSERT(hello->version_max >= WF_WIRE_VERSION_MIN);
	return hello->version_max < WF_WIRE_VERSION ? hello->version_max : WF_WIRE_VERSION;
}

size_t
wf_welcome_encode(const struct wf_welcome *welcome, uint8_t *out)
{
	struct wf_writer w = {.base = out, .capacity = WF_HELLO_MAX};

	wf_put_u16(&w, welcome->refusal == WEFT_OK ? welcome->version : 0);
	wf_put_u16(&w, welcome->refusal);
	wf_put_u32(&w, welcome->flags);
	wf_put_u64(&w, welcome->incarnation);
	wf_put_u64(&w, welcome->epoch);
	wf_put_u32(&w, welcome->slot_count);
	wf_put_u32(&w, welcome->msg_bytes_max);
	wf_put_u64(&w, welcome->put_bytes_max);
	wf_put_text(&w, welcome->reason, sizeof(welcome->reason));
	put_auth(&w, &welcome->auth);
	WF_ASSERT(!w.bad);
	return w.used;
}

static enum weft_status
check_refused(const struct wf_welcome *welcome)
{
	enum weft_status st = wf_status_check(WELCOME, "refusal", welcome->refusal);
	if (st != WEFT_OK) {
		return st;
	}
	if (welcome->version != 0) {
		return wf_refuse(WELCOME, "version", welcome->version, "0 in a refusal");
	}
	return WEFT_OK;
}

static enum weft_status
check_admitted(const struct wf_welcome *welcome)
{
	if (welcome->version < WF_WIRE_VERSION_MIN || welcome->version > WF_WIRE_VERSION) {
		return wf_fail(WEFT_PROTOCOL, WELCOME ": version is %u, this end speaks %u to %u",
			       welcome->version, WF_WIRE_VERSION_MIN, WF_WIRE_VERSION);
	}
	if (welcome->incarnation == 0) {
		return wf_refuse(WELCOME, "incarnation", 0, "anything else");
	}
	if (!wf_is_power_of_two(welcome->slot_count) ||
	    welcome->slot_count > WF_GRANT_SLOT_COUNT_MAX) {
		return wf_refuse(WELCOME, "slot_count", welcome->slot_count,
				 "a power of two up to 1024");
	}
	if (welcome->msg_bytes_max == 0) {
		return wf_refuse(WELCOME, "msg_bytes_max", 0, "1 or more");
	}
	if (welcome->put_bytes_max == 0) {
		return wf_refuse(WELCOME, "put_bytes_max", 0, "1 or more");
	}
	return WEFT_OK;
}

static enum weft_status
check_welcome(const struct wf_welcome *welcome)
{
	enum weft_status st =
		welcome->refusal == WEFT_OK ? check_admitted(welcome) : check_refused(welcome);
	if (st != WEFT_OK) {
		return st;
	}
	bool refused = welcome->refusal != WEFT_OK;
	uint32_t allowed = refused ? WF_WELCOME_JOB_OVER
				   : WF_WELCOME_SEND_JOB | WF_WELCOME_GOES_BACK |
					     WF_WELCOME_ENDS_TOGETHER | WF_WELCOME_MEASURES |
					     WF_WELCOME_MAY_LEAVE | WF_WELCOME_JOINS;
	if ((welcome->flags & ~allowed) != 0) {
		return wf_refuse(WELCOME, "flags", welcome->flags,
				 refused ? "0 or 2 (the job is over)" : "bits 0 and 2 to 6 alone");
	}
	return check_auth(WELCOME, &welcome->auth);
}

enum weft_status
wf_welcome_decode(const uint8_t *in, size_t bytes, struct wf_welcome *out)
{
	struct wf_reader r = {.base = in, .bytes = bytes};
	struct wf_welcome welcome = {0};

	if (bytes > WF_HELLO_MAX) {
		return wf_refuse(WELCOME, "its length", bytes, "at most 1024");
	}
	welcome.version = wf_get_u16(&r);
	welcome.refusal = wf_get_u16(&r);
	welcome.flags = wf_get_u32(&r);
	welcome.incarnation = wf_get_u64(&r);
	welcome.epoch = wf_get_u64(&r);
	welcome.slot_count = wf_get_u32(&r);
	welcome.msg_bytes_max = wf_get_u32(&r);
	welcome.put_bytes_max = wf_get_u64(&r);
	if (r.bad) {
		return wf_refuse_length(WELCOME, &r);
	}
	wf_get_string(&r, welcome.reason, sizeof(welcome.reason));
	if (r.bad) {
		return wf_refuse_text(WELCOME, "reason", &r, sizeof(welcome.reason));
	}
	get_auth(&r, &welcome.auth);
	if (!wf_reader_done(&r)) {
		return wf_refuse_length(WELCOME, &r);
	}
	enum weft_status st = check_welcome(&welcome);
	if (st != WEFT_OK) {
		return st;
	}
	*out = welcome;
	return WEFT_OK;
}

/* A property that has to be the same for all members. */
struct trait {
	const char *name;
	uint64_t first;
	uint64_t other;
	bool digest; /* shown in hex */
	const char *remedy;
	/* For digests: the summaries of their values; for words: the words; NULL: nothing more is
	 * known. */
	const char *first_summary;
	const char *other_summary;
};

static void
format_trait(const struct trait *t, uint64_t value, char *out, size_t bytes)
{
	if (t->digest) {
		snprintf(out, bytes, "%016" PRIx64, value);
	} else {
		snprintf(out, bytes, "%" PRIu64, value);
	}
}

static enum weft_status
mismatch(const struct wf_hello *first, const struct wf_hello *hello, const struct trait *t)
{
	char firsts[24];
	char others[24];

	format_trait(t, t->first, firsts, sizeof(firsts));
	format_trait(t, t->other, others, sizeof(others));
	return wf_fail(WEFT_MISMATCH,
		       "trainer %" PRIu32 " on %s (pid %" PRIu32 ") has %s %s, trainer %" PRIu32
		       " on %s (pid %" PRIu32 ") has %s: %s",
		       hello->trainer_id, hello->host, hello->pid, t->name, others,
		       first->trainer_id, first->host, first->pid, firsts, t->remedy);
}

/* The length of the word at `text`. */
static size_t
word_length(const char *text)
{
	return strcspn(text, " ");
}

/* Finds the first word in which two summaries differ. Returns false if they do not, so the
 * difference is behind them. */
static bool
first_difference(const char **a, const char **b)
{
	while (**a != '\0' || **b != '\0') {
		size_t length = word_length(*a);
		if (length != word_length(*b) || strncmp(*a, *b, length) != 0) {
			return true;
		}
		*a += length + ((*a)[length] == ' ' ? 1 : 0);
		*b += length + ((*b)[length] == ' ' ? 1 : 0);
	}
	return false;
}

/* A word, or a part of one: `length` characters. */
struct piece {
	const char *at;
	size_t length;
};

static bool
is_piece(struct piece a, struct piece b)
{
	return a.length == b.length && strncmp(a.at, b.at, a.length) == 0;
}

/* Splits off the next part of a list with commas; `rest` is advanced. Returns false at the end. */
static bool
next_part(struct piece *rest, struct piece *out)
{
	if (rest->length == 0) {
		return false;
	}
	const char *comma = memchr(rest->at, ',', rest->length);
	size_t length = comma != NULL ? (size_t)(comma - rest->at) : rest->length;
	size_t used = length + (comma != NULL ? 1 : 0);
	*out = (struct piece){rest->at, length};
	*rest = (struct piece){rest->at + used, rest->length - used};
	return true;
}

static bool
has_part(struct piece word, struct piece part)
{
	struct piece own;
	while (next_part(&word, &own)) {
		if (is_piece(own, part)) {
			return true;
		}
	}
	return false;
}

/* Formats the word. Of a long "name=a,b,c" only the name and those parts that `other` lacks, as far
 * as WHOLE_WORD_MAX goes: a table has many, and all of them would leave no room for the remedy. */
static void
format_difference(struct piece word, struct piece other, char *out, size_t bytes)
{
	const char *equals = memchr(word.at, '=', word.length);
	size_t name = equals != NULL ? (size_t)(equals - word.at) + 1 : 0;
	bool same_name = name > 0 && other.length >= name && strncmp(word.at, other.at, name) == 0;
	bool other_short = !same_name || other.length <= WHOLE_WORD_MAX;
	if (word.length <= WHOLE_WORD_MAX && other_short) {
		(void)snprintf(out, bytes, "%.*s", word.length > 0 ? (int)word.length : 7,
			       word.length > 0 ? word.at : "no more");
		return;
	}
	struct piece rest = {word.at + name, word.length - name};
	struct piece others = {other.at, 0}; /* another name: it has none of these */
	if (same_name) {
		others = (struct piece){other.at + name, other.length - name};
	}
	struct piece part;
	size_t used = (size_t)snprintf(out, bytes, "%.*s", (int)name, word.at);
	bool found = false;
	bool full = false;
	while (!full && next_part(&rest, &part) && used < bytes) {
		if (!has_part(others, part)) {
			full = found && used + 1 + part.length > WHOLE_WORD_MAX;
			used += (size_t)snprintf(out + used, bytes - used, "%s%.*s",
						 found ? "," : "", full ? 3 : (int)part.length,
						 full ? "..." : part.at);
			found = true;
		}
	}
	if (!found && used < bytes) {
		(void)snprintf(out + used, bytes - used, "none of these");
	}
}

/* Finds the word of a summary that begins with `name`, "momentum="; length 0: there is none. */
static struct piece
find_setting(const char *summary, struct piece name)
{
	while (*summary != '\0') {
		const struct piece word = {summary, word_length(summary)};
		if (word.length >= name.length && strncmp(word.at, name.at, name.length) == 0) {
			return word;
		}
		summary += word.length + (summary[word.length] == ' ' ? 1 : 0);
	}
	return (struct piece){summary, 0};
}

/* Finds the first setting of `a` that `b` does not have with this value. Returns false if there is
 * none. For a summary that was cut, settings that are missing are unknown. */
static bool
next_setting(const char *a, const char *b, struct piece *word, struct piece *other)
{
	static const struct piece more = {WF_SETTINGS_MORE, sizeof(WF_SETTINGS_MORE) - 1};
	const bool whole = find_setting(b, more).length == 0;
	for (; *a != '\0'; a += word->length + (a[word->length] == ' ' ? 1 : 0)) {
		*word = (struct piece){a, word_length(a)};
		const char *equals = memchr(a, '=', word->length);
		const size_t name = equals != NULL ? (size_t)(equals - a) + 1 : word->length;
		*other = find_setting(b, (struct piece){a, name});
		if (!is_piece(*word, *other) && !is_piece(*word, more) &&
		    (whole || other->length > 0)) {
			return true;
		}
	}
	return false;
}

/* Formats the value of a trainer whose summary has no `name=`: the default. */
static void
format_default(struct piece word, char *out, size_t bytes)
{
	const char *equals = memchr(word.at, '=', word.length);
	const size_t name = equals != NULL ? (size_t)(equals - word.at) : word.length;
	char initial[64];
	if (wf_setting_initial(word.at, name, initial, sizeof(initial))) {
		(void)snprintf(out, bytes, "%.*s=%s", (int)name, word.at, initial);
	} else {
		(void)snprintf(out, bytes, "another %.*s", (int)name, word.at);
	}
}

static enum weft_status
mismatch_texts(const struct wf_hello *first, const struct wf_hello *hello, const struct trait *t,
	       const char *first_text, const char *other_text)
{
	return wf_fail(WEFT_MISMATCH,
		       "trainer %" PRIu32 " on %s (pid %" PRIu32 ") has %s, trainer %" PRIu32
		       " on %s (pid %" PRIu32 ") has %s: %s",
		       hello->trainer_id, hello->host, hello->pid, other_text, first->trainer_id,
		       first->host, first->pid, first_text, t->remedy);
}

/* The job digests differ. Summaries list settings that are not at their default, in any order. */
static enum weft_status
mismatch_setting(const struct wf_hello *first, const struct wf_hello *hello, const struct trait *t)
{
	char said[WF_SUMMARY_BYTES];
	char missing[WF_SUMMARY_BYTES];
	struct piece word;
	struct piece other;
	bool is_firsts = next_setting(t->first_summary, t->other_summary, &word, &other);
	if (!is_firsts && !next_setting(t->other_summary, t->first_summary, &word, &other)) {
		return mismatch(first, hello, t);
	}
	(void)snprintf(said, sizeof(said), "%.*s", (int)word.length, word.at);
	if (other.length > 0) {
		(void)snprintf(missing, sizeof(missing), "%.*s", (int)other.length, other.at);
	} else {
		format_default(word, missing, sizeof(missing));
	}
	return is_firsts ? mismatch_texts(first, hello, t, said, missing)
			 : mismatch_texts(first, hello, t, missing, said);
}

/* Digests or words differ: reports the first word that differs, with both values. */
static enum weft_status
mismatch_named(const struct wf_hello *first, const struct wf_hello *hello, const struct trait *t)
{
	const char *firsts = t->first_summary;
	const char *others = t->other_summary;
	if (t->first_summary == NULL || !first_difference(&firsts, &others)) {
		return mismatch(first, hello, t);
	}
	const struct piece first_word = {firsts, word_length(firsts)};
	const struct piece other_word = {others, word_length(others)};
	char first_text[WF_SUMMARY_BYTES];
	char other_text[WF_SUMMARY_BYTES];
	format_difference(first_word, other_word, first_text, sizeof(first_text));
	format_difference(other_word, first_word, other_text, sizeof(other_text));
	return mismatch_texts(first, hello, t, first_text, other_text);
}

enum weft_status
wf_hello_match_compared(const struct wf_hello *spoken, const struct wf_hello *hello)
{
	const struct trait words = {
		.remedy = "give every trainer the same",
		.first_summary = spoken->compared,
		.other_summary = hello->compared,
	};
	const char *a = spoken->compared;
	const char *b = hello->compared;
	if (*a == '\0' || *b == '\0' || !first_difference(&a, &b)) {
		return WEFT_OK;
	}
	return mismatch_named(spoken, hello, &words);
}

enum weft_status
wf_hello_match(const struct wf_hello *first, const struct wf_hello *hello)
{
	const struct wf_hello *a = first;
	const struct wf_hello *b = hello;
	bool sparse = a->service == WF_SERVICE_SPARSE;
	const struct trait trait[] = {
		{"service", a->service, b->service, false,
		 "give every process the same ports_num and ports_num_for_sparse", NULL, NULL},
		{"num_gradient_servers", a->trainer_count, b->trainer_count, false,
		 "give every trainer the same", NULL, NULL},
		{"number of pservers", a->pserver_count, b->pserver_count, false,
		 "give every trainer the same list in --pservers", NULL, NULL},
		{sparse ? "ports_num_for_sparse" : "ports_num", a->lane_count, b->lane_count, false,
		 "give every trainer the same", NULL, NULL},
		{"this pserver as number", a->pserver_idx, b->pserver_idx, false,
		 "give every trainer the same order in --pservers", NULL, NULL},
		{"this lane as number", a->lane_idx, b->lane_idx, false,
		 "give every trainer the same port", NULL, NULL},
		{sparse ? "tables digest" : "tensors digest", a->tensors_digest, b->tensors_digest,
		 true,
		 sparse ? "declare the same tables, in the same order, on every trainer"
			: "declare the same tensors, in the same order, on every trainer",
		 a->tensors, b->tensors},
		{"job digest", a->job_digest, b->job_digest, true,
		 "give every trainer the same options", a->options, b->options},
		{"placement digest", a->placement_digest, b->placement_digest, true,
		 "install the same weft on all", NULL, NULL},
		{"job_bytes", a->job_bytes, b->job_bytes, false, "install the same weft on all",
		 NULL, NULL},
	};
	for (size_t i = 0; i < WF_ARRAY_COUNT(trait); i++) {
		if (trait[i].first != trait[i].other) {
			return trait[i].first_summary == a->options
				       ? mismatch_setting(first, hello, &trait[i])
				       : mismatch_named(first, hello, &trait[i]);
		}
	}
	return WEFT_OK;
}
