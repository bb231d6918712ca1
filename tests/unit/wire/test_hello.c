/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of wire/hello. */
#include <stdio.h>

#include "tests/unit/wire/golden.h"
#include "tests/unit/wire/refused.h"
#include "wire/head.h"
#include "wire/hello.h"

static struct wf_hello
sample(void)
{
	return (struct wf_hello){
		.version_min = WF_WIRE_VERSION_MIN,
		.version_max = WF_WIRE_VERSION,
		.service = WF_SERVICE_DENSE,
		.pserver_idx = 1,
		.lane_idx = 2,
		.pserver_count = 3,
		.lane_count = 4,
		.trainer_id = 5,
		.trainer_count = 6,
		.incarnation = 0x0102030405060708,
		.path = 7,
		.epoch = 8,
		.job_digest = 0x1112131415161718,
		.tensors_digest = 0x2122232425262728,
		.placement_digest = 0x3132333435363738,
		.numerics_digest = 0x4142434445464748,
		.job_bytes = 1000,
		.msg_bytes_max = 4032,
		.put_bytes_max = 67108864,
		.host = "nodea",
		.pid = 4711,
		.options = "slice_bytes=256 momentum=0.9",
		.tensors = "w=13 b=1",
		.compared = "seed=1 batch_size=32",
	};
}

static struct wf_welcome
sample_welcome(void)
{
	return (struct wf_welcome){
		.version = WF_WIRE_VERSION,
		.flags = WF_WELCOME_SEND_JOB,
		.incarnation = 0x0102030405060708,
		.epoch = 9,
		.slot_count = 8,
		.msg_bytes_max = 4032,
		.put_bytes_max = 67108864,
	};
}

/* Every field goes through one of the two forms, so equal encodings are equal structs. */
static void
assert_same_hello(const struct wf_hello *a, const struct wf_hello *b)
{
	uint8_t one[WF_HELLO_MAX];
	uint8_t two[WF_HELLO_MAX];
	size_t bytes = wf_hello_encode(a, one);
	assert_int_equal(wf_hello_encode(b, two), bytes);
	assert_memory_equal(one, two, bytes);
}

static void
a_hello_is_its_golden_bytes(void **state)
{
	uint8_t bytes[WF_HELLO_MAX];
	uint8_t held[GOLDEN_BYTES_MAX];
	struct wf_hello in = sample();
	struct wf_hello out;

	size_t count = golden_check("hello", bytes, wf_hello_encode(&in, bytes), held);
	assert_int_equal(wf_hello_decode(held, count, &out), WEFT_OK);
	assert_same_hello(&in, &out);
	assert_true(out.pserver_idx == 1 && out.lane_idx == 2 && out.pserver_count == 3);
	assert_true(out.lane_count == 4 && out.trainer_id == 5 && out.trainer_count == 6);
	assert_true(out.incarnation == in.incarnation && out.path == 7 && out.epoch == 8);
	assert_true(out.job_digest == in.job_digest && out.tensors_digest == in.tensors_digest);
	assert_true(out.placement_digest == in.placement_digest);
	assert_true(out.numerics_digest == in.numerics_digest && out.job_bytes == 1000);
	assert_true(out.msg_bytes_max == 4032 && out.put_bytes_max == 67108864);
	assert_true(out.pid == 4711);
	assert_string_equal(out.host, "nodea");
	assert_string_equal(out.options, in.options);
	assert_string_equal(out.tensors, in.tensors);
	assert_string_equal(out.compared, in.compared);
	assert_int_equal(wf_hello_version(&out), WF_WIRE_VERSION);
}

static void
a_welcome_is_its_golden_bytes(void **state)
{
	uint8_t bytes[WF_HELLO_MAX];
	uint8_t held[GOLDEN_BYTES_MAX];
	struct wf_welcome in = sample_welcome();
	struct wf_welcome out;

	size_t count = golden_check("welcome", bytes, wf_welcome_encode(&in, bytes), held);
	assert_int_equal(wf_welcome_decode(held, count, &out), WEFT_OK);
	assert_int_equal(out.version, WF_WIRE_VERSION);
	assert_int_equal(out.refusal, WEFT_OK);
	assert_true(out.flags == WF_WELCOME_SEND_JOB && out.incarnation == in.incarnation);
	assert_true(out.epoch == 9 && out.slot_count == 8 && out.msg_bytes_max == 4032);
	assert_true(out.put_bytes_max == 67108864);
	assert_string_equal(out.reason, "");
}

