/* SPDX-License-Identifier: Apache-2.0 */
/* fault_spec: reads a SPEC. Thread: any. */
#include "transport/fault/fault_spec.h"

#include <string.h>

#include "base/assert.h"
#include "base/env.h"

#define DURATION_MAX_NS (60 * WF_NS_PER_S)
#define COUNT_MAX 1000000000000ull
#define STALL_NS_DEFAULT (20 * WF_NS_PER_MS)
#define CHANCE_DIGITS 4 /* digits after the point of a percentage */

#define AT(point) (1u << WF_FAULT_AT_##point)

/* A piece of the SPEC; not terminated. */
struct piece {
	const char *at;
	size_t bytes;
};

struct kind {
	const char *name;
	bool lasts;      /* it has a duration */
	unsigned points; /* points at which a script may place it */
	const char *chance_form, *script_form;
};

static const struct kind kinds[WF_FAULT_KINDS] = {
	[WF_FAULT_REFUSE] = {.name = "refuse",
			     .points = AT(CONNECT) | AT(ACCEPT),
			     .chance_form = "refuse=2%",
			     .script_form = "refuse@connect:1-3 or refuse@accept:2"},
	[WF_FAULT_DELAY] = {.name = "delay",
			    .lasts = true,
			    .points = AT(UP) | AT(MSG) | AT(PUT) | AT(DONE) | AT(DOWN),
			    .chance_form = "delay=5ms or delay=10%:5ms",
			    .script_form = "delay@put:7:50ms; or up, msg, done, down for put"},
	[WF_FAULT_CUT] = {.name = "cut",
			  .points = AT(OP) | AT(UP) | AT(MSG) | AT(PUT) | AT(DONE) | AT(MS),
			  .chance_form = "cut=0.1%",
			  .script_form =
				  "cut@put:120 or cut@ms:1500; or op, up, msg, done for put"},
	[WF_FAULT_SPLIT] = {.name = "split",
			    .points = AT(POST) | AT(POLL),
			    .chance_form = "split=30%",
			    .script_form = "split@post:4-9 or split@poll:4-9"},
	[WF_FAULT_SHORT] = {.name = "short",
			    .points = AT(POST),
			    .chance_form = "short=20%",
			    .script_form = "short@post:4-9"},
	[WF_FAULT_STALL] = {.name = "stall",
			    .lasts = true,
			    .points = AT(POLL) | AT(MS),
			    .chance_form = "stall=1% or stall=1%:50ms",
			    .script_form = "stall@poll:500:200ms or stall@ms:1500:200ms"},
};

static const char *const point_names[WF_FAULT_POINTS] = {
	[WF_FAULT_AT_CONNECT] = "connect", [WF_FAULT_AT_ACCEPT] = "accept",
	[WF_FAULT_AT_POST] = "post",       [WF_FAULT_AT_OP] = "op",
	[WF_FAULT_AT_POLL] = "poll",       [WF_FAULT_AT_UP] = "up",
	[WF_FAULT_AT_MSG] = "msg",         [WF_FAULT_AT_PUT] = "put",
	[WF_FAULT_AT_DONE] = "done",       [WF_FAULT_AT_DOWN] = "down",
	[WF_FAULT_AT_MS] = "ms",
};

const char *
wf_fault_kind_name(enum wf_fault_kind kind)
{
	WF_ASSERT((unsigned)kind < WF_FAULT_KINDS);
	return kinds[kind].name;
}

static int
shown(const struct piece *piece)
{
	return piece->bytes < 100 ? (int)piece->bytes : 100;
}

static enum weft_status
fail_item(const struct piece *item, const char *what, const char *form)
{
	return wf_fail(WEFT_INVALID, "transport fault: \"%.*s\": %s; write %s", shown(item),
		       item->at, what, form);
}

/* Splits off what precedes the first `mark`, and drops the mark. Returns false if there is none. */
static bool
split_at(struct piece *rest, char mark, struct piece *before)
{
	const char *found = rest->bytes == 0 ? NULL : memchr(rest->at, mark, rest->bytes);
	if (found == NULL) {
		return false;
	}
	*before = (struct piece){rest->at, (size_t)(found - rest->at)};
	rest->at = found + 1;
	rest->bytes -= before->bytes + 1;
	return true;
}

