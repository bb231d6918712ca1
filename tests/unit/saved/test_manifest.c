/* SPDX-License-Identifier: Apache-2.0 */
/* A manifest has one spelling, and everything else is refused by line. */
#include "tests/unit/saved/setup.h"

#include "base/assert.h"
#include "base/crc32c.h"
#include "saved/manifest.h"

#define HEAD "weft saved model 1\nversion 0.1.0\npass 2\nstep 7\nsamples 70\noptimizer sgd\n"
#define BODY HEAD "settings rate=1\n"
#define ONE "tensor w 2 3 0\nfile w 40 0123abcd\n"
#define ABOUT "version 0.1.0\npass 2\nstep 7\nsamples 70\noptimizer sgd\nsettings rate=1\n"
#define BODY2 "weft saved model 2\n" ABOUT
#define BODY9 "weft saved model 9\n" ABOUT
#define ASIDE "aside a i64 ()\nfile a 8 0123abcd\n"
#define ASIDES "asides 1\n" ASIDE
#define BODY5 "weft saved model 5\n" ABOUT
#define PARTS_ABOUT "epoch 3\nlanes 1 2 2\ntrainers 2\n"
#define OF17(about)                                                                                \
	"weft saved model 17\nversion 0.1.0\npass 2\nstep 7\nsamples 70\n" about                   \
	"optimizer sgd\nsettings rate=1\ntensors 1\ntensor w 2 3 0\n"
#define BODY17 OF17(PARTS_ABOUT)
/* A delta: step 7 of epoch 3. */
#define OF50(base)                                                                                 \
	"weft saved model 50\nversion 0.1.0\npass 2\nstep 7\nsamples 70\n" PARTS_ABOUT base        \
	"optimizer sgd\nsettings rate=1\ntensors 0\ntables 1\ntable e adagrad 8 1\n" POSITIONS     \
		PARTS
#define BODY81                                                                                     \
	"weft saved model 81\nversion 0.1.0\npass 2\nstep 7\nsamples 70\n" PARTS_ABOUT             \
	"optimizer sgd\nsettings rate=1\ntensors 1\ntensor w 2 3 0\n"
#define STEPS "positions 2\nposition 0 00ff7f 41 40\nposition 1 - 1 0\n"
#define POSITIONS "positions 1\nposition 1 00ff7f\n"
#define PART_D "part dense-0 0 112 0123abcd\npart dense-1 1 112 0123abcd\n"
#define PART_S                                                                                     \
	"part sparse-0 0 112 0123abcd\npart sparse-1 0 112 0123abcd\n"                             \
	"part sparse-2 1 112 0123abcd\npart sparse-3 1 112 0123abcd\n"
#define PARTS "parts 6\n" PART_D PART_S
#define TABLES "tables "
#define ROWS "file e.rows 64 0123abcd\n"
#define TABLE "table e adagrad 8 1\n" ROWS

/* Decode a text with its checksum put behind it. */
static enum weft_status
decode(struct scene *scene, const char *text, struct wf_manifest *out)
{
	char sealed[2048];
	int bytes = snprintf(sealed, sizeof(sealed), "%scrc32c %08x\n", text,
			     wf_crc32c(0, text, strlen(text)));

	assert_true(bytes > 0 && (size_t)bytes < sizeof(sealed));
	return wf_manifest_decode(&scene->failing.env, sealed, (size_t)bytes, out);
}

