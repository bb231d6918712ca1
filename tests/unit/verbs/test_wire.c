/* SPDX-License-Identifier: Apache-2.0 */
/* Private data, frames and keys: what was written is read, and what was not is refused.
 * Thread: one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/assert.h"
#include "transport/grants.h"
#include "transport/verbs/verbs_wire.h"

#define REQUEST_ROOM 56u /* what rdma_cm carries with a request, padded */

static struct wf_verbs_private
request(uint8_t blob_bytes)
{
	struct wf_verbs_private p = {
		.type = WF_VERBS_REQUEST,
		.features = WF_VERBS_TAKES_IMMEDIATE,
		.credits = 32,
		.mark = 0xabcdef,
		.put_bytes_max = 1ull << 40,
		.blob_bytes = blob_bytes,
	};
	memset(p.blob, 0x5a, blob_bytes);
	return p;
}

static void
private_data_is_read_as_written(void **state)
{
	for (uint8_t bytes = 0; bytes <= WF_VERBS_HELLO_SHORT; bytes++) {
		struct wf_verbs_private p = request(bytes), got;
		uint8_t out[WF_VERBS_PRIVATE_MAX];
		size_t used = wf_verbs_private_encode(&p, out);
		assert_true(used <= REQUEST_ROOM);
		assert_int_equal(wf_verbs_private_decode(out, used, &got), WEFT_OK);
		assert_int_equal(got.type, p.type);
		assert_int_equal(got.features, p.features);
		assert_int_equal(got.credits, p.credits);
		assert_int_equal(got.mark, p.mark);
		assert_int_equal(got.put_bytes_max, p.put_bytes_max);
		assert_int_equal(got.blob_bytes, bytes);
		assert_memory_equal(got.blob, p.blob, bytes);
	}
}

static void
padding_of_the_carrier_is_not_looked_at(void **state)
{
	struct wf_verbs_private p = request(3), got;
	uint8_t out[WF_VERBS_PRIVATE_MAX];
	memset(out, 0xee, sizeof(out));
	size_t used = wf_verbs_private_encode(&p, out);
	assert_int_equal(wf_verbs_private_decode(out, REQUEST_ROOM, &got), WEFT_OK);
	assert_int_equal(got.blob_bytes, 3);
	for (size_t bytes = 0; bytes < used; bytes++) {
		assert_int_equal(wf_verbs_private_decode(out, bytes, &got), WEFT_PROTOCOL);
	}
}

static void
the_longest_verdict_fits_a_rejection(void **state)
{
	struct wf_verbs_private p = request(0), got;
	uint8_t out[WF_VERBS_PRIVATE_MAX];
	p.type = WF_VERBS_REFUSE;
	p.blob_bytes = WF_VERBS_VERDICT_SHORT;
	size_t used = wf_verbs_private_encode(&p, out);
	assert_true(used <= WF_VERBS_PRIVATE_MAX);
	assert_int_equal(wf_verbs_private_decode(out, used, &got), WEFT_OK);
	assert_int_equal(got.blob_bytes, WF_VERBS_VERDICT_SHORT);
}

static void
private_data_of_strangers_is_refused(void **state)
{
	static const struct {
		size_t at;
		uint8_t value;
		const char *named;
	} cases[] = {
		{0, 'X', "magic"},    {4, 1, "version"},       {4, 3, "version"},
		{5, 0, "type"},       {5, 5, "type"},          {6, 25, "blob"},
		{6, 255, "blob"},     {7, 0x80, "features"},   {10, 1, "reserved"},
		{16, 1, "authentic"}, {23, 0x80, "authentic"},
	};
	for (unsigned i = 0; i < WF_ARRAY_COUNT(cases); i++) {
		struct wf_verbs_private p = request(4), got;
		uint8_t out[WF_VERBS_PRIVATE_MAX] = {0};
		(void)wf_verbs_private_encode(&p, out);
		out[cases[i].at] = cases[i].value;
		assert_int_equal(wf_verbs_private_decode(out, sizeof(out), &got), WEFT_PROTOCOL);
		assert_non_null(strstr(weft_last_error(), cases[i].named));
	}
	struct wf_verbs_private p = request(0), got;
	uint8_t out[WF_VERBS_PRIVATE_MAX];
	p.credits = 0;
	assert_int_equal(wf_verbs_private_decode(out, wf_verbs_private_encode(&p, out), &got),
			 WEFT_PROTOCOL);
	p = request(0);
	p.mark = 0;
	assert_int_equal(wf_verbs_private_decode(out, wf_verbs_private_encode(&p, out), &got),
			 WEFT_PROTOCOL);
}