static bool
is_text(const struct piece *piece, const char *text)
{
	return piece->bytes == strlen(text) && memcmp(piece->at, text, piece->bytes) == 0;
}

/* Parses digits at the front. Returns false if there are none, or if the number is above `max`. */
static bool
parse_number(struct piece *piece, uint64_t max, uint64_t *out)
{
	size_t n = 0;
	uint64_t value = 0;
	for (; n < piece->bytes && piece->at[n] >= '0' && piece->at[n] <= '9'; n++) {
		unsigned digit = (unsigned)(piece->at[n] - '0');
		if (value > (max - digit) / 10) {
			return false;
		}
		value = value * 10 + digit;
	}
	piece->at += n;
	piece->bytes -= n;
	*out = value;
	return n > 0;
}

static bool
read_number(struct piece piece, uint64_t max, uint64_t *out)
{
	return parse_number(&piece, max, out) && piece.bytes == 0;
}

/* "2%", "0.1%": in parts of a million. */
static bool
read_chance(struct piece piece, uint32_t *out)
{
	const uint64_t one_percent = WF_FAULT_CHANCE_ALL / 100;
	uint64_t whole = 0;
	if (!parse_number(&piece, 100, &whole)) {
		return false;
	}
	uint64_t chance = whole * one_percent;
	if (piece.bytes > 0 && piece.at[0] == '.') {
		struct piece digits = {piece.at + 1, piece.bytes - 1};
		size_t before = digits.bytes;
		uint64_t fraction = 0;
		if (!parse_number(&digits, one_percent - 1, &fraction) ||
		    before - digits.bytes > CHANCE_DIGITS) {
			return false;
		}
		for (size_t n = before - digits.bytes; n < CHANCE_DIGITS; n++) {
			fraction *= 10;
		}
		chance += fraction;
		piece = digits;
	}
	*out = (uint32_t)chance;
	return is_text(&piece, "%") && chance <= WF_FAULT_CHANCE_ALL;
}

/* "200us", "5ms", "1s". */
static bool
read_duration(struct piece piece, uint64_t *out)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} units[] = {{"us", WF_NS_PER_US}, {"ms", WF_NS_PER_MS}, {"s", WF_NS_PER_S}};
	uint64_t value = 0;
	if (!parse_number(&piece, DURATION_MAX_NS, &value)) {
		return false;
	}
	for (size_t i = 0; i < WF_ARRAY_COUNT(units); i++) {
		if (is_text(&piece, units[i].name)) {
			*out = value <= DURATION_MAX_NS / units[i].ns ? value * units[i].ns : 0;
			return *out > 0;
		}
	}
	return false;
}

static bool
find_kind(const struct piece *name, enum wf_fault_kind *out)
{
	for (unsigned i = 0; i < WF_FAULT_KINDS; i++) {
		if (is_text(name, kinds[i].name)) {
			*out = (enum wf_fault_kind)i;
			return true;
		}
	}
	return false;
}

static enum weft_status
fail_kind(const struct piece *item)
{
	return wf_fail(WEFT_INVALID,
		       "transport fault: \"%.*s\" is none of the items there are: seed=N, "
		       "refuse, delay, cut, split, short, stall with =CHANCE or @POINT:N",
		       shown(item), item->at);
}

/* "5ms" (each time), "10%", "10%:5ms". */
static bool
read_chance_value(struct piece value, enum wf_fault_kind kind, struct wf_fault_spec *spec)
{
	uint32_t *chance = &spec->chance[kind];
	uint64_t *lasts_ns = &spec->lasts_ns[kind];
	struct piece first;
	if (!kinds[kind].lasts) {
		return read_chance(value, chance);
	}
	if (split_at(&value, ':', &first)) {
		return read_chance(first, chance) && read_duration(value, lasts_ns);
	}
	if (kind == WF_FAULT_STALL) {
		*lasts_ns = STALL_NS_DEFAULT;
		return read_chance(value, chance);
	}
	*chance = WF_FAULT_CHANCE_ALL;
	return read_duration(value, lasts_ns);
}

