/* SPDX-License-Identifier: Apache-2.0 */
/* LIBSVM's layout with two classes: `label index:value index:value ...`, one blank between them and
 * possibly one at the end, as LIBSVM's own tools write it; indices from 1, ascending. Thread: the
 * caller's. */
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "trainer/readers/bags_internal.h"

#define ROW_BYTES_MIN 2u     /* a label, newline */
#define INDEX_DIGITS_MAX 19u /* so that it fits a u64 */
#define VALUE_MAX 1e30       /* so that it is finite as f32 */
#define WHY_BYTES 400u       /* of a refusal */

/* Where a label was seen first. */
struct place {
	const char *path; /* NULL: nowhere so far */
	size_t line;
};

struct state {
	struct wf_bags *bags;
	uint64_t last; /* index before in this line; 0: none */
	struct place zero, minus;
};

/* The lower class is -1 or 0, but not both in one set: that would be three classes. A streamed set
 * looks for the two before (wf_lines_scan). */
static enum weft_status
read_label(const struct wf_field *field, struct state *state)
{
	bool is_zero = wf_field_is(field, "0");
	bool is_minus = wf_field_is(field, "-1");

	if (!is_zero && !is_minus && !wf_field_is(field, "1") && !wf_field_is(field, "+1")) {
		return wf_field_refuse(field, "is not a label of two classes: -1 or 0, and +1");
	}
	struct place *seen = is_zero ? &state->zero : &state->minus;
	const struct place *other = is_zero ? &state->minus : &state->zero;
	if ((is_zero || is_minus) && other->path != NULL) {
		char why[WHY_BYTES];
		snprintf(why, sizeof(why),
			 "is a third label: %.300s: line %zu has %s as the lower one", other->path,
			 other->line, is_zero ? "-1" : "0");
		return wf_field_refuse(field, why);
	}
	if ((is_zero || is_minus) && seen->path == NULL) {
		*seen = (struct place){.path = field->path, .line = field->line};
	}
	state->bags->y[state->bags->rows] = is_zero || is_minus ? 0.0f : 1.0f;
	return WEFT_OK;
}

/* Digits without a leading zero. 0: not such a number. */
static uint64_t
parse_index(const char *at, size_t count)
{
	uint64_t idx = 0;

	if (count == 0 || count > INDEX_DIGITS_MAX || at[0] == '0') {
		return 0;
	}
	for (size_t i = 0; i < count; i++) {
		if (at[i] < '0' || at[i] > '9') {
			return 0;
		}
		idx = 10 * idx + (uint64_t)(at[i] - '0');
	}
	return idx;
}

static enum weft_status
read_entry(const struct wf_field *field, struct state *state)
{
	static const struct wf_number_rule rule = {.min = -VALUE_MAX, .max = VALUE_MAX};
	const char *colon = memchr(field->at, ':', field->count);
	struct wf_field number = *field;
	double value = 0.0;

	if (colon == NULL) {
		return wf_field_refuse(field, "is not index:value");
	}
	uint64_t idx = parse_index(field->at, (size_t)(colon - field->at));
	if (idx == 0) {
		return wf_field_refuse(
			field, "has no whole number from 1 to 9999999999999999999 before its "
			       "colon");
	}
	if (idx <= state->last) {
		return wf_field_refuse(field,
				       "has an index that is not greater than the one before it");
	}
	number.at = colon + 1;
	number.count = field->count - (size_t)(colon + 1 - field->at);
	enum weft_status st = wf_field_number(&number, &rule, &value);
	if (st == WEFT_OK) {
		wf_bags_add(state->bags, idx, (float)value);
		state->last = idx;
	}
	return st;
}

static enum weft_status
read_line(struct wf_cut *cut, struct state *state)
{
	enum weft_status st = wf_bags_begin_row(state->bags, cut);
	unsigned column = 0;

	state->last = 0;
	while (st == WEFT_OK && (column == 0 || cut->at < cut->end)) {
		const char *stop = memchr(cut->at, ' ', (size_t)(cut->end - cut->at));
		const struct wf_field field = {
			.at = cut->at,
			.count = (size_t)((stop == NULL ? cut->end : stop) - cut->at),
			.path = cut->path,
			.line = cut->line,
			.column = ++column,
		};
		cut->at = stop == NULL ? cut->end : stop + 1;
		st = column == 1 ? read_label(&field, state) : read_entry(&field, state);
	}
	if (st == WEFT_OK) {
		wf_bags_end_slot(state->bags, 0);
		wf_bags_end_row(state->bags);
	}
	return st;
}

static size_t
count_colons(const struct wf_text *text)
{
	size_t colons = 0;
	for (size_t i = 0; i < text->count; i++) {
		colons += text->bytes[i] == ':';
	}
	return colons;
}

enum weft_status
wf_libsvm_parse(struct wf_env *env, const struct wf_text *text, struct wf_bags *out)
{
	const struct wf_bags_limits limits = {
		.row_bytes_min = ROW_BYTES_MIN,
		.entries_max = count_colons(text) + 1,
	};
	struct wf_cut cut = {.text = text, .separator = ' '};
	struct wf_bags bags = {.slots = 1, .classes = 2};
	struct state state = {.bags = &bags};

	enum weft_status st = wf_bags_init(env, text, &limits, &bags);
	if (st != WEFT_OK) {
		return st;
	}
	while (st == WEFT_OK && wf_cut_line(&cut)) {
		st = read_line(&cut, &state);
	}
	if (st != WEFT_OK) {
		wf_bags_fini(env, &bags);
		return st;
	}
	*out = bags;
	return WEFT_OK;
}

enum weft_status
wf_libsvm_read(struct wf_env *env, const char *path, struct wf_bags *out)
{
	return wf_bags_read(env, path, wf_libsvm_parse, out);
}