static void
a_refusal_is_its_golden_bytes(void **state)
{
	uint8_t bytes[WF_HELLO_MAX];
	uint8_t held[GOLDEN_BYTES_MAX];
	struct wf_welcome in = {
		.version = WF_WIRE_VERSION, /* not sent */
		.refusal = WEFT_MISMATCH,
		.reason = "trainer 1 has num_gradient_servers 3,\ntrainer 0 has 2",
	};
	struct wf_welcome out;

	size_t count = golden_check("refusal", bytes, wf_welcome_encode(&in, bytes), held);
	assert_int_equal(wf_welcome_decode(held, count, &out), WEFT_OK);
	assert_int_equal(out.version, 0);
	assert_int_equal(out.refusal, WEFT_MISMATCH);
	assert_string_equal(out.reason, "trainer 1 has num_gradient_servers 3,?trainer 0 has 2");
}

static void
extreme_values_come_back(void **state)
{
	uint8_t bytes[WF_HELLO_MAX];
	struct wf_hello in = sample();
	struct wf_hello out;

	in.version_max = UINT16_MAX;
	in.pserver_count = 65536;
	in.pserver_idx = 65535;
	in.lane_count = 1;
	in.lane_idx = 0;
	in.trainer_count = 65536;
	in.trainer_id = 65535;
	in.incarnation = in.epoch = in.job_digest = in.tensors_digest = UINT64_MAX;
	in.placement_digest = in.numerics_digest = in.put_bytes_max = UINT64_MAX;
	in.path = in.msg_bytes_max = in.pid = UINT32_MAX;
	in.job_bytes = 16u << 20;
	memset(in.host, '~', sizeof(in.host) - 1);
	memset(in.options, '~', sizeof(in.options) - 1);
	memset(in.tensors, '!', sizeof(in.tensors) - 1);
	memset(in.compared, '#', sizeof(in.compared) - 1);
	assert_true(wf_hello_encode(&in, bytes) <= WF_HELLO_MAX);
	assert_int_equal(wf_hello_decode(bytes, wf_hello_encode(&in, bytes), &out), WEFT_OK);
	assert_same_hello(&in, &out);
	assert_int_equal(wf_hello_version(&out), WF_WIRE_VERSION);
	in.host[0] = '\0';
	assert_int_equal(wf_hello_decode(bytes, wf_hello_encode(&in, bytes), &out), WEFT_OK);
	assert_same_hello(&in, &out);
}

static void
no_other_length_is_taken(void **state)
{
	uint8_t bytes[WF_HELLO_MAX + 1] = {0};
	struct wf_hello hello = sample();
	struct wf_hello out;
	struct wf_welcome welcome = sample_welcome();
	struct wf_welcome welcome_out;

	size_t count = wf_hello_encode(&hello, bytes);
	for (size_t n = 0; n < count; n++) {
		assert_refused(wf_hello_decode(bytes, n, &out), WEFT_PROTOCOL, "HELLO: ");
	}
	assert_refused(wf_hello_decode(bytes, count + 1, &out), WEFT_PROTOCOL, "its fields take");
	assert_refused(wf_hello_decode(bytes, WF_HELLO_MAX + 1, &out), WEFT_PROTOCOL,
		       "its length is 1025");
	count = wf_welcome_encode(&welcome, bytes);
	for (size_t n = 0; n < count; n++) {
		assert_refused(wf_welcome_decode(bytes, n, &welcome_out), WEFT_PROTOCOL,
			       "WELCOME: ");
	}
	assert_refused(wf_welcome_decode(bytes, count + 1, &welcome_out), WEFT_PROTOCOL,
		       "its fields take");
	assert_refused(wf_welcome_decode(bytes, WF_HELLO_MAX + 1, &welcome_out), WEFT_PROTOCOL,
		       "its length is 1025");
}