static void
what_is_encoded_decodes_to_the_same(void **state)
{
	struct scene *scene = *state;
	struct wf_manifest_tensor tensor[2] = {
		{.name = "a", .rows = 1, .cols = 1, .crc = {1}},
		{.name = "b", .rows = 7, .cols = 3, .state_count = 2, .crc = {2, 3, UINT32_MAX}},
	};
	struct wf_manifest in = {
		.about = about_pass(UINT64_MAX, 3), .tensor_count = 2, .tensor = tensor};
	struct wf_manifest out;
	char text[1024];

	in.about.samples = UINT64_MAX;
	size_t bytes = wf_manifest_encode(&in, text, sizeof(text));
	assert_in_range(bytes, 1, sizeof(text));
	assert_ok(wf_manifest_decode(&scene->failing.env, text, bytes, &out));
	assert_memory_equal(&out.about, &in.about, sizeof(in.about));
	assert_int_equal(out.tensor_count, 2);
	assert_memory_equal(out.tensor, tensor, sizeof(tensor));
	wf_manifest_fini(&scene->failing.env, &out);

	snprintf(tensor[0].shape, sizeof(tensor[0].shape), "()");
	snprintf(tensor[1].shape, sizeof(tensor[1].shape), "7,1,3");
	bytes = wf_manifest_encode(&in, text, sizeof(text));
	assert_non_null(strstr(text, "weft saved model 5\n"));
	assert_non_null(strstr(text, "\ntensor b 7 3 2\nshape 7,1,3\nfile b 100 "));
	assert_ok(wf_manifest_decode(&scene->failing.env, text, bytes, &out));
	assert_memory_equal(out.tensor, tensor, sizeof(tensor));
	wf_manifest_fini(&scene->failing.env, &out);
	tensor[0].shape[0] = tensor[1].shape[0] = '\0';

	in.about.batch = 150; /* of a pass that is not complete */
	bytes = wf_manifest_encode(&in, text, sizeof(text));
	assert_non_null(strstr(text, "weft saved model 3\n"));
	assert_non_null(strstr(text, "\nbatch 150\n"));
	assert_ok(wf_manifest_decode(&scene->failing.env, text, bytes, &out));
	assert_memory_equal(&out.about, &in.about, sizeof(in.about));
	wf_manifest_fini(&scene->failing.env, &out);
}

