/* SPDX-License-Identifier: Apache-2.0 */
/* options_value: converting values of options to text and back. Thread: the caller's. */
#include "base/options_internal.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/assert.h"
#include "base/env.h"

struct unit {
	const char *suffix;
	uint64_t factor;
};

/* The largest first; among equals, the spelling that is printed first. */
static const struct unit byte_units[] = {
	{"GiB", 1ull << 30},
	{"G", 1ull << 30},
	{"MiB", 1ull << 20},
	{"M", 1ull << 20},
	{"KiB", 1ull << 10},
	{"K", 1ull << 10},
	{"", 1},
};
static const struct unit time_units[] = {
	{"m", 60 * WF_NS_PER_S},
	{"s", WF_NS_PER_S},
	{"ms", WF_NS_PER_MS},
	{"us", WF_NS_PER_US},
};

static bool
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Reads digits at *at and advances it. Returns false if there are none, or more than 64 bits. */
static bool
read_digits(const char **at, uint64_t *out)
{
	uint64_t value = 0;
	const char *start = *at;
	for (; is_digit(**at); (*at)++) {
		if (__builtin_mul_overflow(value, 10u, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(**at - '0'), &value)) {
			return false;
		}
	}
	*out = value;
	return *at != start;
}

static bool
parse_bool(const char *text, bool *out)
{
	static const char *const yes[] = {"true", "1", "on", "yes"};
	static const char *const no[] = {"false", "0", "off", "no"};
	for (unsigned i = 0; i < WF_ARRAY_COUNT(yes); i++) {
		if (strcasecmp(text, yes[i]) == 0 || strcasecmp(text, no[i]) == 0) {
			*out = strcasecmp(text, yes[i]) == 0;
			return true;
		}
	}
	return false;
}

static bool
parse_u64(const char *text, uint64_t *out)
{
	return read_digits(&text, out) && *text == '\0';
}

/* Parses up to 10 digits with an optional sign. */
static bool
parse_i32(const char *text, int32_t *out)
{
	bool is_negative = *text == '-';
	uint64_t size = 0;
	if (!parse_u64(text + (is_negative ? 1 : 0), &size) ||
	    size > (uint64_t)INT32_MAX + (is_negative ? 1 : 0)) {
		return false;
	}
	*out = (int32_t)(is_negative ? -(int64_t)size : (int64_t)size);
	return true;
}

static bool
parse_bytes(const char *text, uint64_t *out)
{
	uint64_t count = 0;
	if (!read_digits(&text, &count)) {
		return false;
	}
	for (unsigned i = 0; i < WF_ARRAY_COUNT(byte_units); i++) {
		if (strcasecmp(text, byte_units[i].suffix) == 0) {
			return !__builtin_mul_overflow(count, byte_units[i].factor, out);
		}
	}
	return false;
}

/* Reads ".25" of a unit, in nanoseconds; digits below a nanosecond are dropped. */
static uint64_t
read_fraction(const char **at, uint64_t unit_ns)
{
	uint64_t sum = 0;
	for (; is_digit(**at); (*at)++) {
		unit_ns /= 10;
		sum += (uint64_t)(**at - '0') * unit_ns;
	}
	return sum;
}

/* Reads two digits below `limit`, behind a colon. */
static bool
read_two_digits(const char **at, uint64_t limit, uint64_t *out)
{
	const char *start = *at + 1;
	if (**at != ':' || strspn(start, "0123456789") != 2) {
		return false;
	}
	*at = start;
	return read_digits(at, out) && *out < limit;
}

/* Parses HH:MM:SS or DAYS-HH:MM:SS, as Slurm has it. */
static bool
parse_clock(const char *text, uint64_t *out)
{
	uint64_t days = 0;
	uint64_t hours = 0;
	uint64_t minutes = 0;
	uint64_t seconds = 0;
	const bool has_days = strchr(text, '-') != NULL;
	if (has_days && (!read_digits(&text, &days) || *text++ != '-')) {
		return false;
	}
	if (!read_digits(&text, &hours) || (has_days && hours >= 24) ||
	    !read_two_digits(&text, 60, &minutes) || !read_two_digits(&text, 60, &seconds)) {
		return false;
	}
	const uint64_t rest_s = minutes * 60 + seconds;
	return *text == '\0' && !__builtin_mul_overflow(days, UINT64_C(24), &days) &&
	       !__builtin_add_overflow(days, hours, &hours) &&
	       !__builtin_mul_overflow(hours, UINT64_C(3600), &hours) &&
	       !__builtin_add_overflow(hours, rest_s, &seconds) &&
	       !__builtin_mul_overflow(seconds, WF_NS_PER_S, out);
}

