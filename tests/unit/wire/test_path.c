/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of wire/path. */
#include <stdio.h>

#include "tests/unit/wire/golden.h"
#include "tests/unit/wire/refused.h"
#include "wire/path.h"

static void
fill(uint8_t out[WF_PATH_AUTH_BYTES], uint8_t first)
{
	for (uint8_t i = 0; i < WF_PATH_AUTH_BYTES; i++) {
		out[i] = (uint8_t)(first + i);
	}
}

static struct wf_path_head
sample(enum wf_path_kind kind)
{
	struct wf_path_head head = {.kind = (uint8_t)kind, .text = ""};
	bool with_id = kind == WF_PATH_HELLO || kind == WF_PATH_TICKET || kind == WF_PATH_UPGRADE;
	for (uint8_t i = 0; with_id && i < WF_PATH_ID_BYTES; i++) {
		head.id[i] = (uint8_t)(0xa0 + i);
	}
	switch (kind) {
	case WF_PATH_HELLO:
		head.flags = WF_PATH_MUST;
		head.paths = 1u << WF_PATH_SHM | 1u << WF_PATH_VERBS;
		snprintf(head.text, sizeof(head.text), "shm broke 1.2 s ago: the peer went");
		break;
	case WF_PATH_TICKET:
		head.path = WF_PATH_SHM;
		break;
	case WF_PATH_HERE:
		head.reason = WF_PATH_MISSING;
		snprintf(head.text, sizeof(head.text), "shm: no descriptors");
		break;
	case WF_PATH_UPGRADE:
		head.offer_count = 2;
		head.offer[0] = (struct wf_path_offer){
			.path = WF_PATH_SHM, .port = 40000, .host = "127.0.0.1"};
		head.offer[1] = (struct wf_path_offer){.path = WF_PATH_VERBS, .port = 18515};
		break;
	case WF_PATH_NO:
		head.reason = WF_PATH_ONLY;
		snprintf(head.text, sizeof(head.text), "it demands what is excluded here");
		break;
	case WF_PATH_KNOCK:
	case WF_PATH_CHALLENGE:
		fill(head.auth, 0x10);
		break;
	}
	return head;
}

/* The same with a secret. */
static struct wf_path_head
sealed_sample(enum wf_path_kind kind)
{
	struct wf_path_head head = sample(kind);
	head.flags |= WF_PATH_SEALED;
	fill(head.auth, 0x40);
	if (kind == WF_PATH_HELLO) {
		fill(head.nonce, 0x70);
	}
	return head;
}

static void
each_kind_is_its_golden_bytes(void **state)
{
	static const struct {
		enum wf_path_kind kind;
		const char *name;
		bool sealed;
	} kinds[] = {
		{WF_PATH_HELLO, "path_hello", false},
		{WF_PATH_TICKET, "path_ticket", false},
		{WF_PATH_HERE, "path_here", false},
		{WF_PATH_UPGRADE, "path_upgrade", false},
		{WF_PATH_NO, "path_no", false},
		{WF_PATH_KNOCK, "path_knock", false},
		{WF_PATH_CHALLENGE, "path_challenge", false},
		{WF_PATH_HELLO, "path_hello_sealed", true},
		{WF_PATH_TICKET, "path_ticket_sealed", true},
		{WF_PATH_HERE, "path_here_sealed", true},
		{WF_PATH_UPGRADE, "path_upgrade_sealed", true},
	};
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		uint8_t bytes[WF_PATH_UPGRADE_MAX];
		uint8_t held[GOLDEN_BYTES_MAX];
		struct wf_path_head in =
			kinds[i].sealed ? sealed_sample(kinds[i].kind) : sample(kinds[i].kind);
		struct wf_path_head out;
		size_t used = 0;
		size_t count = golden_check(kinds[i].name, bytes, wf_path_encode(&in, bytes), held);
		assert_int_equal(wf_path_decode(held, count, &out, &used), WEFT_OK);
		assert_int_equal(used, count);
		assert_int_equal(wf_path_encode(&out, bytes), count);
		assert_memory_equal(bytes, held, count);
		assert_true(out.kind == in.kind && out.flags == in.flags && out.path == in.path);
		assert_true(out.reason == in.reason && out.paths == in.paths);
		assert_true(out.offer_count == in.offer_count);
		assert_string_equal(out.text, in.text);
		assert_memory_equal(out.id, in.id, sizeof(in.id));
		assert_memory_equal(out.auth, in.auth, sizeof(in.auth));
		assert_memory_equal(out.nonce, in.nonce, sizeof(in.nonce));
	}
}

static void
the_users_bytes_follow_a_hello_and_the_verdict_that_carries(void **state)
{
	for (int n_kind = 0; n_kind < WF_PATH_KIND_MAX + WF_PATH_NO; n_kind++) {
		uint8_t bytes[WF_PATH_UPGRADE_MAX + WF_PATH_USER_MAX + 1] = {0};
		bool sealed = n_kind >= WF_PATH_KIND_MAX;
		int kind = 1 + n_kind - (sealed ? WF_PATH_KIND_MAX : 0);
		struct wf_path_head in = sealed ? sealed_sample((enum wf_path_kind)kind)
						: sample((enum wf_path_kind)kind);
		struct wf_path_head out;
		size_t used = 0;
		bool user = kind == WF_PATH_HELLO || kind == WF_PATH_HERE;
		size_t count = wf_path_encode(&in, bytes);
		enum weft_status st = wf_path_decode(bytes, count + WF_PATH_USER_MAX, &out, &used);
		assert_int_equal(st, user ? WEFT_OK : WEFT_PROTOCOL);
		assert_true(!user || used == count);
		assert_refused(wf_path_decode(bytes, count + WF_PATH_USER_MAX + 1, &out, &used),
			       WEFT_PROTOCOL, "bytes behind it is 1025");
		for (size_t n = 0; n < count; n++) {
			assert_refused(wf_path_decode(bytes, n, &out, &used), WEFT_PROTOCOL,
				       "path head: ");
		}
	}
}