static void
malformed_texts_are_refused_by_line(void **state)
{
	static const struct {
		const char *text, *part;
	} cases[] = {
		{"", "line 1"},
		{"weft saved model\n", "line 1"},
		{"weft saved model 129\nwhatever\n", "129: this weft reads versions 1 to 128"},
		{"weft saved model 0\nwhatever\n", "format version 0: this weft reads"},
		{"weft saved model 3\nversion a\npass 1\nstep 2\n", "must be \"batch ...\""},
		{"weft saved model 3\nversion a\npass 1\nbatch 0\n", "must count at least 1"},
		{"weft saved model 1\nversion a\npass 1\nbatch 1\n", "must be \"step ...\""},
		{"weft saved model 01\n", "the version of the format"},
		{"weft saved model 1 \n", "the version of the format"},
		{"weft saved model 1\npass 2\n", "line 2, \"pass 2\": must be \"version ...\""},
		{BODY, "line 8"},
		{BODY "tensors 0\n", "line 8, \"tensors 0\": must count at least 1"},
		{BODY "tensors 4294967296\n" ONE,
		 "counts more than the rest of the manifest can hold"},
		{BODY "tensors 2\n" ONE, "counts more than the rest of the manifest can hold"},
		{BODY "tensors 1\n" ONE "more\n", "the last line"},
		{BODY "tensors 1\n" ONE ONE, "the last line"},
		{BODY "tensors 2\n" ONE ONE, "names must be in ascending order"},
		{BODY "tensors 1\ntensor ../w 2 3 0\nfile w 40 0123abcd\n", "that a file can have"},
		{BODY "tensors 1\ntensor .w 2 3 0\nfile .w 40 0123abcd\n", "that a file can have"},
		{BODY "tensors 1\ntensor w.state0 2 3 0\nfile w 40 0123abcd\n", "a file can have"},
		{BODY "tensors 1\ntensor w 0 3 0\nfile w 16 0123abcd\n", "rows and columns"},
		{BODY "tensors 1\ntensor w 4611686018427387904 4 0\nfile w 16 0123abcd\n",
		 "rows and columns"},
		{BODY "tensors 1\ntensor w 2 3 6\nfile w 40 0123abcd\n", "number of states"},
		{BODY "tensors 1\ntensor w 2 3 0 0\nfile w 40 0123abc\n", "number of states"},
		{BODY "tensors 1\ntensor w 2 3 0\nfile v 40 0123abcd\n", "the tensor's next file"},
		{BODY "tensors 1\ntensor w 2 3 0\nfile w 41 0123abcd\n", "4 for each element"},
		{BODY "tensors 1\ntensor w 2 3 0\nfile w 40 0123ABCD\n", "checksum of 8 digits"},
		{BODY "tensors 1\ntensor w 2 3 0\nfile w 40 0123abc\nxx", "checksum of 8 digits"},
		{BODY "tensors 1\n" ONE TABLES "1\n" TABLE, "the last line"},
		{BODY2 "tensors 0\n" TABLES "0\n", "must count at least 1"},
		{BODY2 "tensors 0\n" TABLES "9\n" TABLE,
		 "counts more than the rest of the manifest can hold"},
		{BODY2 "tensors 0\n" TABLES "2\n" TABLE TABLE, "names must be in ascending order"},
		{BODY2 "tensors 0\n" TABLES "1\ntable e.rows a 8 1\n" ROWS, "a file can have"},
		{BODY2 "tensors 0\n" TABLES "1\ntable e a 0 1\n" ROWS, "values of a row"},
		{BODY2 "tensors 0\n" TABLES "1\ntable e a 4097 1\n" ROWS, "values of a row"},
		{BODY2 "tensors 0\n" TABLES "1\ntable e a 8 1 2\n" ROWS, "values of a row"},
		{BODY2 "tensors 0\n" TABLES "1\ntable e a 8 1\nfile f.rows 64 0123abcd\n",
		 "the table's file"},
		{BODY2 "tensors 0\n" TABLES "1\ntable e a 8 1\nfile e.rows 64 0123abcd.\n",
		 "the table's file"},
		{BODY2 "tensors 0\n" TABLES "1\n" TABLE "more\n", "the last line"},
		{"weft saved model 1\nversion a b\n", "one short word"},
		{"weft saved model 1\nversion a\npass -1\n", "one whole number"},
		{"weft saved model 1\nversion a\npass 18446744073709551616\n", "one whole number"},
		{"weft saved model 1\nversion a\npass 1 \n", "one whole number"},
		{"weft saved model 1\nversion a\tb\n", "byte 10: is not printable"},
	};
	struct scene *scene = *state;
	struct wf_manifest out;

	for (size_t i = 0; i < WF_ARRAY_COUNT(cases); i++) {
		assert_refused(decode(scene, cases[i].text, &out), WEFT_DATA, cases[i].part);
	}
	assert_ok(decode(scene, BODY "tensors 1\n" ONE, &out));
	wf_manifest_fini(&scene->failing.env, &out);
	assert_ok(decode(scene, HEAD "settings \ntensors 1\n" ONE, &out));
	wf_manifest_fini(&scene->failing.env, &out);
	assert_ok(decode(scene, BODY2 "tensors 1\n" ONE TABLES "1\n" TABLE, &out));
	assert_int_equal(out.table[0].rows, 1);
	wf_manifest_fini(&scene->failing.env, &out);
}

static void
shapes_that_are_none_or_not_of_their_tensor_are_refused(void **state)
{
	static const struct {
		const char *text, *part;
	} cases[] = {
		{BODY "tensors 1\ntensor w 2 3 0\nshape 2,3\nfile w 40 0123abcd\n",
		 "must be \"file ...\""},
		{BODY5 "tensors 1\n" ONE, "no tensor has a shape"},
		{BODY5 "tensors 1\ntensor w 2 3 0\nshape 2,4\nfile w 40 0123abcd\n",
		 "as many elements"},
		{BODY5 "tensors 1\ntensor w 2 3 0\nshape (2,3)\nfile w 40 0123abcd\n",
		 "a shape like"},
		{BODY5 "tensors 1\ntensor w 2 3 0\nshape 2,3 1\nfile w 40 0123abcd\n",
		 "a shape like"},
		{BODY5 "tensors 1\ntensor w 2 3 0\nshape 6\nshape 6\nfile w 40 0123abcd\n",
		 "must be \"file ...\""},
		{BODY5 "tensors 1\nshape 6\ntensor w 2 3 0\nfile w 40 0123abcd\n",
		 "must be \"tensor ...\""},
	};
	struct scene *scene = *state;
	struct wf_manifest out;

	for (size_t i = 0; i < WF_ARRAY_COUNT(cases); i++) {
		assert_refused(decode(scene, cases[i].text, &out), WEFT_DATA, cases[i].part);
	}
}