/* Uses integers only: "0.1" is 100,000,000 ns on every machine. */
static bool
parse_duration(const char *text, uint64_t *out)
{
	uint64_t whole = 0;
	if (strchr(text, ':') != NULL) {
		return parse_clock(text, out);
	}
	if (!read_digits(&text, &whole)) {
		return false;
	}
	const char *fraction = NULL;
	if (*text == '.') {
		fraction = ++text;
		text += strspn(text, "0123456789");
		if (text == fraction) {
			return false;
		}
	}
	uint64_t unit_ns = *text == '\0' ? WF_NS_PER_S : 0;
	for (unsigned i = 0; i < WF_ARRAY_COUNT(time_units); i++) {
		if (strcmp(text, time_units[i].suffix) == 0) {
			unit_ns = time_units[i].factor;
		}
	}
	if (unit_ns == 0 || __builtin_mul_overflow(whole, unit_ns, &whole)) {
		return false;
	}
	uint64_t part = fraction == NULL ? 0 : read_fraction(&fraction, unit_ns);
	return !__builtin_add_overflow(whole, part, out);
}

static bool
parse_f64(const char *text, double *out)
{
	/* strtod would also accept blanks, "inf", "nan" and hexadecimal. */
	if (*text == '\0' || text[strspn(text, "0123456789+-.eE")] != '\0') {
		return false;
	}
	char *end = NULL;
	double value = strtod(text, &end);
	if (end == text || *end != '\0' || !isfinite(value)) {
		return false;
	}
	*out = value;
	return true;
}

/* Finds the number of the word in `choices`, from 0. */
static bool
parse_choice(const char *choices, const char *text, uint64_t *out)
{
	size_t bytes = strlen(text);
	*out = 0;
	for (const char *at = choices;; at++) {
		size_t choice_bytes = strcspn(at, "|");
		if (choice_bytes == bytes && memcmp(at, text, bytes) == 0) {
			return true;
		}
		at += choice_bytes;
		if (*at == '\0') {
			return false;
		}
		(*out)++;
	}
}

/* The idx-th word of `choices`, and its length; NULL: there are fewer. */
static const char *
find_choice(const char *choices, uint64_t idx, size_t *bytes)
{
	const char *at = choices;
	for (; idx > 0; idx--) {
		at += strcspn(at, "|");
		if (*at == '\0') {
			return NULL;
		}
		at++;
	}
	*bytes = strcspn(at, "|");
	return at;
}

size_t
wf_option_bytes(const struct wf_option *option)
{
	switch (option->type) {
	case WF_OPTION_BOOL:
		return option->bytes != 0 ? option->bytes : sizeof(bool);
	case WF_OPTION_U64:
	case WF_OPTION_BYTES:
	case WF_OPTION_DURATION:
		return option->bytes != 0 ? option->bytes : sizeof(uint64_t);
	case WF_OPTION_F64:
		return sizeof(double);
	case WF_OPTION_STRING:
	case WF_OPTION_CHOICE:
		return sizeof(const char *);
	case WF_OPTION_ENUM:
		return sizeof(uint32_t);
	case WF_OPTION_I32:
		return sizeof(int32_t);
	case WF_OPTION_LIST:
		return sizeof(struct wf_option_list);
	}
	WF_ASSERT(false);
	return 0;
}

/* The largest value; 0: only the limit of 64 bits. */
static uint64_t
max_of(const struct wf_option *option)
{
	size_t bytes = wf_option_bytes(option);
	uint64_t widest = bytes < sizeof(uint64_t) ? (UINT64_C(1) << (8 * bytes)) - 1 : 0;
	return option->max != 0 ? option->max : widest;
}

static bool
in_range(const struct wf_option *option, uint64_t value)
{
	if (option->word != NULL && value == UINT64_MAX) {
		return true;
	}
	uint64_t max = max_of(option);
	return value >= option->min && (max == 0 || value <= max) &&
	       (option->step == 0 || value % option->step == 0);
}

static bool
has_f64_range(const struct wf_option *option)
{
	return option->fmin < 0.0 || option->fmin > 0.0 || option->fmax < 0.0 || option->fmax > 0.0;
}

static bool
in_f64_range(const struct wf_option *option, double value)
{
	return isfinite(value) &&
	       (!has_f64_range(option) || (value >= option->fmin && value <= option->fmax));
}

static void *
place_of(const struct wf_option *option, void *target)
{
	return (char *)target + option->offset;
}