static void
each_wrong_field_of_a_hello_is_named(void **state)
{
	const struct patch patch[] = {
		{0, 2, 0, "version_min is 0"},
		{2, 2, 0, "version_min is 3, above version_max 0"},
		{4, 1, 1, "service is 1"},
		{4, 1, 6, "service is 6, must be 2 (dense), 3 (sparse), 4 (registry) or 5 (watch)"},
		{5, 4, 3, "pserver_idx is 3"},
		{9, 4, 4, "lane_idx is 4"},
		{13, 4, 0, "pserver_count is 0"},
		{13, 4, UINT32_MAX, "pserver_count is 4294967295"},
		{13, 4, 0x40000001, "pserver_count is 1073741825"}, /* times 4: 4 in 32 bits */
		{17, 4, 0, "lane_count 0"},
		{17, 4, 32768, "lane_count 32768"},
		{21, 4, 6, "trainer_id is 6, must be below num_gradient_servers, which is 6"},
		{25, 4, 0, "trainer_count is 0"},
		{25, 4, 65537, "trainer_count is 65537"},
		{29, 8, 0, "incarnation is 0"},
		{37, 4, 0, "path is 0"},
		{81, 8, 0, "job_bytes is 0"},
		{81, 8, (16u << 20) + 1, "job_bytes is 16777217"},
		{89, 4, 0, "msg_bytes_max is 0"},
		{93, 8, 0, "put_bytes_max is 0"},
		{105, 2, 64, "host"},
		{107, 1, 0x1b, "host"},
		{112, 2, 1, "auth.scheme is 1"},
		{114, 1, 1, "auth.nonce is 1"},
		{145, 1, 2, "auth.nonce is 2"},
		{146, 1, 3, "auth.mac is 3"},
		{177, 1, 4, "auth.mac is 4"},
		{180, 1, 0x1b, "options"},
		{210, 1, 0x1b, "tensors"},
		{218, 2, 256, "compared"},
		{220, 1, 0x1b, "compared"},
	};
	for (size_t i = 0; i < sizeof(patch) / sizeof(patch[0]); i++) {
		uint8_t bytes[WF_HELLO_MAX];
		struct wf_hello in = sample();
		struct wf_hello out;
		size_t count = wf_hello_encode(&in, bytes);
		patch_apply(&patch[i], bytes);
		assert_refused(wf_hello_decode(bytes, count, &out), WEFT_PROTOCOL, patch[i].text);
	}
}

/* A pserver says hello to the registrar. */
static struct wf_hello
sample_registry(void)
{
	struct wf_hello hello = sample();
	hello.service = WF_SERVICE_REGISTRY;
	hello.pserver_idx = 0;
	hello.lane_idx = 0;
	hello.trainer_id = 2;
	hello.trainer_count = hello.pserver_count;
	return hello;
}

static void
a_hello_of_a_pserver_comes_back(void **state)
{
	uint8_t bytes[WF_HELLO_MAX];
	struct wf_hello in = sample_registry();
	struct wf_hello out;

	assert_int_equal(wf_hello_decode(bytes, wf_hello_encode(&in, bytes), &out), WEFT_OK);
	assert_same_hello(&in, &out);
	assert_true(out.service == WF_SERVICE_REGISTRY && out.pserver_idx == 0);
	assert_true(out.trainer_id == 2 && out.trainer_count == 3 && out.pserver_count == 3);
}

static void
a_watcher_counts_one_of_everything(void **state)
{
	uint8_t bytes[WF_HELLO_MAX];
	struct wf_hello out;
	struct wf_hello in = sample();
	in.service = WF_SERVICE_WATCH;
	in.pserver_idx = in.lane_idx = in.trainer_id = 0;
	in.pserver_count = in.lane_count = in.trainer_count = 1;

	assert_int_equal(wf_hello_decode(bytes, wf_hello_encode(&in, bytes), &out), WEFT_OK);
	assert_same_hello(&in, &out);
	in.trainer_count = 2;
	assert_refused(wf_hello_decode(bytes, wf_hello_encode(&in, bytes), &out), WEFT_PROTOCOL,
		       "trainer_count is 2, must be 1 for a watcher");
	in.lane_count = 2;
	assert_refused(wf_hello_decode(bytes, wf_hello_encode(&in, bytes), &out), WEFT_PROTOCOL,
		       "lane_count is 2, must be 1 for a watcher");
}

