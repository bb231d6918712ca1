/* SPDX-License-Identifier: Apache-2.0 */
/* samples: see the header. Thread: the test's. */
#include "tests/unit/wire/samples.h"

#include <stdlib.h>

void
sample_encode(const struct catalogue_entry *entry, struct wf_msg *out)
{
	static union any_message in;
	memset(&in, 0, sizeof(in));
	entry->sample(&in);
	entry->encode(&in, out);
	assert_int_equal(out->head.service, entry->service);
	assert_int_equal(out->head.type, entry->type);
	assert_true(out->head.body_bytes == out->body_bytes);
}

const struct catalogue_entry *
sample_encode_named(const char *name, struct wf_msg *out)
{
	for (size_t i = 0; i < catalogue_count; i++) {
		if (strcmp(catalogue[i].name, name) == 0) {
			sample_encode(&catalogue[i], out);
			return &catalogue[i];
		}
	}
	fail_msg("no message %s", name);
	return &catalogue[0]; /* not reached */
}

enum weft_status
sample_decode(const struct catalogue_entry *entry, const struct wf_head *head, const uint8_t *body,
	      union any_message *out)
{
	uint8_t *exact = malloc(head->body_bytes + 1);
	assert_non_null(exact);
	uint8_t *at = exact + 1; /* nothing may rely on alignment */
	memcpy(at, body, head->body_bytes);
	enum weft_status st = entry->decode(head, at, out);
	free(exact);
	return st;
}

void
assert_bodies_refused(const struct body_case *wrong, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		static union any_message out;
		static struct wf_msg msg;
		const struct patch *patch = &wrong[i].patch;
		const struct catalogue_entry *entry = sample_encode_named(wrong[i].name, &msg);
		assert_true(patch->at + patch->bytes <= msg.body_bytes);
		patch_apply(patch, msg.body);
		assert_refused(sample_decode(entry, &msg.head, msg.body, &out), WEFT_PROTOCOL,
			       patch->text);
	}
}

void
assert_heads_refused(const struct head_case *wrong, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		static union any_message out;
		static struct wf_msg msg;
		const struct wf_head *add = &wrong[i].add;
		const struct catalogue_entry *entry = sample_encode_named(wrong[i].name, &msg);
		msg.head.request_id += add->request_id;
		msg.head.step += add->step;
		msg.head.slice += add->slice;
		msg.head.offset += add->offset;
		assert_refused(sample_decode(entry, &msg.head, msg.body, &out), WEFT_PROTOCOL,
			       wrong[i].text);
	}
}