static void
asides_that_are_none_are_refused(void **state)
{
	static const struct {
		const char *text, *part;
	} cases[] = {
		{BODY9 "tensors 1\n" ONE "asides 0\n", "must count at least 1"},
		{BODY9 "tensors 1\n" ONE, "line 11"},
		{BODY "tensors 1\n" ONE ASIDES, "the last line"},
		{BODY9 "tensors 0\nasides 9\n" ASIDE, "more than the rest"},
		{BODY9 "tensors 0\nasides 2\n" ASIDE ASIDE, "ascending order"},
		{BODY9 "tensors 0\nasides 1\naside a/b i64 ()\nfile a/b 8 0123abcd\n",
		 "a file can have"},
		{BODY9 "tensors 0\nasides 1\naside a i65 ()\nfile a 8 0123abcd\n", "a type like"},
		{BODY9 "tensors 0\nasides 1\naside a i64 2,\nfile a 8 0123abcd\n", "a type like"},
		{BODY9 "tensors 0\nasides 1\naside a i64 () 1\nfile a 8 0123abcd\n", "a type like"},
		{BODY9 "tensors 0\nasides 1\naside a i64 9223372036854775807\n"
		       "file a 18446744073709551608 0123abcd\n",
		 "a type like"},
		{BODY9 "tensors 0\nasides 1\naside a i64 ()\nfile a 4 0123abcd\n", "the bytes of"},
		{BODY9 "tensors 0\nasides 1\naside a i64 ()\nfile b 8 0123abcd\n", "the bytes of"},
		{BODY9 "tensors 1\n" ONE "asides 1\naside w i64 ()\nfile w 8 0123abcd\n",
		 "a tensor has the same file"},
	};
	struct scene *scene = *state;
	struct wf_manifest out;

	for (size_t i = 0; i < WF_ARRAY_COUNT(cases); i++) {
		assert_refused(decode(scene, cases[i].text, &out), WEFT_DATA, cases[i].part);
	}
	assert_ok(decode(scene, BODY9 "tensors 0\n" ASIDES, &out));
	assert_int_equal(out.aside[0].bytes, 8);
	assert_true(wf_manifest_has_file(&out, "a"));
	assert_false(wf_manifest_has_file(&out, "a.rows"));
	assert_false(wf_manifest_has_file(&out, "b"));
	wf_manifest_fini(&scene->failing.env, &out);
}