static void
frames_are_read_as_written(void **state)
{
	struct wf_verbs_frame frame = {
		.kind = WF_VERBS_MESSAGE,
		.head =
			{
				.service = WF_SERVICE_DENSE,
				.type = 200,
				.flags = WF_HEAD_PAYLOAD_CRC,
				.body_bytes = 100,
				.request_id = 0x1122334455667788u,
				.step = UINT64_MAX,
				.slice = 0xfffffff0u,
				.region = 0x80000001u,
				.offset = 0xaabbccddeeff0011u,
				.epoch = 42,
				.payload_crc = 0xdeadbeef,
			},
		.credits = UINT32_MAX,
		.put_bytes = 1ull << 50,
	};
	uint8_t out[WF_VERBS_FRAME_BYTES + 100] = {0};
	struct wf_verbs_frame got;
	wf_verbs_frame_encode(&frame, out);
	assert_int_equal(wf_verbs_frame_decode(out, sizeof(out), &got), WEFT_OK);
	assert_int_equal(got.kind, frame.kind);
	assert_int_equal(got.head.service, frame.head.service);
	assert_int_equal(got.head.type, frame.head.type);
	assert_int_equal(got.head.flags, frame.head.flags);
	assert_int_equal(got.head.body_bytes, frame.head.body_bytes);
	assert_int_equal(got.head.request_id, frame.head.request_id);
	assert_int_equal(got.head.step, frame.head.step);
	assert_int_equal(got.head.slice, frame.head.slice);
	assert_int_equal(got.head.region, frame.head.region);
	assert_int_equal(got.head.offset, frame.head.offset);
	assert_int_equal(got.head.epoch, frame.head.epoch);
	assert_int_equal(got.head.payload_crc, frame.head.payload_crc);
	assert_int_equal(got.credits, frame.credits);
	assert_int_equal(got.put_bytes, frame.put_bytes);
}

static enum weft_status
decode(enum wf_verbs_frame_kind kind, uint8_t service, uint8_t flags, size_t body_bytes,
       size_t bytes)
{
	static uint8_t out[2 * 4096];
	struct wf_verbs_frame frame = {
		.kind = kind,
		.head = {.service = service, .flags = flags, .body_bytes = body_bytes}};
	struct wf_verbs_frame got;
	wf_verbs_frame_encode(&frame, out);
	return wf_verbs_frame_decode(out, bytes, &got);
}