static enum weft_status
parse_chance(const struct piece *item, const struct piece *name, struct piece value,
	     struct wf_fault_spec *spec)
{
	enum wf_fault_kind kind;
	if (is_text(name, "seed")) {
		return read_number(value, UINT64_MAX, &spec->seed)
			       ? WEFT_OK
			       : fail_item(item, "no number", "seed=7, up to 2^64 - 1");
	}
	if (!find_kind(name, &kind)) {
		return fail_kind(item);
	}
	if (!read_chance_value(value, kind, spec)) {
		return fail_item(item, "no chance (0 to 100, with %) or no duration (up to 60s)",
				 kinds[kind].chance_form);
	}
	return WEFT_OK;
}

/* "7", "7-9". */
static bool
read_range(struct piece range, struct wf_fault_rule *rule)
{
	struct piece first = range;
	bool several = split_at(&range, '-', &first);
	return !(several && rule->point == WF_FAULT_AT_MS) &&
	       read_number(first, COUNT_MAX, &rule->first) &&
	       read_number(range, COUNT_MAX, &rule->last) && rule->first > 0 &&
	       rule->first <= rule->last;
}

/* "put:120", "poll:500:200ms". */
static bool
read_rule(struct piece value, struct wf_fault_rule *rule)
{
	struct piece point, range = value;
	if (!split_at(&range, ':', &point)) {
		return false;
	}
	unsigned i = 0;
	while (i < WF_FAULT_POINTS && !is_text(&point, point_names[i])) {
		i++;
	}
	if (i == WF_FAULT_POINTS || (kinds[rule->kind].points & (1u << i)) == 0) {
		return false;
	}
	rule->point = (enum wf_fault_point)i;
	struct piece count;
	if (!kinds[rule->kind].lasts) {
		return read_range(range, rule);
	}
	return split_at(&range, ':', &count) && read_range(count, rule) &&
	       read_duration(range, &rule->lasts_ns);
}

static enum weft_status
parse_rule(const struct piece *item, const struct piece *name, struct piece value,
	   struct wf_fault_spec *spec)
{
	struct wf_fault_rule rule = {0};
	if (!find_kind(name, &rule.kind)) {
		return fail_kind(item);
	}
	if (spec->rule_count == WF_FAULT_RULES_MAX) {
		return wf_fail(WEFT_INVALID,
			       "transport fault: \"%.*s\": %u scripted items are the most; use "
			       "ranges, or chances",
			       shown(item), item->at, WF_FAULT_RULES_MAX);
	}
	if (!read_rule(value, &rule)) {
		return fail_item(item, "no place for it, no number from 1 on, or no duration",
				 kinds[rule.kind].script_form);
	}
	spec->rule[spec->rule_count++] = rule;
	return WEFT_OK;
}

static enum weft_status
parse_item(const struct piece *item, struct wf_fault_spec *spec)
{
	struct piece value = *item, name;
	if (split_at(&value, '@', &name)) {
		return parse_rule(item, &name, value, spec);
	}
	if (split_at(&value, '=', &name)) {
		return parse_chance(item, &name, value, spec);
	}
	return fail_kind(item);
}

enum weft_status
wf_fault_spec_parse(const char *text, size_t bytes, struct wf_fault_spec *out)
{
	struct wf_fault_spec spec = {.seed = 1};
	struct piece rest = {text, bytes};
	struct piece item;
	bool more = bytes > 0;
	if (bytes > WF_FAULT_SPEC_BYTES) {
		return wf_fail(WEFT_INVALID, "transport fault: a SPEC of %zu bytes; at most %u",
			       bytes, WF_FAULT_SPEC_BYTES);
	}
	while (more) {
		more = split_at(&rest, ',', &item);
		if (!more) {
			item = rest;
		}
		enum weft_status st = parse_item(&item, &spec);
		if (st != WEFT_OK) {
			return st;
		}
	}
	*out = spec;
	return WEFT_OK;
}