static void
a_text_that_is_too_long_is_cut(void **state)
{
	uint8_t bytes[WF_PATH_UPGRADE_MAX];
	struct wf_path_head in = sample(WF_PATH_NO);
	struct wf_path_head out;
	size_t used = 0;
	memset(in.text, 'x', sizeof(in.text) - 1);
	in.text[sizeof(in.text) - 1] = '\0';
	const size_t longest = WF_PATH_PLAIN_MAX - WF_PATH_AUTH_BYTES; /* it has no nonce */
	assert_int_equal(wf_path_encode(&in, bytes), longest);
	assert_int_equal(wf_path_decode(bytes, longest, &out, &used), WEFT_OK);
	assert_string_equal(out.text, in.text);
	in.kind = WF_PATH_HELLO;
	in.reason = 0;
	in.flags = WF_PATH_SEALED;
	assert_int_equal(wf_path_encode(&in, bytes), WF_PATH_PLAIN_MAX);
	assert_int_equal(wf_path_decode(bytes, WF_PATH_PLAIN_MAX, &out, &used), WEFT_OK);
	assert_string_equal(out.text, in.text);
}

static void
each_wrong_field_is_named(void **state)
{
	static const struct {
		enum wf_path_kind kind;
		struct patch patch;
	} wrong[] = {
		{WF_PATH_HELLO, {0, 4, 0x47455420, "magic is "}},
		{WF_PATH_HELLO, {4, 2, 2, "version is 2"}},
		{WF_PATH_HELLO, {6, 1, 0, "kind is 0"}},
		{WF_PATH_HELLO, {6, 1, 8, "kind is 8"}},
		{WF_PATH_HELLO, {7, 1, 4, "flags is 4"}},
		{WF_PATH_KNOCK, {7, 1, 1, "flags is 1"}},
		{WF_PATH_KNOCK, {7, 1, 2, "flags is 2"}},
		{WF_PATH_CHALLENGE, {7, 1, 2, "flags is 2"}},
		{WF_PATH_NO, {7, 1, 3, "flags is 3"}},
		{WF_PATH_KNOCK, {16, 1, 9, "id is 9"}},
		{WF_PATH_KNOCK, {9, 1, 1, "reason is 1"}},
		{WF_PATH_CHALLENGE, {8, 1, 1, "path is 1"}},
		{WF_PATH_TICKET, {7, 1, 1, "flags is 1"}},
		{WF_PATH_HELLO, {8, 1, 1, "path is 1"}},
		{WF_PATH_TICKET, {8, 1, WF_PATH_ID_COUNT, "path is 4"}},
		{WF_PATH_TICKET, {9, 1, 1, "reason is 1"}},
		{WF_PATH_HERE, {9, 1, WF_PATH_REASON_COUNT, "reason is 8"}},
		{WF_PATH_HELLO, {10, 1, 1, "offer_count is 1"}},
		{WF_PATH_UPGRADE, {10, 1, 0, "offer_count is 0"}},
		{WF_PATH_UPGRADE, {10, 1, 9, "offer_count is 9"}},
		{WF_PATH_HELLO, {11, 1, 1, "unused byte is 1"}},
		{WF_PATH_NO, {12, 4, 1, "paths is 1"}},
		{WF_PATH_NO, {16, 1, 9, "id is 9"}},
		{WF_PATH_HERE, {31, 1, 9, "id is 9"}},
		{WF_PATH_HELLO, {32, 1, 9, "auth is 9"}},
		{WF_PATH_HELLO, {63, 1, 9, "auth is 9"}},
		{WF_PATH_HELLO, {64, 2, 124, "text"}},
		{WF_PATH_HELLO, {66, 1, 0x1b, "text"}},
		{WF_PATH_UPGRADE, {66, 1, 0, "path of an offer is 0"}},
		{WF_PATH_UPGRADE, {67, 2, 0, "port of an offer is 0"}},
		{WF_PATH_UPGRADE, {69, 2, 64, "host of an offer"}},
	};
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		uint8_t bytes[WF_PATH_UPGRADE_MAX];
		struct wf_path_head in = sample(wrong[i].kind);
		struct wf_path_head out;
		size_t used = 0;
		size_t count = wf_path_encode(&in, bytes);
		patch_apply(&wrong[i].patch, bytes);
		assert_refused(wf_path_decode(bytes, count, &out, &used), WEFT_PROTOCOL,
			       wrong[i].patch.text);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_kind_is_its_golden_bytes),
		cmocka_unit_test(the_users_bytes_follow_a_hello_and_the_verdict_that_carries),
		cmocka_unit_test(a_text_that_is_too_long_is_cut),
		cmocka_unit_test(each_wrong_field_is_named),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