static void
each_wrong_field_of_a_hello_of_a_pserver_is_named(void **state)
{
	const struct patch patch[] = {
		{5, 4, 1, "pserver_idx is 1, must be 0 for the registry"},
		{9, 4, 1, "lane_idx is 1, must be 0 for the registry"},
		{9, 4, 4, "lane_idx is 4, must be below lane_count"},
		{21, 4, 3, "trainer_id is 3, must be below trainer_count, which is 3"},
		{25, 4, 6, "trainer_count is 6, must be pserver_count for the registry"},
		{13, 4, 2, "trainer_count is 3, must be pserver_count for the registry"},
		{29, 8, 0, "incarnation is 0"},
	};
	for (size_t i = 0; i < sizeof(patch) / sizeof(patch[0]); i++) {
		uint8_t bytes[WF_HELLO_MAX];
		struct wf_hello in = sample_registry();
		struct wf_hello out;
		size_t count = wf_hello_encode(&in, bytes);
		patch_apply(&patch[i], bytes);
		assert_refused(wf_hello_decode(bytes, count, &out), WEFT_PROTOCOL, patch[i].text);
	}
}

static void
a_peer_without_a_common_version_is_told_both_ranges(void **state)
{
	/* Of a version to come only the first four bytes are known to be understood. */
	static const uint8_t later[] = {4, 0, 5, 0, 0xff};
	static const uint8_t before[] = {1, 0, 2, 0, 0xff};
	struct wf_hello out;

	assert_refused(wf_hello_decode(later, sizeof(later), &out), WEFT_MISMATCH,
		       "speaks wire versions 4 to 5, this end 3 to 3");
	assert_refused(wf_hello_decode(before, sizeof(before), &out), WEFT_MISMATCH,
		       "speaks wire versions 1 to 2, this end 3 to 3");
}

static void
each_wrong_field_of_a_welcome_is_named(void **state)
{
	const struct patch patch[] = {
		{0, 2, 0, "version is 0"},
		{0, 2, 1, "version is 1"},
		{0, 2, 2, "version is 2"},
		{0, 2, 4, "version is 4"},
		{2, 2, WEFT_AGAIN, "refusal is 1"},
		{2, 2, WEFT_STATUS_COUNT, "refusal is 18"},
		{2, 2, WEFT_TIMEOUT, "version is 3, must be 0 in a refusal"},
		{4, 4, 2, "flags is 2"}, /* the job is over: only in a refusal */
		{4, 4, 1u << 31, "flags is 2147483648"},
		{8, 8, 0, "incarnation is 0"},
		{24, 4, 0, "slot_count is 0"},
		{24, 4, 3, "slot_count is 3"},
		{24, 4, 2048, "slot_count is 2048"},
		{28, 4, 0, "msg_bytes_max is 0"},
		{32, 8, 0, "put_bytes_max is 0"},
		{40, 2, 256, "reason"},
		{42, 2, 1, "auth.scheme is 1"},
		{44, 1, 1, "auth.nonce is 1"},
		{76, 1, 1, "auth.mac is 1"},
	};
	for (size_t i = 0; i < sizeof(patch) / sizeof(patch[0]); i++) {
		uint8_t bytes[WF_HELLO_MAX];
		struct wf_welcome in = sample_welcome();
		struct wf_welcome out;
		size_t count = wf_welcome_encode(&in, bytes);
		patch_apply(&patch[i], bytes);
		assert_refused(wf_welcome_decode(bytes, count, &out), WEFT_PROTOCOL, patch[i].text);
	}
}

