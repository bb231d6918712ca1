/* SPDX-License-Identifier: Apache-2.0 */
/* The layout of Criteo's display advertising logs: tab-separated, no header; a label, 13 counts, 26
 * categories of 8 hexadecimal digits, any but the label may be missing. Thread: the caller's. */
#include "base/assert.h"
#include "kernels/kernels.h"
#include "trainer/readers/bags_internal.h"

#define COUNTS 13u
#define CATEGORIES 26u
#define COLUMNS (1 + COUNTS + CATEGORIES)
#define ROW_BYTES_MIN (1 + COLUMNS - 1 + 1) /* a label, tabs, newline */
#define CATEGORY_DIGITS 8u

#define SMALL_COUNTS 1024u

struct state {
	struct wf_bags *bags;
	float squashed[SMALL_COUNTS]; /* of counts that have come; 0: not yet, or of 0 */
};

static enum weft_status
read_label(const struct wf_field *field, struct wf_bags *bags)
{
	if (!wf_field_is(field, "0") && !wf_field_is(field, "1")) {
		return wf_field_refuse(field, "is not a label of 0 or 1");
	}
	bags->y[bags->rows] = field->at[0] == '1' ? 1.0f : 0.0f;
	return WEFT_OK;
}

/* Counts span many powers of ten, and a few are below zero: sign(c) log(1 + |c|). */
static float
squash(double count)
{
	double value = wf_log_f64(1.0 + (count < 0 ? -count : count));
	return (float)(count < 0 ? -value : value);
}

/* Most counts are small and come again. */
static float
squash_again(struct state *state, double count)
{
	if (!(count > 0.0 && count < (double)SMALL_COUNTS)) {
		return squash(count);
	}
	float *squashed = &state->squashed[(unsigned)count];
	if (*squashed == 0.0f) {
		*squashed = squash(count);
	}
	return *squashed;
}

static enum weft_status
read_count(const struct wf_field *field, struct state *state)
{
	static const struct wf_number_rule rule = {
		.min = INT32_MIN, .max = INT32_MAX, .is_whole = true};
	unsigned idx = field->column - 2;
	float *x = state->bags->x + state->bags->rows * state->bags->features;
	double count = 0.0;

	enum weft_status st = field->count == 0 ? WEFT_OK : wf_field_number(field, &rule, &count);
	if (st != WEFT_OK) {
		return st;
	}
	x[idx] = squash_again(state, count);
	x[COUNTS + idx] = field->count == 0 ? 1.0f : 0.0f;
	return WEFT_OK;
}

/* Without a branch: which digits come is chance. */
static bool
is_hexadecimal(const char *at, size_t count)
{
	bool is_hexadecimal = true;

	for (size_t i = 0; i < count; i++) {
		const unsigned char c = (unsigned char)at[i];
		is_hexadecimal &= (unsigned char)(c - '0') <= 9 || (unsigned char)(c - 'a') <= 5;
	}
	return is_hexadecimal;
}

static enum weft_status
read_category(const struct wf_field *field, struct wf_bags *bags)
{
	uint32_t slot = field->column - 2 - COUNTS;

	if (field->count != 0 &&
	    (field->count != CATEGORY_DIGITS || !is_hexadecimal(field->at, CATEGORY_DIGITS))) {
		return wf_field_refuse(field, "is not a category of 8 hexadecimal digits");
	}
	wf_bags_add(bags, wf_slot_key(slot, field->at, field->count), 1.0f);
	wf_bags_end_slot(bags, slot);
	return WEFT_OK;
}

static enum weft_status
read_line(struct wf_cut *cut, struct state *state)
{
	struct wf_bags *bags = state->bags;
	enum weft_status st = wf_bags_begin_row(bags, cut);

	while (st == WEFT_OK && cut->column < COLUMNS) {
		struct wf_field field;
		st = wf_cut_field(cut, COLUMNS, &field);
		if (st != WEFT_OK) {
			return st;
		}
		if (field.column == 1) {
			st = read_label(&field, bags);
		} else if (field.column <= 1 + COUNTS) {
			st = read_count(&field, state);
		} else {
			st = read_category(&field, bags);
		}
	}
	if (st == WEFT_OK) {
		wf_bags_end_row(bags);
	}
	return st;
}

enum weft_status
wf_criteo_parse(struct wf_env *env, const struct wf_text *text, struct wf_bags *out)
{
	static const struct wf_bags_limits limits = {.row_bytes_min = ROW_BYTES_MIN};
	struct wf_cut cut = {.text = text, .separator = '\t'};
	struct wf_bags bags = {.slots = CATEGORIES, .features = 2 * COUNTS, .classes = 2};
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
wf_criteo_read(struct wf_env *env, const char *path, struct wf_bags *out)
{
	return wf_bags_read(env, path, wf_criteo_parse, out);
}
