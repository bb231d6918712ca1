/* SPDX-License-Identifier: Apache-2.0 */
/* Deflated members of npz files: zlib may still owe values after all stored bytes, and a truncated
 * member is distinguished from one of which it owes some. */
#include "tests/unit/saved/setup.h"

#include <zlib.h>

#include "saved/import.h"
#include "wire/little.h"

#define HEADER_BYTES 128u
#define NAME "w.npy"
#define NAME_BYTES 5u
#define LOCAL_BYTES 30u
#define ENTRY_BYTES 46u
#define END_BYTES 22u
#define CHUNK_COUNT 8192u /* values that are read at a time */

/* A member on its way into a file. */
struct member {
	uint8_t *plain; /* [plain_bytes] an npy file */
	size_t plain_bytes;
	uint8_t *packed; /* [packed_bytes] */
	size_t packed_bytes;
};

/* `count` zeros. */
static struct member
zeros(uint32_t count, int strategy)
{
	struct member out = {.plain_bytes = HEADER_BYTES + 4 * (size_t)count};
	z_stream z = {0};

	out.plain = calloc(1, out.plain_bytes);
	assert_non_null(out.plain);
	memset(out.plain, ' ', HEADER_BYTES);
	memcpy(out.plain, "\x93NUMPY\x01\x00\x76\x00", 10);
	int bytes = snprintf((char *)out.plain + 10, HEADER_BYTES - 10,
			     "{'descr': '<f4', 'fortran_order': False, 'shape': (%u,), }", count);
	out.plain[10 + bytes] = ' ';
	out.plain[HEADER_BYTES - 1] = '\n';
	assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, -MAX_WBITS, 8, strategy), Z_OK);
	const size_t room = deflateBound(&z, out.plain_bytes);
	out.packed = malloc(room);
	assert_non_null(out.packed);
	z.next_in = out.plain;
	z.avail_in = (uInt)out.plain_bytes;
	z.next_out = out.packed;
	z.avail_out = (uInt)room;
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	out.packed_bytes = z.total_out;
	assert_int_equal(deflateEnd(&z), Z_OK);
	return out;
}

static void
member_fini(struct member *member)
{
	free(member->plain);
	free(member->packed);
}

/* Of both headers, from the flags on: deflated, with its checksum and sizes. */
static void
fill_header(uint8_t *at, const struct member *member)
{
	wf_store_u16(at + 2, 8);
	wf_store_u32(at + 8, (uint32_t)crc32_z(0, member->plain, member->plain_bytes));
	wf_store_u32(at + 12, (uint32_t)member->packed_bytes);
	wf_store_u32(at + 16, (uint32_t)member->plain_bytes);
	wf_store_u16(at + 20, NAME_BYTES);
}

/* The file of one member; its path. */
static const char *
write_npz(const struct scene *scene, const struct member *member)
{
	static char path[200];
	uint8_t local[LOCAL_BYTES] = "PK\x03\x04\x14";
	uint8_t entry[ENTRY_BYTES] = "PK\x01\x02\x14\x00\x14";
	uint8_t end[END_BYTES] = "PK\x05\x06";

	fill_header(local + 6, member);
	fill_header(entry + 8, member);
	wf_store_u16(end + 8, 1);
	wf_store_u16(end + 10, 1);
	wf_store_u32(end + 12, ENTRY_BYTES + NAME_BYTES);
	wf_store_u32(end + 16, (uint32_t)(LOCAL_BYTES + NAME_BYTES + member->packed_bytes));
	snprintf(path, sizeof(path), "%s/zeros.npz", scene->dir);
	FILE *file = fopen(path, "wb");
	assert_non_null(file);
	assert_int_equal(fwrite(local, 1, sizeof(local), file), sizeof(local));
	assert_int_equal(fwrite(NAME, 1, NAME_BYTES, file), NAME_BYTES);
	assert_int_equal(fwrite(member->packed, 1, member->packed_bytes, file),
			 member->packed_bytes);
	assert_int_equal(fwrite(entry, 1, sizeof(entry), file), sizeof(entry));
	assert_int_equal(fwrite(NAME, 1, NAME_BYTES, file), NAME_BYTES);
	assert_int_equal(fwrite(end, 1, sizeof(end), file), sizeof(end));
	assert_int_equal(fclose(file), 0);
	return path;
}

/* Into `value` [count]. */
static enum weft_status
load_npz(const struct scene *scene, const struct member *member, uint32_t count, float *value)
{
	const struct wf_saved_tensor tensor = {
		.name = "w", .rows = count, .cols = 1, .value = value};
	struct wf_import *import = NULL;
	struct wf_import_load load;

	enum weft_status st = wf_import_open(scene->env, wf_saved_posix(), write_npz(scene, member),
					     WF_IMPORT_AUTO, &import);
	if (st == WEFT_OK) {
		st = wf_import_load(import, &tensor, 1, WF_IMPORT_MISSING_FAIL, &load);
		wf_import_close(import);
	}
	return st;
}

static void
zeros_load(const struct scene *scene, uint32_t count, int strategy)
{
	struct member member = zeros(count, strategy);
	float *value = malloc(count * sizeof(*value));

	assert_non_null(value);
	memset(value, 0xff, count * sizeof(*value));
	assert_ok(load_npz(scene, &member, count, value));
	for (uint32_t i = 0; i < count; i++) {
		assert_true(value[i] == 0.0f);
	}
	free(value);
	member_fini(&member);
}

/* The last stored byte may become more values than are read at a time. */
static void
values_that_zlib_owes_are_read_when_no_stored_byte_is_left(void **state)
{
	for (uint32_t more = 1; more <= 64; more++) {
		zeros_load(*state, CHUNK_COUNT + more, Z_FIXED);
		zeros_load(*state, CHUNK_COUNT + more, Z_DEFAULT_STRATEGY);
	}
	for (uint32_t more = 1; more <= 64; more += 7) {
		zeros_load(*state, 129 * CHUNK_COUNT + more, Z_FIXED);
		zeros_load(*state, 129 * CHUNK_COUNT + more, Z_DEFAULT_STRATEGY);
	}
}

static void
a_member_that_was_cut_is_refused(void **state)
{
	static float value[CHUNK_COUNT + 40];
	const uint32_t count = CHUNK_COUNT + 40;
	struct member member = zeros(count, Z_DEFAULT_STRATEGY);
	const size_t whole = member.packed_bytes;

	for (size_t cut = 1; cut <= whole; cut++) {
		member.packed_bytes = whole - cut;
		assert_int_equal(load_npz(*state, &member, count, value), WEFT_DATA);
	}
	/* All values are there, the mark of the end is not. */
	member.packed_bytes = whole - 1;
	assert_refused(load_npz(*state, &member, count, value), WEFT_DATA, "too early");
	member_fini(&member);
}

#define scene_test(name) cmocka_unit_test_setup_teardown(name, scene_open, scene_close)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		scene_test(values_that_zlib_owes_are_read_when_no_stored_byte_is_left),
		scene_test(a_member_that_was_cut_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