static void
members_of_one_job_match(void **state)
{
	struct wf_hello first = sample();
	struct wf_hello other = sample();

	other.trainer_id = 0;
	other.incarnation = 1;
	other.path = 99;
	other.epoch = 1;
	other.numerics_digest = 0;
	other.pid = 1;
	other.msg_bytes_max = 1;
	other.put_bytes_max = 1;
	snprintf(other.host, sizeof(other.host), "nodeb");
	assert_int_equal(wf_hello_match(&first, &other), WEFT_OK);
}

static void
a_mismatch_names_the_field_both_values_and_whose_they_are(void **state)
{
	struct wf_hello first = sample();
	struct wf_hello other = sample();

	first.trainer_id = 0;
	first.trainer_count = 2;
	other.trainer_id = 1;
	other.trainer_count = 3;
	other.pid = 7;
	snprintf(other.host, sizeof(other.host), "nodeb");
	enum weft_status st = wf_hello_match(&first, &other);
	assert_refused(st, WEFT_MISMATCH,
		       "trainer 1 on nodeb (pid 7) has num_gradient_servers 3, "
		       "trainer 0 on nodea (pid 4711) has 2: ");
	other.trainer_count = 2;
	other.tensors_digest = 0xabc;
	st = wf_hello_match(&first, &other);
	assert_refused(st, WEFT_MISMATCH,
		       "has tensors digest 0000000000000abc, trainer 0 on nodea (pid 4711) has "
		       "2122232425262728");
}

static void
every_common_field_is_compared(void **state)
{
	struct wf_hello first = sample();
	struct wf_hello other[10];

	for (size_t i = 0; i < 10; i++) {
		other[i] = sample();
	}
	other[0].service = 3;
	other[1].trainer_count++;
	other[2].pserver_count++;
	other[3].lane_count++;
	other[4].pserver_idx = 0;
	other[5].lane_idx = 0;
	other[6].job_digest++;
	other[7].tensors_digest++;
	other[8].placement_digest++;
	other[9].job_bytes++;
	const char *text[10] = {"service",    "num_gradient_servers", "number of pservers",
				"ports_num",  "this pserver",         "this lane",
				"job digest", "tensors digest",       "placement digest",
				"job_bytes"};
	for (size_t i = 0; i < 10; i++) {
		assert_refused(wf_hello_match(&first, &other[i]), WEFT_MISMATCH, text[i]);
	}
}

static void
the_setting_behind_a_digest_is_named(void **state)
{
	struct wf_hello first = sample();
	struct wf_hello other = sample();
	other.trainer_id = 1;
	other.job_digest++;
	snprintf(other.options, sizeof(other.options), "slice_bytes=256 momentum=0.5");
	assert_refused(
		wf_hello_match(&first, &other), WEFT_MISMATCH,
		"trainer 1 on nodea (pid 4711) has momentum=0.5, trainer 5 on nodea (pid 4711) "
		"has momentum=0.9: give every trainer the same options");
	other = sample();
	other.tensors_digest++;
	snprintf(other.tensors, sizeof(other.tensors), "w=13");
	assert_refused(wf_hello_match(&first, &other), WEFT_MISMATCH, "has no more, ");
	snprintf(other.tensors, sizeof(other.tensors), "w=13 b=1 c=2");
	assert_refused(wf_hello_match(&first, &other), WEFT_MISMATCH, "has c=2, ");
	/* Long ones, of which the parts that differ are named; those of another have none of these.
	 */
	other = sample();
	other.tensors_digest++;
	snprintf(first.tensors, sizeof(first.tensors), "table=aaaaaaaaaaaaaaaa,bbbbbbbbbbbbbbbb,c");
	snprintf(other.tensors, sizeof(other.tensors), "table=aaaaaaaaaaaaaaaa,bbbbbbbbbbbbbbbb,d");
	assert_refused(wf_hello_match(&first, &other), WEFT_MISMATCH, "has table=d, trainer 5 on");
	snprintf(other.tensors, sizeof(other.tensors), "words=aaaaaaaaaaaaaaaa,bbbbbbbbbbbbbbbb,c");
	assert_refused(wf_hello_match(&first, &other), WEFT_MISMATCH,
		       "has words=aaaaaaaaaaaaaaaa,bbbbbbbbbbbbbbbb,..., trainer 5 on");
	first = sample();
	other = sample();
	other.tensors_digest++; /* the difference lies behind the summaries' end */
	assert_refused(wf_hello_match(&first, &other), WEFT_MISMATCH, "tensors digest");
}

