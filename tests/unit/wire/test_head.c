/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of wire/head. */
#include "base/crc32c.h"
#include "tests/unit/wire/golden.h"
#include "tests/unit/wire/refused.h"
#include "wire/head.h"

static struct wf_head
sample(void)
{
	return (struct wf_head){
		.version = WF_WIRE_VERSION,
		.service = WF_SERVICE_DENSE,
		.type = 6,
		.flags = WF_HEAD_PAYLOAD_CRC,
		.body_bytes = 4000,
		.request_id = 0x0102030405060708,
		.step = 0x1112131415161718,
		.slice = 0x21222324,
		.region = 0x31323334,
		.offset = 0x4142434445464748,
		.epoch = 0x5152535455565758,
		.payload_crc = 0x61626364,
	};
}

static void
assert_same(const struct wf_head *a, const struct wf_head *b)
{
	assert_int_equal(a->version, b->version);
	assert_int_equal(a->service, b->service);
	assert_int_equal(a->type, b->type);
	assert_int_equal(a->flags, b->flags);
	assert_true(a->body_bytes == b->body_bytes);
	assert_true(a->request_id == b->request_id);
	assert_true(a->step == b->step);
	assert_true(a->slice == b->slice);
	assert_true(a->region == b->region);
	assert_true(a->offset == b->offset);
	assert_true(a->epoch == b->epoch);
	assert_true(a->payload_crc == b->payload_crc);
}

static void
the_bytes_are_the_golden_ones(void **state)
{
	uint8_t bytes[WF_HEAD_BYTES];
	uint8_t held[GOLDEN_BYTES_MAX];
	struct wf_head in = sample();
	struct wf_head out;

	wf_head_encode(&in, bytes);
	assert_int_equal(golden_check("head", bytes, sizeof(bytes), held), WF_HEAD_BYTES);
	assert_int_equal(wf_head_decode(held, 4000, &out), WEFT_OK);
	assert_same(&in, &out);
}

static void
extreme_values_come_back(void **state)
{
	struct wf_head in = {
		.version = WF_WIRE_VERSION,
		.service = WF_SERVICE_REGISTRY,
		.type = UINT8_MAX,
		.flags = WF_HEAD_PAYLOAD_CRC,
		.body_bytes = UINT64_MAX,
		.request_id = UINT64_MAX,
		.step = UINT64_MAX,
		.slice = UINT32_MAX,
		.region = UINT32_MAX,
		.offset = UINT64_MAX,
		.epoch = UINT64_MAX,
		.payload_crc = UINT32_MAX,
	};
	uint8_t bytes[WF_HEAD_BYTES];
	struct wf_head out;

	wf_head_encode(&in, bytes);
	assert_int_equal(wf_head_decode(bytes, UINT64_MAX, &out), WEFT_OK);
	assert_same(&in, &out);
	in = (struct wf_head){0};
	wf_head_encode(&in, bytes);
	assert_int_equal(wf_head_decode(bytes, 0, &out), WEFT_OK);
	in.version = WF_WIRE_VERSION; /* which 0 stands for */
	assert_same(&in, &out);
}

static void
no_flipped_bit_goes_unnoticed(void **state)
{
	struct wf_head in = sample();
	struct wf_head out = {.step = 99};
	uint8_t bytes[WF_HEAD_BYTES];

	wf_head_encode(&in, bytes);
	for (unsigned bit = 0; bit < 8 * WF_HEAD_BYTES; bit++) {
		bytes[bit / 8] ^= (uint8_t)(1u << (bit % 8));
		assert_refused(wf_head_decode(bytes, UINT64_MAX, &out), WEFT_PROTOCOL, "head: ");
		bytes[bit / 8] ^= (uint8_t)(1u << (bit % 8));
	}
	assert_true(out.step == 99);
	assert_int_equal(wf_head_decode(bytes, UINT64_MAX, &out), WEFT_OK);
}

/* Patched, and with a good CRC again. */
static void
assert_patch_refused(const struct patch *patch)
{
	struct wf_head in = sample();
	struct wf_head out;
	uint8_t bytes[WF_HEAD_BYTES];

	wf_head_encode(&in, bytes);
	patch_apply(patch, bytes);
	const struct patch crc = {60, 4, wf_crc32c(0, bytes, 60), NULL};
	patch_apply(&crc, bytes);
	assert_refused(wf_head_decode(bytes, 4000, &out), WEFT_PROTOCOL, patch->text);
}

static void
each_wrong_field_is_named_with_its_value(void **state)
{
	const struct patch patch[] = {
		{0, 4, 0x54464558, "magic is 0x54464558"},
		{0, 4, 0x20544547, "magic is 0x20544547"}, /* "GET " of some web browser */
		{4, 1, 0, "version is 0, this end speaks 3 to 3"},
		{4, 1, 1, "version is 1"},
		{4, 1, 2, "version is 2"},
		{4, 1, 4, "version is 4"},
		{4, 1, 255, "version is 255"},
		{5, 1, 6, "service is 6, known are 0 to 5"},
		{5, 1, 255, "service is 255"},
		{7, 1, 2, "flags is 0x02"},
		{7, 1, 0x81, "flags is 0x81"},
		{7, 1, 0, "payload_crc is 0x61626364 without its flag"},
		{8, 8, 4001, "body_bytes is 4001, the limit here is 4000"},
		{8, 8, 1ull << 63, "body_bytes is 9223372036854775808"},
		{8, 8, UINT64_MAX, "body_bytes is 18446744073709551615"},
	};
	for (size_t i = 0; i < sizeof(patch) / sizeof(patch[0]); i++) {
		assert_patch_refused(&patch[i]);
	}
}

static void
a_wrong_crc_is_named_with_both_values(void **state)
{
	struct wf_head in = {0};
	struct wf_head out;
	uint8_t bytes[WF_HEAD_BYTES];

	wf_head_encode(&in, bytes);
	memset(bytes + 60, 0, 4);
	assert_refused(wf_head_decode(bytes, 0, &out), WEFT_PROTOCOL,
		       "head_crc is 0x00000000, its bytes give 0x");
}

static void
a_tag_holds_24_bits_of_slot_and_8_of_step(void **state)
{
	assert_true(wf_tag(WF_SLOT_MAX, 0x1ff) == 0xffffffff);
	assert_true(wf_tag(0x123456, 0x789) == 0x12345689);
	assert_true(wf_tag_slot(0x12345689) == 0x123456);
	assert_int_equal(wf_tag_step(0x12345689), 0x89);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_bytes_are_the_golden_ones),
		cmocka_unit_test(extreme_values_come_back),
		cmocka_unit_test(no_flipped_bit_goes_unnoticed),
		cmocka_unit_test(each_wrong_field_is_named_with_its_value),
		cmocka_unit_test(a_wrong_crc_is_named_with_both_values),
		cmocka_unit_test(a_tag_holds_24_bits_of_slot_and_8_of_step),
	};
	return cmocka_run_group_tests_name("wire head", tests, NULL, NULL);
}
