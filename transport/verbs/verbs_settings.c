/* SPDX-License-Identifier: Apache-2.0 */
/* verbs_settings: one table of keys. Thread: any. */
#include "transport/verbs/verbs_settings.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

#define VALUE_BYTES WF_VERBS_DEVICES_BYTES

struct setting {
	const char *key;
	size_t offset; /* of a uint32_t or int32_t */
	uint32_t min, max;
};

struct choice {
	const char *key;
	size_t offset; /* of an enum wf_verbs_choice */
};

#define FIELD(name) offsetof(struct wf_verbs_settings, name)

static const struct setting numbers[] = {
	{"port", FIELD(port), 1, 255},
	{"lane", FIELD(lane), 0, 65535},
	{"node", FIELD(node), 0, 1023},
	{"gid", FIELD(gid), 0, 65535},
	{"mtu", FIELD(mtu), 256, 4096},
	{"tclass", FIELD(traffic_class), 0, 255},
	{"sl", FIELD(service_level), 0, 15},
	{"pkey", FIELD(pkey), 0, 65535},
	{"ack_timeout", FIELD(ack_timeout), 1, 31},
	{"retry", FIELD(retry_count), 0, 6},
	{"rnr_timer", FIELD(rnr_timer), 1, 31},
	{"rnr_retry", FIELD(rnr_retry), 0, 7},
	{"vector", FIELD(vector), 0, 65535},
	{"inline", FIELD(inline_bytes), 0, 1024},
	{"credits", FIELD(credits), 4, 1024},
	{"send_queue", FIELD(send_queue), WF_VERBS_SEND_QUEUE_MIN, 16384},
	{"small_put", FIELD(small_put_bytes), 0, 1u << 20},
};

static const struct choice choices[] = {
	{"imm", FIELD(immediate)},
	{"mw", FIELD(window)},
	{"srq", FIELD(shared_queue)},
	{"relaxed", FIELD(relaxed)},
};

static enum weft_status
fail_range(const struct setting *s, const char *value)
{
	return wf_fail(WEFT_INVALID, "verbs: %s=%s; a number from %u to %u is needed", s->key,
		       value, s->min, s->max);
}

static enum weft_status
set_number(struct wf_verbs_settings *out, const struct setting *s, const char *value)
{
	char *end = NULL;
	errno = 0;
	unsigned long long number = strtoull(value, &end, 10);
	if (end == value || *end != '\0' || errno != 0 || value[0] == '-' || number < s->min ||
	    number > s->max) {
		return fail_range(s, value);
	}
	uint32_t narrow = (uint32_t)number; /* fits an int32_t too: see the maxima */
	memcpy((uint8_t *)out + s->offset, &narrow, sizeof(narrow));
	return WEFT_OK;
}

static enum weft_status
set_choice(struct wf_verbs_settings *out, const struct choice *c, const char *value)
{
	enum wf_verbs_choice chosen = WF_VERBS_AUTO;
	if (strcmp(value, "off") == 0) {
		chosen = WF_VERBS_OFF;
	} else if (strcmp(value, "on") == 0) {
		chosen = WF_VERBS_ON;
	} else if (strcmp(value, "auto") != 0) {
		return wf_fail(WEFT_INVALID, "verbs: %s=%s; auto, on or off is needed", c->key,
			       value);
	}
	memcpy((uint8_t *)out + c->offset, &chosen, sizeof(chosen));
	return WEFT_OK;
}

/* "a+b", none of them empty or too long. */
static enum weft_status
set_devices(struct wf_verbs_settings *out, const char *value)
{
	for (const char *at = value; at != NULL;) {
		const char *end = strchrnul(at, '+');
		if (end == at || end - at >= WF_VERBS_DEVICE_BYTES) {
			return wf_fail(WEFT_INVALID,
				       "verbs: device=%s; names of devices are needed, with + "
				       "between them",
				       value);
		}
		at = *end == '+' ? end + 1 : NULL;
	}
	snprintf(out->device, sizeof(out->device), "%s", value);
	return WEFT_OK;
}

static enum weft_status
fail_unknown(const char *key)
{
	char known[256] = "device";
	size_t at = strlen(known);
	for (size_t i = 0; i < WF_ARRAY_COUNT(numbers) + WF_ARRAY_COUNT(choices); i++) {
		const char *name = i < WF_ARRAY_COUNT(numbers)
					   ? numbers[i].key
					   : choices[i - WF_ARRAY_COUNT(numbers)].key;
		int bytes = snprintf(known + at, sizeof(known) - at, ", %s", name);
		at += (size_t)bytes;
		WF_ASSERT(at < sizeof(known));
	}
	return wf_fail(WEFT_INVALID, "verbs: there is no setting \"%.64s\"; there are: %s", key,
		       known);
}