/* A refusal travels in WF_REASON_BYTES, often behind words about who waits for whom: however long
 * what differs is, who, which table and what to do have to fit. */
static void
long_tables_leave_room_for_the_remedy(void **state)
{
	static const struct {
		const char *firsts;
		const char *others;
		const char *text;
	} rows[] = {
		{"a=1", "a=1 b=5,wire=bf16,optimizer=adagrad,init=uniform,init_a=-0.5,init_b=0.5",
		 "has b=5,wire=bf16,optimizer=adagrad,..., trainer 5 on nodea (pid 4711) has no "
		 "more: declare the same tables"},
		{"a=1 b=5,wire=bf16,optimizer=adagrad,init=uniform,init_a=-0.5,init_b=0.5", "a=1",
		 "has no more, trainer 5 on nodea (pid 4711) has b=5,wire=bf16,optimizer=adagrad,"
		 "...: declare the same tables"},
		{"b=5,wire=bf16,optimizer=adagrad,init=uniform,init_a=-0.5,init_b=0.5",
		 "b=6,wire=f16,optimizer=momentum,init=normal,init_a=-0.25,init_b=0.25",
		 "has b=6,wire=f16,optimizer=momentum,..., trainer 5 on nodea (pid 4711) has "
		 "b=5,wire=bf16,optimizer=adagrad,...: declare the same tables"},
		/* A name and the first part stand there whatever their length. */
		{"", "the_words_that_the_third_of_the_models_reads=5,wire=bf16,optimizer=sgd",
		 "has the_words_that_the_third_of_the_models_reads=5,..., trainer 5 on"},
		{"", "a_word_without_a_value,that_has_parts_all_the_same",
		 "has a_word_without_a_value,..., "},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct wf_hello first = sample();
		struct wf_hello other = sample();
		first.service = WF_SERVICE_SPARSE;
		other.service = WF_SERVICE_SPARSE;
		other.tensors_digest++;
		(void)snprintf(first.tensors, sizeof(first.tensors), "%s", rows[i].firsts);
		(void)snprintf(other.tensors, sizeof(other.tensors), "%s", rows[i].others);
		enum weft_status st = wf_hello_match(&first, &other);
		assert_refused(st, WEFT_MISMATCH, rows[i].text);
		assert_refused(st, WEFT_MISMATCH, "in the same order, on every trainer");
		assert_true(strlen(weft_last_error()) < WF_REASON_BYTES);
	}
}