void
wf_option_set_number(const struct wf_option *option, uint64_t value, void *target)
{
	uint8_t truth = value != 0;
	uint16_t half = (uint16_t)value;
	uint32_t word = (uint32_t)value;
	size_t bytes = wf_option_bytes(option);
	WF_ASSERT(bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8);
	const void *from = bytes == 1   ? (const void *)&truth
			   : bytes == 2 ? (const void *)&half
			   : bytes == 4 ? (const void *)&word
					: (const void *)&value;
	memcpy(place_of(option, target), from, bytes);
}

uint64_t
wf_option_number(const struct wf_option *option, const void *target)
{
	const char *place = (const char *)target + option->offset;
	uint8_t truth = 0;
	uint16_t half = 0;
	uint32_t word = 0;
	uint64_t value = 0;
	switch (wf_option_bytes(option)) {
	case sizeof(truth):
		memcpy(&truth, place, sizeof(truth));
		return truth;
	case sizeof(half):
		memcpy(&half, place, sizeof(half));
		return half;
	case sizeof(word):
		memcpy(&word, place, sizeof(word));
		return word;
	default:
		memcpy(&value, place, sizeof(value));
		return value;
	}
}

static bool
store_u64(const struct wf_option *option, const char *text, void *target)
{
	uint64_t value = UINT64_MAX;
	bool is_word = option->word != NULL && strcmp(text, option->word) == 0;
	bool good = is_word                           ? true
		    : option->type == WF_OPTION_U64   ? parse_u64(text, &value)
		    : option->type == WF_OPTION_BYTES ? parse_bytes(text, &value)
						      : parse_duration(text, &value);
	if (!good || !in_range(option, value)) {
		return false;
	}
	wf_option_set_number(option, value, target);
	return true;
}

static bool
store_f64(const struct wf_option *option, const char *text, void *target)
{
	double value = 0;
	if (!parse_f64(text, &value)) {
		return false;
	}
	if (!in_f64_range(option, value)) {
		return false;
	}
	memcpy(place_of(option, target), &value, sizeof(value));
	return true;
}

/* Returns false if the list is full. */
static bool
append_text(struct wf_option_list *list, const char *text)
{
	if (list->count == WF_OPTION_LIST_MAX) {
		return false;
	}
	list->text[list->count++] = text;
	return true;
}

bool
wf_option_store(const struct wf_option *option, const char *text, void *target)
{
	bool truth = false;
	uint64_t idx = 0;
	int32_t number = 0;
	switch (option->type) {
	case WF_OPTION_BOOL:
		if (!parse_bool(text, &truth)) {
			return false;
		}
		wf_option_set_number(option, truth, target);
		return true;
	case WF_OPTION_U64:
	case WF_OPTION_BYTES:
	case WF_OPTION_DURATION:
		return store_u64(option, text, target);
	case WF_OPTION_I32:
		if (!parse_i32(text, &number)) {
			return false;
		}
		wf_option_set_number(option, (uint32_t)number, target);
		return true;
	case WF_OPTION_F64:
		return store_f64(option, text, target);
	case WF_OPTION_CHOICE:
		if (!parse_choice(option->choices, text, &idx)) {
			return false;
		}
		memcpy(place_of(option, target), &text, sizeof(text));
		return true;
	case WF_OPTION_ENUM:
		if (!parse_choice(option->choices, text, &idx)) {
			return false;
		}
		wf_option_set_number(option, idx, target);
		return true;
	case WF_OPTION_STRING:
		memcpy(place_of(option, target), &text, sizeof(text));
		return true;
	case WF_OPTION_LIST:
		return append_text(place_of(option, target), text);
	}
	WF_ASSERT(false);
	return false;
}

static void
format_bytes(uint64_t value, char *out, size_t bytes)
{
	unsigned i = 0;
	while (byte_units[i].factor > 1 && (value == 0 || value % byte_units[i].factor != 0)) {
		i++;
	}
	(void)snprintf(out, bytes, "%" PRIu64 "%s", value / byte_units[i].factor,
		       byte_units[i].suffix);
}

