/* SPDX-License-Identifier: Apache-2.0 */
/* The vectors of RFC 4231 for HMAC-SHA-256, whole and in parts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/assert.h"
#include "base/mac.h"

struct vector {
	const char *key;
	uint8_t key_byte; /* key is NULL: so many of this byte */
	size_t key_bytes;
	const char *data;
	uint8_t data_byte;
	size_t data_bytes;
	const char *mac; /* in hexadecimal; a beginning of it in test case 5 */
};

static const struct vector vectors[] = {
	{NULL, 0x0b, 20, "Hi There", 0, 8,
	 "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"},
	{"Jefe", 0, 4, "what do ya want for nothing?", 0, 28,
	 "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"},
	{NULL, 0xaa, 20, NULL, 0xdd, 50,
	 "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"},
	{"\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\x10\x11\x12\x13\x14\x15\x16"
	 "\x17\x18\x19",
	 0, 25, NULL, 0xcd, 50, "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b"},
	{NULL, 0x0c, 20, "Test With Truncation", 0, 20, "a3b6167473100ee06e0c796c2955552b"},
	{NULL, 0xaa, 131, "Test Using Larger Than Block-Size Key - Hash Key First", 0, 54,
	 "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"},
	{NULL, 0xaa, 131,
	 "This is a test using a larger than block-size key and a larger than block-size data. "
	 "The key needs to be hashed before being used by the HMAC algorithm.",
	 0, 152, "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2"},
};

/* The text, or `bytes` times one byte. */
static void
fill(uint8_t out[200], const char *text, uint8_t byte, size_t bytes)
{
	memset(out, byte, 200);
	if (text != NULL) {
		memcpy(out, text, bytes);
	}
}

static void
assert_begins(const uint8_t mac[WF_MAC_BYTES], const char *hex)
{
	static const char digits[] = "0123456789abcdef";
	char text[2 * WF_MAC_BYTES + 1] = "";
	for (unsigned i = 0; i < WF_MAC_BYTES; i++) {
		text[2 * i] = digits[mac[i] >> 4];
		text[2 * i + 1] = digits[mac[i] & 15];
	}
	assert_memory_equal(text, hex, strlen(hex));
}

static void
vectors_of_the_standard_come_out(void **state)
{
	for (unsigned i = 0; i < WF_ARRAY_COUNT(vectors); i++) {
		const struct vector *v = &vectors[i];
		uint8_t key[200], data[200], mac[WF_MAC_BYTES];
		fill(key, v->key, v->key_byte, v->key_bytes);
		fill(data, v->data, v->data_byte, v->data_bytes);
		wf_mac(key, v->key_bytes, &(struct wf_mac_part){data, v->data_bytes}, 1, mac);
		assert_begins(mac, v->mac);
	}
}

/* However the bytes are cut. */
static void
parts_are_one_behind_the_other(void **state)
{
	const struct vector *v = &vectors[1];
	for (size_t first = 0; first <= v->data_bytes; first++) {
		uint8_t mac[WF_MAC_BYTES];
		const struct wf_mac_part parts[] = {
			{v->data, first},
			{NULL, 0},
			{v->data + first, v->data_bytes - first},
		};
		wf_mac(v->key, v->key_bytes, parts, WF_ARRAY_COUNT(parts), mac);
		assert_begins(mac, v->mac);
	}
}

static void
codes_are_equal_only_as_a_whole(void **state)
{
	uint8_t a[WF_MAC_BYTES] = {1, 2, 3}, b[WF_MAC_BYTES] = {1, 2, 3};
	assert_true(wf_mac_is_equal(a, b));
	for (unsigned bit = 0; bit < 8 * WF_MAC_BYTES; bit++) {
		b[bit / 8] ^= (uint8_t)(1u << bit % 8);
		assert_false(wf_mac_is_equal(a, b));
		b[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(vectors_of_the_standard_come_out),
		cmocka_unit_test(parts_are_one_behind_the_other),
		cmocka_unit_test(codes_are_equal_only_as_a_whole),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