static void
the_manifest_of_a_snapshot_decodes_to_the_same(void **state)
{
	struct scene *scene = *state;
	struct wf_manifest_tensor tensor = {.name = "w", .rows = 2, .cols = 3, .state_count = 2};
	struct wf_manifest_table table = {
		.name = "e", .optimizer = "adam", .dim = 8, .rows = UINT64_MAX};
	struct wf_manifest_position position[2] = {{.trainer = 0},
						   {.trainer = 65535, .bytes = 256}};
	struct wf_manifest_part part[9];
	struct wf_manifest in = {.about = about_pass(1, 180),
				 .parts = {.epoch = UINT64_MAX,
					   .dense_lanes = 2,
					   .sparse_lanes = 1,
					   .pserver_count = 3,
					   .trainer_count = 65536,
					   .position_count = 2,
					   .position = position,
					   .part_count = 9,
					   .part = part},
				 .tensor_count = 1,
				 .tensor = &tensor,
				 .table_count = 1,
				 .table = &table};
	struct wf_manifest out;
	char text[2048];

	for (uint32_t i = 0; i < 9; i++) {
		wf_manifest_part_at(&in.parts, i, &part[i]);
		part[i].bytes = i == 8 ? INT64_MAX : 112 + i;
		part[i].crc = UINT32_MAX - i;
	}
	for (unsigned i = 0; i < 256; i++) {
		position[1].position[i] = (uint8_t)i;
	}
	assert_string_equal(part[5].name, "dense-5");
	assert_int_equal(part[5].pserver, 2);
	assert_string_equal(part[7].name, "sparse-1");
	assert_int_equal(part[7].pserver, 1);
	const size_t bytes = wf_manifest_encode(&in, text, sizeof(text));
	assert_in_range(bytes, 1, sizeof(text) - 1);
	assert_non_null(strstr(text, "weft saved model 18\n"));
	assert_non_null(strstr(text, "\nsamples 1800\nepoch 18446744073709551615\nlanes 2 1 3\n"
				     "trainers 65536\noptimizer "));
	assert_non_null(strstr(text, "\ntensor w 2 3 2\ntables 1\ntable e adam 8 "));
	assert_non_null(strstr(text, "\npositions 2\nposition 0 -\nposition 65535 000102"));
	assert_non_null(strstr(text, "\nparts 9\npart dense-0 0 112 ffffffff\npart dense-1 0 "));
	assert_ok(wf_manifest_decode(&scene->failing.env, text, bytes, &out));
	assert_true(wf_manifest_is_snapshot(&out));
	assert_memory_equal(&out.about, &in.about, sizeof(in.about));
	assert_memory_equal(out.tensor, &tensor, sizeof(tensor));
	assert_int_equal(out.parts.epoch, UINT64_MAX);
	assert_memory_equal(out.parts.position, position, sizeof(position));
	assert_memory_equal(out.parts.part, part, sizeof(part));
	assert_true(wf_manifest_has_file(&out, "dense-5"));
	assert_true(wf_manifest_has_file(&out, "sparse-2"));
	assert_false(wf_manifest_has_file(&out, "dense-6"));
	assert_false(wf_manifest_has_file(&out, "sparse-3"));
	assert_false(wf_manifest_has_file(&out, "dense-05"));
	assert_false(wf_manifest_has_file(&out, "w"));
	assert_false(wf_manifest_has_file(&out, "e.rows"));
	wf_manifest_fini(&scene->failing.env, &out);
	for (size_t bit = 0; bit < 8 * bytes; bit++) {
		text[bit / 8] = (char)(text[bit / 8] ^ 1 << bit % 8);
		assert_int_equal(wf_manifest_decode(&scene->failing.env, text, bytes, &out),
				 WEFT_DATA);
		text[bit / 8] = (char)(text[bit / 8] ^ 1 << bit % 8);
	}
}