static void
frames_against_the_rules_are_refused(void **state)
{
	const uint8_t service = WF_SERVICE_CONTROL;
	assert_int_equal(decode(WF_VERBS_MESSAGE, service, 0, 0, 64), WEFT_OK);
	assert_int_equal(decode(WF_VERBS_MESSAGE, service, 0, 0, 63), WEFT_PROTOCOL);
	assert_int_equal(decode(WF_VERBS_MESSAGE, service, 0, 0, 65), WEFT_PROTOCOL);
	assert_int_equal(decode(WF_VERBS_MESSAGE, service, 0, 4032, 4096), WEFT_OK);
	assert_int_equal(decode(WF_VERBS_MESSAGE, service, 0, 4033, 4097), WEFT_PROTOCOL);
	assert_int_equal(decode(WF_VERBS_MESSAGE, service, 0x80, 0, 64), WEFT_PROTOCOL);
	assert_int_equal(decode(WF_VERBS_MESSAGE, WF_SERVICE_TRANSPORT, 0, 0, 64), WEFT_PROTOCOL);
	assert_int_equal(decode(WF_VERBS_PUT, 0, WF_VERBS_UNWRITTEN, 0, 64), WEFT_OK);
	assert_int_equal(decode(WF_VERBS_PUT, 0, 2, 0, 64), WEFT_PROTOCOL);
	assert_int_equal(decode(WF_VERBS_PUT, 0, 0, 1, 65), WEFT_PROTOCOL);
	assert_int_equal(decode(WF_VERBS_PUT, service, 0, 0, 64), WEFT_PROTOCOL);
	assert_int_equal(decode(WF_VERBS_CREDIT, 0, 0, 0, 64), WEFT_OK);
	assert_int_equal(decode(WF_VERBS_CREDIT, 0, 0, 8, 72), WEFT_PROTOCOL);
	assert_int_equal(decode(WF_VERBS_HELLO, 0, 0, 8, 72), WEFT_OK);
	assert_int_equal(decode((enum wf_verbs_frame_kind)0, 0, 0, 0, 64), WEFT_PROTOCOL);
	assert_int_equal(decode((enum wf_verbs_frame_kind)9, 0, 0, 0, 64), WEFT_PROTOCOL);
}

static void
keys_are_read_as_written_beside_number_and_nonce(void **state)
{
	static const struct wf_verbs_key cases[] = {
		{.mark = 1, .rkey = 0, .at = 0, .bytes = 1},
		{.mark = 0xffffff, .rkey = UINT32_MAX, .at = (1ull << 48) - 1, .bytes = 1ull << 47},
		{.mark = 7, .rkey = 9, .at = 4096, .bytes = 256 << 10, .slots = 1},
		{.mark = 7, .rkey = 9, .at = 4096, .bytes = 256 << 10, .slots = WF_SLOT_COUNT_MAX},
	};
	for (unsigned i = 0; i < WF_ARRAY_COUNT(cases); i++) {
		struct wf_grant_key key;
		struct wf_verbs_key got;
		memset(&key, 0x5a, sizeof(key));
		wf_verbs_key_write(&cases[i], &key);
		wf_verbs_key_read(&key, &got);
		assert_int_equal(got.mark, cases[i].mark);
		assert_int_equal(got.rkey, cases[i].rkey);
		assert_int_equal(got.at, cases[i].at);
		assert_int_equal(got.bytes, cases[i].bytes);
		assert_int_equal(got.slots, cases[i].slots);
		for (unsigned at = 0; at < WF_GRANT_KEY_USED_BYTES; at++) {
			assert_int_equal(key.bytes[at], 0x5a);
		}
	}
}

static void
any_key_can_be_read(void **state)
{
	for (unsigned value = 0; value < 256; value++) {
		struct wf_grant_key key;
		struct wf_verbs_key got;
		memset(&key, (int)value, sizeof(key));
		wf_verbs_key_read(&key, &got);
		assert_true(got.slots <= WF_SLOT_COUNT_MAX);
		assert_true(got.mark <= WF_VERBS_MARK_MAX);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(private_data_is_read_as_written),
		cmocka_unit_test(padding_of_the_carrier_is_not_looked_at),
		cmocka_unit_test(the_longest_verdict_fits_a_rejection),
		cmocka_unit_test(private_data_of_strangers_is_refused),
		cmocka_unit_test(frames_are_read_as_written),
		cmocka_unit_test(frames_against_the_rules_are_refused),
		cmocka_unit_test(keys_are_read_as_written_beside_number_and_nonce),
		cmocka_unit_test(any_key_can_be_read),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