/* Words of settings have no order; who does not say one has its default. */
static void
a_setting_that_one_end_has_at_its_default_is_named(void **state)
{
	static const struct {
		const char *firsts;
		const char *others;
		const char *text;
	} rows[] = {
		{"momentum=0.9 l2=0.5", "l2=0.5 momentum=0.8", "has momentum=0.8, trainer 5 "},
		{"momentum=0.9", "",
		 "has momentum=0, trainer 5 on nodea (pid 4711) has momentum=0.9"},
		{"", "adam_beta1=0.5",
		 "has adam_beta1=0.5, trainer 5 on nodea (pid 4711) has "
		 "adam_beta1=0.9: give every trainer the same options"},
		{"l2=1", "l2=1 learning_rate=1", "has learning_rate=1, trainer 5"},
		{"l1=1", "l1=1 dense_mode=async", "has dense_mode=sync: give"},
		{"l1=1", "l1=1 grad_reduce=mean", "has grad_reduce=sum: give"},
		/* A part of a name is another setting. */
		{"average_window=1 max_average_window=3", "max_average_window=3 average_window=1",
		 "job digest"},
		/* What this library does not know. */
		{"", "newer=1", "has newer=1, trainer 5 on nodea (pid 4711) has another newer"},
		{"bare", "", "has another bare, trainer 5 on nodea (pid 4711) has bare"},
		/* What does not fit is not known: it is not the default, for all that is said. */
		{"l1=1 ...", "l1=1 momentum=0.5", "has job digest"},
		{"l1=1 momentum=0.5", "l1=1 ...", "has job digest"},
		{"l1=1 ...", "l1=2 momentum=0.5", "has l1=2, trainer 5"},
		{"l1=1 l2=3 ...", "l1=1 ...", "has job digest"},
		{"l1=1 l2=3 ...", "l1=1", "has l2=0, trainer 5"},
		/* The difference is not among them. */
		{"l2=1 l1=2", "l1=2 l2=1", "has job digest"},
		{"", "", "has job digest"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct wf_hello first = sample();
		struct wf_hello other = sample();
		other.job_digest++;
		(void)snprintf(first.options, sizeof(first.options), "%s", rows[i].firsts);
		(void)snprintf(other.options, sizeof(other.options), "%s", rows[i].others);
		assert_refused(wf_hello_match(&first, &other), WEFT_MISMATCH, rows[i].text);
	}
}

/* They travel as they are: there is no digest beside them that could see more. */
static void
the_first_of_a_programs_own_words_that_differs_is_named(void **state)
{
	static const struct {
		const char *first, *other, *says;
	} row[] = {
		{"seed=1 batch_size=32", "seed=1 batch_size=64",
		 "trainer 1 on nodea (pid 4711) has batch_size=64, trainer 5 on nodea (pid 4711) "
		 "has batch_size=32: give every trainer the same"},
		{"seed=1 batch_size=32", "seed=12 batch_size=32", "has seed=12, trainer 5"},
		{"seed=1", "seed=1 batch_size=32", "has batch_size=32, trainer 5 on nodea"},
		{"seed=1 batch_size=32", "seed=1", "has no more, trainer 5 on nodea"},
		{"seed=1", "seed=1 ", NULL},
		{"seed=1", "", NULL}, /* says nothing */
		{"", "seed=1", NULL},
	};
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		struct wf_hello first = sample();
		struct wf_hello other = sample();
		other.trainer_id = 1;
		(void)snprintf(first.compared, sizeof(first.compared), "%s", row[i].first);
		(void)snprintf(other.compared, sizeof(other.compared), "%s", row[i].other);
		enum weft_status st = wf_hello_match_compared(&first, &other);
		if (row[i].says != NULL) {
			assert_refused(st, WEFT_MISMATCH, row[i].says);
		} else {
			assert_int_equal(st, WEFT_OK);
		}
		memcpy(other.compared, first.compared, sizeof(first.compared));
		assert_int_equal(wf_hello_match_compared(&first, &other), WEFT_OK);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_hello_is_its_golden_bytes),
		cmocka_unit_test(a_welcome_is_its_golden_bytes),
		cmocka_unit_test(a_refusal_is_its_golden_bytes),
		cmocka_unit_test(extreme_values_come_back),
		cmocka_unit_test(no_other_length_is_taken),
		cmocka_unit_test(each_wrong_field_of_a_hello_is_named),
		cmocka_unit_test(a_hello_of_a_pserver_comes_back),
		cmocka_unit_test(a_watcher_counts_one_of_everything),
		cmocka_unit_test(each_wrong_field_of_a_hello_of_a_pserver_is_named),
		cmocka_unit_test(a_peer_without_a_common_version_is_told_both_ranges),
		cmocka_unit_test(each_wrong_field_of_a_welcome_is_named),
		cmocka_unit_test(members_of_one_job_match),
		cmocka_unit_test(the_setting_behind_a_digest_is_named),
		cmocka_unit_test(long_tables_leave_room_for_the_remedy),
		cmocka_unit_test(a_setting_that_one_end_has_at_its_default_is_named),
		cmocka_unit_test(the_first_of_a_programs_own_words_that_differs_is_named),
		cmocka_unit_test(a_mismatch_names_the_field_both_values_and_whose_they_are),
		cmocka_unit_test(every_common_field_is_compared),
	};
	return cmocka_run_group_tests_name("wire hello", tests, NULL, NULL);
}