static enum weft_status
set_one(struct wf_verbs_settings *out, const char *key, const char *value)
{
	if (strcmp(key, "device") == 0) {
		return set_devices(out, value);
	}
	for (size_t i = 0; i < WF_ARRAY_COUNT(numbers); i++) {
		if (strcmp(key, numbers[i].key) == 0) {
			return set_number(out, &numbers[i], value);
		}
	}
	for (size_t i = 0; i < WF_ARRAY_COUNT(choices); i++) {
		if (strcmp(key, choices[i].key) == 0) {
			return set_choice(out, &choices[i], value);
		}
	}
	return fail_unknown(key);
}

/* [at, end) is "key=value". */
static enum weft_status
parse_pair(struct wf_verbs_settings *out, const char *at, const char *end)
{
	char key[VALUE_BYTES];
	char value[VALUE_BYTES];
	const char *equals = memchr(at, '=', (size_t)(end - at));
	if (equals == NULL || equals == at || equals + 1 == end ||
	    (size_t)(equals - at) >= sizeof(key) || (size_t)(end - equals - 1) >= sizeof(value)) {
		return wf_fail(WEFT_INVALID, "verbs: \"%.*s\" is not key=value", (int)(end - at),
			       at);
	}
	snprintf(key, sizeof(key), "%.*s", (int)(equals - at), at);
	snprintf(value, sizeof(value), "%.*s", (int)(end - equals - 1), equals + 1);
	return set_one(out, key, value);
}

/* An ACK timeout of 16 is 268 ms: a peer that has gone is detected after 7 tries, about 2 s
 * (rdma_cm would use 19, 2.1 s each). rdma_cm would leave rnr_timer at 0, which means 655 ms. */
static const struct wf_verbs_settings defaults = {
	.node = -1,
	.gid = -1,
	.mtu = -1,
	.traffic_class = -1,
	.service_level = -1,
	.pkey = -1,
	.vector = -1,
	.ack_timeout = 16,
	.retry_count = 6,
	.rnr_timer = 12,
	.rnr_retry = 7,
	.inline_bytes = 220,
	.credits = 32,
	.send_queue = 128,
	.small_put_bytes = 8192,
};

enum weft_status
wf_verbs_settings_parse(const char *text, struct wf_verbs_settings *out)
{
	struct wf_verbs_settings settings = defaults;
	for (const char *at = text == NULL ? "" : text; *at != '\0';) {
		const char *end = strchrnul(at, ',');
		enum weft_status st = parse_pair(&settings, at, end);
		if (st != WEFT_OK) {
			return st;
		}
		at = *end == ',' ? end + 1 : end;
	}
	*out = settings;
	return WEFT_OK;
}

/* The end of the name that begins at `at`. */
static const char *
name_end(const char *at)
{
	return strchrnul(at, '+');
}

unsigned
wf_verbs_settings_device_count(const struct wf_verbs_settings *settings)
{
	unsigned count = settings->device[0] == '\0' ? 0 : 1;
	for (const char *at = settings->device; *at != '\0'; at++) {
		count += *at == '+' ? 1 : 0;
	}
	return count;
}

void
wf_verbs_settings_device(const struct wf_verbs_settings *settings, unsigned idx,
			 char out[WF_VERBS_DEVICE_BYTES])
{
	WF_ASSERT(idx < wf_verbs_settings_device_count(settings));
	const char *at = settings->device;
	for (unsigned i = 0; i < idx; i++) {
		at = name_end(at) + 1;
	}
	snprintf(out, WF_VERBS_DEVICE_BYTES, "%.*s", (int)(name_end(at) - at), at);
}

int
wf_verbs_settings_find_device(const struct wf_verbs_settings *settings, const char *name)
{
	unsigned count = wf_verbs_settings_device_count(settings);
	for (unsigned i = 0; i < count; i++) {
		char one[WF_VERBS_DEVICE_BYTES];
		wf_verbs_settings_device(settings, i, one);
		if (strcmp(one, name) == 0) {
			return (int)i;
		}
	}
	return count == 0 ? 0 : -1;
}
