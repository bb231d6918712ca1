/* SPDX-License-Identifier: Apache-2.0 */
/* birdstrikes.csv: the FAA's wildlife strike reports, damage or none. What a strike cost is known
 * only after the damage, so those columns are checked and left out. Thread: the caller's. */
#include "base/assert.h"
#include "trainer/readers/bags_internal.h"

#define COLUMNS 14u
/* 8 texts and a damage of 1 byte, a date, 3 digits, 13 commas, line feed. */
#define ROW_BYTES_MIN 36u
#define SPEED_SCALE 100.0

static const char header[] =
	"Airport Name,Aircraft Make Model,Effect Amount of damage,Flight Date,"
	"Aircraft Airline Operator,Origin State,Phase of flight,Wildlife Size,Wildlife Species,"
	"Time of day,Cost Other,Cost Repair,Cost Total $,Speed IAS in knots";

static const char remedy[] =
	"--format=libsvm and --format=criteo read files of keyed features; linear and mlp read "
	"tables of numbers, with --format=csv";

enum feature { FEATURE_SPEED, FEATURE_SPEED_MISSING, FEATURE_COUNT };

static enum weft_status
read_slot(const struct wf_field *field, struct wf_bags *bags)
{
	uint32_t slot = (uint32_t)(bags->entries - bags->rows * bags->slots);

	if (field->count == 0) {
		return wf_field_refuse(field, "is empty; a text is expected");
	}
	if (field->count > WF_SLOT_VALUE_BYTES_MAX) {
		return wf_field_refuse(field, "has more than 63 bytes");
	}
	for (size_t i = 0; i < field->count; i++) {
		if (field->at[i] < ' ' || field->at[i] > '~' || field->at[i] == '"') {
			return wf_field_refuse(field, "is not plain text without quotes");
		}
	}
	wf_bags_add(bags, wf_slot_key(slot, field->at, field->count), 1.0f);
	wf_bags_end_slot(bags, slot);
	return WEFT_OK;
}

/* B and C are classes that military reports use; whatever is not None is damage. */
static enum weft_status
read_damage(const struct wf_field *field, struct wf_bags *bags)
{
	static const char *const damage[] = {"None", "Minor", "Medium", "Substantial", "B", "C"};

	for (unsigned i = 0; i < WF_ARRAY_COUNT(damage); i++) {
		if (wf_field_is(field, damage[i])) {
			bags->y[bags->rows] = i == 0 ? 0.0f : 1.0f;
			return WEFT_OK;
		}
	}
	return wf_field_refuse(field, "is not one of None, Minor, Medium, Substantial, B and C");
}

static enum weft_status
check_date(const struct wf_field *field)
{
	static const char shape[] = "dddd-dd-dd";

	for (size_t i = 0; i < sizeof(shape) - 1; i++) {
		bool fits = i < field->count &&
			    (shape[i] == 'd' ? field->at[i] >= '0' && field->at[i] <= '9'
					     : field->at[i] == shape[i]);
		if (!fits || field->count != sizeof(shape) - 1) {
			return wf_field_refuse(field, "is not a date like 1990-01-08");
		}
	}
	return WEFT_OK;
}

static enum weft_status
check_cost(const struct wf_field *field)
{
	static const struct wf_number_rule rule = {.min = 0, .max = 1e9, .is_whole = true};
	double unused;
	return wf_field_number(field, &rule, &unused);
}

static enum weft_status
read_speed(const struct wf_field *field, struct wf_bags *bags)
{
	static const struct wf_number_rule rule = {.min = 0, .max = 1000, .is_whole = true};
	float *x = bags->x + bags->rows * bags->features;
	double knots = 0.0;

	enum weft_status st = field->count == 0 ? WEFT_OK : wf_field_number(field, &rule, &knots);
	x[FEATURE_SPEED] = (float)(knots / SPEED_SCALE);
	x[FEATURE_SPEED_MISSING] = field->count == 0 ? 1.0f : 0.0f;
	return st;
}

static enum weft_status
read_field(const struct wf_field *field, struct wf_bags *bags)
{
	switch (field->column) {
	case 3:
		return read_damage(field, bags);
	case 4:
		return check_date(field);
	case 11:
	case 12:
	case 13:
		return check_cost(field);
	case COLUMNS:
		return read_speed(field, bags);
	default:
		return read_slot(field, bags);
	}
}

static enum weft_status
read_lines(const struct wf_text *text, struct wf_bags *bags)
{
	struct wf_cut cut = {.text = text, .separator = ','};
	enum weft_status st = WEFT_OK;

	if (text->count == 0) {
		return wf_fail(WEFT_DATA, "%s: line 1: has no header", text->path);
	}
	while (st == WEFT_OK && wf_cut_line(&cut)) {
		if (cut.line == 1) {
			st = wf_text_add_remedy(wf_cut_header(&cut, header), remedy);
			continue;
		}
		st = wf_bags_begin_row(bags, &cut);
		for (unsigned column = 0; st == WEFT_OK && column < COLUMNS; column++) {
			struct wf_field field;
			st = wf_cut_field(&cut, COLUMNS, &field);
			if (st == WEFT_OK) {
				st = read_field(&field, bags);
			}
		}
		if (st == WEFT_OK) {
			wf_bags_end_row(bags);
		}
	}
	return st;
}

enum weft_status
wf_strikes_parse(struct wf_env *env, const struct wf_text *text, struct wf_bags *out)
{
	static const struct wf_bags_limits limits = {
		.row_bytes_min = ROW_BYTES_MIN,
		.has_headers = true,
	};
	struct wf_bags bags = {.slots = 8, .features = FEATURE_COUNT, .classes = 2};

	enum weft_status st = wf_bags_init(env, text, &limits, &bags);
	if (st != WEFT_OK) {
		return st;
	}
	st = read_lines(text, &bags);
	if (st != WEFT_OK) {
		wf_bags_fini(env, &bags);
		return st;
	}
	*out = bags;
	return WEFT_OK;
}

enum weft_status
wf_strikes_read(struct wf_env *env, const char *path, struct wf_bags *out)
{
	return wf_bags_read(env, path, wf_strikes_parse, out);
}