static void
format_duration(uint64_t value_ns, char *out, size_t bytes)
{
	for (unsigned i = 0; i < WF_ARRAY_COUNT(time_units); i++) {
		uint64_t unit_ns = time_units[i].factor;
		bool minutes = i == 0 && value_ns < 2 * unit_ns; /* "60s" reads better than "1m" */
		if (value_ns % unit_ns == 0 && value_ns > 0 && !minutes) {
			(void)snprintf(out, bytes, "%" PRIu64 "%s", value_ns / unit_ns,
				       time_units[i].suffix);
			return;
		}
	}
	if (value_ns == 0) {
		(void)snprintf(out, bytes, "0s");
		return;
	}
	uint64_t whole_us = value_ns / WF_NS_PER_US;
	uint64_t rest_ns = value_ns % WF_NS_PER_US;
	(void)snprintf(out, bytes, "%" PRIu64 ".%03" PRIu64 "us", whole_us, rest_ns);
}

static void
format_u64(const struct wf_option *option, uint64_t value, char *out, size_t bytes)
{
	enum wf_option_type type = option->type;
	if (option->word != NULL && value == UINT64_MAX) {
		(void)snprintf(out, bytes, "%s", option->word);
	} else if (type == WF_OPTION_BYTES) {
		format_bytes(value, out, bytes);
	} else if (type == WF_OPTION_DURATION) {
		format_duration(value, out, bytes);
	} else {
		(void)snprintf(out, bytes, "%" PRIu64, value);
	}
}

/* Formats the shortest text that yields the same number when it is read again. */
static void
format_f64(double value, char *out, size_t bytes)
{
	for (int digits = 6; digits <= 17; digits++) {
		(void)snprintf(out, bytes, "%.*g", digits, value);
		double again = strtod(out, NULL);
		if (memcmp(&again, &value, sizeof(value)) == 0) {
			return;
		}
	}
}

static void
format_choice(const char *choices, uint64_t idx, char *out, size_t bytes)
{
	size_t length = 0;
	const char *word = find_choice(choices, idx, &length);
	if (word == NULL) { /* a program has set a value that is no choice */
		(void)snprintf(out, bytes, "%" PRIu64, idx);
	} else {
		(void)snprintf(out, bytes, "%.*s", (int)length, word);
	}
}

/* For people: a text may have a blank. */
static void
format_list(const struct wf_option_list *list, char *out, size_t bytes)
{
	size_t used = 0;
	out[0] = '\0';
	for (unsigned i = 0; i < list->count && used < bytes; i++) {
		used += (size_t)snprintf(out + used, bytes - used, "%s%s", i > 0 ? " " : "",
					 list->text[i]);
	}
}

void
wf_option_value(const struct wf_option *option, const void *target, char *out, size_t bytes)
{
	const char *place = (const char *)target + option->offset;
	double real = 0;
	const char *text = NULL;
	switch (option->type) {
	case WF_OPTION_BOOL:
		(void)snprintf(out, bytes, "%s",
			       wf_option_number(option, target) != 0 ? "true" : "false");
		break;
	case WF_OPTION_U64:
	case WF_OPTION_BYTES:
	case WF_OPTION_DURATION:
		format_u64(option, wf_option_number(option, target), out, bytes);
		break;
	case WF_OPTION_ENUM:
		format_choice(option->choices, wf_option_number(option, target), out, bytes);
		break;
	case WF_OPTION_I32:
		(void)snprintf(out, bytes, "%" PRId32, (int32_t)wf_option_number(option, target));
		break;
	case WF_OPTION_F64:
		memcpy(&real, place, sizeof(real));
		format_f64(real, out, bytes);
		break;
	case WF_OPTION_STRING:
	case WF_OPTION_CHOICE:
		memcpy(&text, place, sizeof(text));
		(void)snprintf(out, bytes, "%s", text == NULL ? "" : text);
		break;
	case WF_OPTION_LIST:
		format_list((const void *)place, out, bytes);
		break;
	}
}

/* Whether the field holds a value that may be stored there. */
static bool
is_allowed(const struct wf_option *option, const void *target)
{
	double real = 0;
	size_t length = 0;
	switch (option->type) {
	case WF_OPTION_U64:
	case WF_OPTION_BYTES:
	case WF_OPTION_DURATION:
		return in_range(option, wf_option_number(option, target));
	case WF_OPTION_ENUM:
		return find_choice(option->choices, wf_option_number(option, target), &length) !=
		       NULL;
	case WF_OPTION_F64:
		memcpy(&real, (const char *)target + option->offset, sizeof(real));
		return in_f64_range(option, real);
	case WF_OPTION_BOOL:
	case WF_OPTION_I32:
	case WF_OPTION_STRING:
	case WF_OPTION_CHOICE:
	case WF_OPTION_LIST:
		break;
	}
	return true;
}