static void
lines_of_snapshots_that_lie_are_refused(void **state)
{
	static const struct {
		const char *text, *part;
	} cases[] = {
		{BODY17 POSITIONS, "line 15"},
		{BODY "tensors 1\n" ONE POSITIONS PARTS, "the last line"},
		{BODY17 POSITIONS PARTS "more\n", "the last line"},
		{BODY17 "file w 40 0123abcd\n" POSITIONS PARTS, "must be \"positions ...\""},
		{"weft saved model 65\nversion a\n", "only a snapshot is a vector"},
		{BODY81 "positions 1\nposition 1 - 4 4\n" PARTS, "must count all trainers"},
		{BODY81 "positions 2\nposition 0 - 4 4\nposition 1 - 4\n" PARTS,
		 "the number of its steps"},
		{BODY81 "positions 2\nposition 0 -\nposition 1 - 4 4\n" PARTS,
		 "the number of its steps"},
		{BODY81 "positions 2\nposition 0 - 4 4 4\nposition 1 - 4 4\n" PARTS,
		 "the number of its steps"},
		{BODY17 "positions 1\nposition 1 - 4 4\n" PARTS, "in hexadecimal"},
		{"weft saved model 25\nversion a\n", "a snapshot has no arrays aside"},
		{OF17("lanes 1 2 2\ntrainers 2\n"), "must be \"epoch ...\""},
		{OF17("epoch -1\nlanes 1 2 2\ntrainers 2\n"), "one whole number"},
		{OF17("epoch 3\nlanes 1 2\ntrainers 2\n"), "lanes of both services"},
		{OF17("epoch 3\nlanes 1 2 2 2\ntrainers 2\n"), "lanes of both services"},
		{OF17("epoch 3\nlanes 0 0 2\ntrainers 2\n"), "more than a job can have"},
		{OF17("epoch 3\nlanes 1 2 0\ntrainers 2\n"), "more than a job can have"},
		{OF17("epoch 3\nlanes 257 0 1\ntrainers 2\n"), "more than a job can have"},
		{OF17("epoch 3\nlanes 1 257 1\ntrainers 2\n"), "more than a job can have"},
		{OF17("epoch 3\nlanes 2 1 32769\ntrainers 2\n"), "more than a job can have"},
		{OF17("epoch 3\nlanes 18446744073709551615 1 1\ntrainers 2\n"), "than a job can"},
		{OF17("epoch 3\nlanes 1 1 18446744073709551615\ntrainers 2\n"), "than a job can"},
		{OF17("epoch 3\nlanes 1 2 2\ntrainers 0\n"), "more than a job can have"},
		{OF17("epoch 3\nlanes 1 2 2\ntrainers 65537\n"), "more than a job can have"},
		{BODY17 "positions 4294967296\n", "more than the rest of the manifest"},
		{BODY17 "positions 1\nposition 2 00\n" PARTS, "must have a trainer"},
		{BODY17 "positions 2\nposition 1 -\nposition 1 -\n" PARTS, "must ascend"},
		{BODY17 "positions 1\nposition 1 0\n" PARTS, "in hexadecimal"},
		{BODY17 "positions 1\nposition 1 0F\n" PARTS, "in hexadecimal"},
		{BODY17 "positions 1\nposition 1 00 00\n" PARTS, "in hexadecimal"},
		{BODY17 "positions 1\nposition 1\n" PARTS, "in hexadecimal"},
		{BODY17 POSITIONS "parts 5\n" PART_D PART_S, "one part for each lane"},
		{BODY17 POSITIONS "parts 0\n", "one part for each lane"},
		{BODY17 POSITIONS "parts 7\n" PART_D PART_S PART_D, "one part for each lane"},
		{BODY17 POSITIONS "parts 4000000000\n" PART_D, "more than the rest"},
		{BODY17 POSITIONS "parts 6\n" PART_S PART_D, "the part of the next lane"},
		{BODY17 POSITIONS "parts 6\npart dense-0 1 112 0123abcd\n" PART_D PART_S,
		 "the part of the next lane"},
		{BODY17 POSITIONS "parts 6\npart ../x-0 0 112 0123abcd\n" PART_D PART_S,
		 "the part of the next lane"},
		{BODY17 POSITIONS "parts 6\npart dense-0 0 0 0123abcd\n" PART_D PART_S,
		 "end with bytes"},
		{BODY17 POSITIONS
		 "parts 6\npart dense-0 0 9223372036854775808 0123abcd\n" PART_D PART_S,
		 "end with bytes"},
		{BODY17 POSITIONS "parts 6\npart dense-0 0 112 0123abcd 1\n" PART_D PART_S,
		 "end with bytes"},
	};
	struct scene *scene = *state;
	struct wf_manifest out;

	for (size_t i = 0; i < WF_ARRAY_COUNT(cases); i++) {
		assert_refused(decode(scene, cases[i].text, &out), WEFT_DATA, cases[i].part);
		assert_true(wf_failing_env_is_clean(&scene->failing));
	}
	assert_ok(decode(scene, BODY17 POSITIONS PARTS, &out));
	assert_int_equal(out.parts.position[0].bytes, 3);
	assert_int_equal(out.parts.position[0].position[1], 0xff);
	wf_manifest_fini(&scene->failing.env, &out);
}

static void
a_vector_of_versions_has_a_step_of_each_trainer(void **state)
{
	struct scene *scene = *state;
	struct wf_manifest out;
	char text[2048];

	assert_ok(decode(scene, BODY81 STEPS PARTS, &out));
	assert_true(out.parts.is_vector);
	assert_int_equal(out.parts.position[0].step, 41);
	assert_int_equal(out.parts.position[0].made, 40);
	assert_int_equal(out.parts.position[1].step, 1);
	assert_int_equal(out.parts.position[1].bytes, 0);
	assert_in_range(wf_manifest_encode(&out, text, sizeof(text)), 1, sizeof(text) - 1);
	assert_non_null(strstr(text, BODY81 STEPS PARTS));
	wf_manifest_fini(&scene->failing.env, &out);
}