enum weft_status
wf_option_check(const struct wf_option *table, unsigned count, const void *target)
{
	for (unsigned i = 0; i < count; i++) {
		if (!is_allowed(&table[i], target)) {
			char value[WF_OPTION_TEXT_BYTES];
			char allowed[WF_OPTION_ALLOWED_BYTES];
			wf_option_value(&table[i], target, value, sizeof(value));
			wf_option_allowed(&table[i], allowed, sizeof(allowed));
			return wf_fail(WEFT_INVALID, "%s %s: must be %s", table[i].name, value,
				       allowed);
		}
	}
	return WEFT_OK;
}

/* Limits that come only from the type: the help does not show them. */
#define NO_LIMIT_U64 (UINT64_C(0xffffffff) - 1)
#define NO_LIMIT_F64 1e29

/* Appends the range. `limit`: the largest value; 0: none. */
static void
append_range(const struct wf_option *option, uint64_t limit, char *out, size_t bytes)
{
	char min[WF_OPTION_TEXT_BYTES];
	char max[WF_OPTION_TEXT_BYTES];
	const char *comma = out[0] != '\0' ? ", " : "";
	size_t used = strlen(out);
	format_u64(option, option->min, min, sizeof(min));
	format_u64(option, limit, max, sizeof(max));
	if (limit != 0) {
		(void)snprintf(out + used, bytes - used, "%sfrom %s to %s", comma, min, max);
	} else if (option->min != 0) {
		(void)snprintf(out + used, bytes - used, "%sat least %s", comma, min);
	}
	used = strlen(out);
	comma = used > 0 ? ", " : "";
	if (option->step != 0) {
		(void)snprintf(out + used, bytes - used, "%sa multiple of %" PRIu64, comma,
			       option->step);
	}
	used = strlen(out);
	if (used > 0 && option->word != NULL) {
		(void)snprintf(out + used, bytes - used, "; or %s", option->word);
	}
}

void
wf_option_range(const struct wf_option *option, char *out, size_t bytes)
{
	uint64_t max = max_of(option);
	out[0] = '\0';
	switch (option->type) {
	case WF_OPTION_U64:
		append_range(option, max < NO_LIMIT_U64 ? max : 0, out, bytes);
		break;
	case WF_OPTION_BYTES:
	case WF_OPTION_DURATION:
		append_range(option, max, out, bytes);
		break;
	case WF_OPTION_F64:
		if (has_f64_range(option) && option->fmax < NO_LIMIT_F64) {
			(void)snprintf(out, bytes, "from %g to %g", option->fmin, option->fmax);
		} else if (has_f64_range(option) && option->fmin < 1 / NO_LIMIT_F64) {
			(void)snprintf(out, bytes, option->fmin > 0 ? "above 0" : "at least 0");
		}
		break;
	case WF_OPTION_BOOL:
	case WF_OPTION_I32:
	case WF_OPTION_CHOICE:
	case WF_OPTION_ENUM:
	case WF_OPTION_STRING:
	case WF_OPTION_LIST:
		break;
	}
}

void
wf_option_allowed(const struct wf_option *option, char *out, size_t bytes)
{
	switch (option->type) {
	case WF_OPTION_BOOL:
		(void)snprintf(out, bytes, "true or false");
		break;
	case WF_OPTION_U64:
		(void)snprintf(out, bytes, "a whole number");
		append_range(option, max_of(option), out, bytes);
		break;
	case WF_OPTION_I32:
		(void)snprintf(out, bytes, "a whole number, from %" PRId32 " to %" PRId32,
			       INT32_MIN, INT32_MAX);
		break;
	case WF_OPTION_BYTES:
		(void)snprintf(out, bytes, "a size like 4096, 64KiB, 8M or 1GiB");
		append_range(option, max_of(option), out, bytes);
		break;
	case WF_OPTION_DURATION:
		(void)snprintf(out, bytes, "a duration like 50us, 20ms, 1.5s or 2m");
		append_range(option, max_of(option), out, bytes);
		break;
	case WF_OPTION_F64:
		if (has_f64_range(option)) {
			(void)snprintf(out, bytes, "a number, from %g to %g", option->fmin,
				       option->fmax);
		} else {
			(void)snprintf(out, bytes, "a finite number");
		}
		break;
	case WF_OPTION_CHOICE:
	case WF_OPTION_ENUM:
		(void)snprintf(out, bytes, "one of %s", option->choices);
		break;
	case WF_OPTION_STRING:
		(void)snprintf(out, bytes, "any text");
		break;
	case WF_OPTION_LIST:
		(void)snprintf(out, bytes, "a text, given at most %u times", WF_OPTION_LIST_MAX);
		break;
	}
}