static void
every_flipped_bit_and_every_cut_is_refused(void **state)
{
	struct scene *scene = *state;
	struct wf_manifest_tensor tensor = {.name = "w", .rows = 2, .cols = 3, .shape = "3,1,2"};
	struct wf_manifest_table table = {
		.name = "e", .optimizer = "adam", .dim = 8, .rows = 77, .bytes = 999, .crc = 1};
	struct wf_manifest_aside aside = {
		.name = "a", .type = WF_ARRAY_BOOL, .shape = "2,0", .crc = 7};
	struct wf_manifest in = {.about = about_pass(1, 2),
				 .tensor_count = 1,
				 .tensor = &tensor,
				 .table_count = 1,
				 .table = &table,
				 .aside_count = 1,
				 .aside = &aside};
	struct wf_manifest out;
	char text[512];
	const size_t bytes = wf_manifest_encode(&in, text, sizeof(text));

	for (size_t bit = 0; bit < 8 * bytes; bit++) {
		text[bit / 8] = (char)(text[bit / 8] ^ 1 << bit % 8);
		assert_int_equal(wf_manifest_decode(&scene->failing.env, text, bytes, &out),
				 WEFT_DATA);
		text[bit / 8] = (char)(text[bit / 8] ^ 1 << bit % 8);
	}
	for (size_t cut = 0; cut < bytes; cut++) {
		assert_int_equal(wf_manifest_decode(&scene->failing.env, text, cut, &out),
				 WEFT_DATA);
	}
}

static void
a_delta_builds_on_an_earlier_snapshot_of_its_epoch(void **state)
{
	static const struct {
		const char *text, *part;
	} cases[] = {
		{"weft saved model 34\nversion a\n", "only snapshots with tables have a base"},
		{"weft saved model 49\nversion a\n", "only snapshots with tables have a base"},
		{OF50(""), "must be \"base ...\""},
		{OF50("base 3\n"), "must have epoch and step"},
		{OF50("base 3 6 1\n"), "must have epoch and step"},
		{OF50("base 2 6\n"), "an earlier step of the same epoch"},
		{OF50("base 3 0\n"), "an earlier step of the same epoch"},
		{OF50("base 3 7\n"), "an earlier step of the same epoch"},
		{OF50("base 3 8\n"), "an earlier step of the same epoch"},
	};
	struct scene *scene = *state;
	struct wf_manifest out;
	char text[2048];

	for (size_t i = 0; i < WF_ARRAY_COUNT(cases); i++) {
		assert_refused(decode(scene, cases[i].text, &out), WEFT_DATA, cases[i].part);
		assert_true(wf_failing_env_is_clean(&scene->failing));
	}
	assert_ok(decode(scene, OF50("base 3 6\n"), &out));
	assert_int_equal(out.parts.base_step, 6);
	const size_t bytes = wf_manifest_encode(&out, text, sizeof(text));
	assert_in_range(bytes, 1, sizeof(text) - 1);
	assert_memory_equal(text, OF50("base 3 6\n"), sizeof(OF50("base 3 6\n")) - 1);
	wf_manifest_fini(&scene->failing.env, &out);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_is_encoded_decodes_to_the_same, scene_open,
						scene_close),
		WITH_SCENE(the_manifest_of_a_snapshot_decodes_to_the_same),
		WITH_SCENE(lines_of_snapshots_that_lie_are_refused),
		WITH_SCENE(a_delta_builds_on_an_earlier_snapshot_of_its_epoch),
		WITH_SCENE(a_vector_of_versions_has_a_step_of_each_trainer),
		WITH_SCENE(asides_that_are_none_are_refused),
		WITH_SCENE(shapes_that_are_none_or_not_of_their_tensor_are_refused),
		cmocka_unit_test_setup_teardown(malformed_texts_are_refused_by_line, scene_open,
						scene_close),
		cmocka_unit_test_setup_teardown(every_flipped_bit_and_every_cut_is_refused,
						scene_open, scene_close),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
