/* SPDX-License-Identifier: Apache-2.0 */
/* A part of a snapshot is read as it was written; anything else is refused by file, block and
 * reason. */
#include "tests/unit/saved/setup.h"

#include "base/crc32c.h"
#include "saved/chunk.h"
#include "saved/part_layout.h"
#include "wire/head.h"
#include "wire/little.h"

#define LONG_BYTES (2u * WF_CHUNK_BYTES + 77u)
#define FILE_ROOM 4096u

static const struct wf_part_head lane_1 = {
	.service = WF_SERVICE_DENSE,
	.lane = 1,
	.lane_count = 4,
	.epoch = 3,
	.step = 180,
	.job_digest = 0x0123456789abcdef,
};

static const struct wf_part_block some_blocks[] = {
	{.kind = WF_PART_SLICE, .item = 7, .first = 1000, .count = 25, .bytes = 100},
	{.kind = WF_PART_NUMBERS, .item = 7, .first = 1000, .count = 1, .bytes = 0},
	{.kind = WF_PART_ROWS, .item = UINT32_MAX, .first = 1023, .count = 3, .bytes = 61},
	{.kind = WF_PART_COUNTERS, .first = INT64_MAX, .bytes = 2},
	{.kind = WF_PART_LANE, .first = 1, .count = INT64_MAX - 1, .bytes = 1},
};

/* Byte `at` of the payload of block `number`. */
static uint8_t
byte_of(uint64_t number, uint64_t at)
{
	return (uint8_t)(number * 131 + at * 7 + (at >> 8));
}

static void
fill_payload(uint64_t number, uint8_t *out, uint64_t bytes)
{
	for (uint64_t i = 0; i < bytes; i++) {
		out[i] = byte_of(number, i);
	}
}

static enum weft_status
create(struct scene *scene, const char *path, const struct wf_part_head *head,
       struct wf_part_writer **out)
{
	const struct wf_saved_spot spot = {wf_saved_posix(), AT_FDCWD, path};

	return wf_part_create(&scene->failing.env, &spot, head, out);
}

/* `path` becomes a part with some_blocks. */
static struct wf_part_sum
write_some(struct scene *scene, const char *path, const struct wf_part_head *head)
{
	struct wf_part_writer *writer = NULL;
	struct wf_part_sum sum;
	uint8_t payload[128];

	(void)unlink(path);
	assert_ok(create(scene, path, head, &writer));
	for (uint64_t i = 0; i < WF_ARRAY_COUNT(some_blocks); i++) {
		fill_payload(i, payload, some_blocks[i].bytes);
		assert_ok(wf_part_put(writer, &some_blocks[i], payload));
	}
	assert_ok(wf_part_finish(writer, WEFT_OK, &sum));
	return sum;
}

static enum weft_status
check(struct scene *scene, const char *path)
{
	struct wf_part_head head;
	struct wf_part_sum sum;

	return wf_part_check(&scene->failing.env, wf_saved_posix(), path, &head, &sum);
}

static size_t
read_bytes(const char *path, uint8_t *out, size_t room)
{
	FILE *file = fopen(path, "rbe");
	assert_non_null(file);
	size_t bytes = fread(out, 1, room, file);
	assert_int_equal(fclose(file), 0);
	assert_true(bytes < room);
	return bytes;
}

static void
write_bytes(const char *path, const uint8_t *bytes, size_t count)
{
	FILE *file = fopen(path, "wbe");
	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, count, file), count);
	assert_int_equal(fclose(file), 0);
}

static void
blocks_come_back_as_they_were_put(void **state)
{
	struct scene *scene = *state;
	const char *path = at(scene, "part", "");
	struct wf_part_reader *reader = NULL;
	struct wf_part_block block;
	uint8_t payload[128], want[128];

	const struct wf_part_sum sum = write_some(scene, path, &lane_1);
	assert_ok(wf_part_open(&scene->failing.env, wf_saved_posix(), path, &reader));
	assert_memory_equal(wf_part_head(reader), &lane_1, sizeof(lane_1));
	for (uint64_t i = 0; i < WF_ARRAY_COUNT(some_blocks); i++) {
		assert_ok(wf_part_next(reader, &block));
		assert_memory_equal(&block, &some_blocks[i], sizeof(block));
		const size_t half = (size_t)block.bytes / 2;
		assert_ok(wf_part_read(reader, payload, half));
		assert_ok(wf_part_read(reader, payload + half, (size_t)block.bytes - half));
		fill_payload(i, want, block.bytes);
		assert_memory_equal(payload, want, (size_t)block.bytes);
	}
	assert_int_equal(wf_part_next(reader, &block), WEFT_CLOSED);
	assert_int_equal(wf_part_next(reader, &block), WEFT_CLOSED);
	const struct wf_part_sum again = wf_part_sum(reader);
	wf_part_close(reader);
	assert_int_equal(again.blocks, WF_ARRAY_COUNT(some_blocks));
	assert_int_equal(sum.blocks, again.blocks);
	assert_int_equal(sum.bytes, again.bytes);
	assert_int_equal(sum.crc, again.crc);

	uint8_t bytes[FILE_ROOM];
	assert_int_equal(read_bytes(path, bytes, sizeof(bytes)), sum.bytes);
	assert_int_equal(wf_crc32c(0, bytes, sum.bytes), sum.crc);
}

/* Made by a program of its own, so that writer and reader cannot change together. */
static void
a_part_of_format_1_stays_readable_and_is_written_as_ever(void **state)
{
	struct scene *scene = *state;
	const char *path = at(scene, "part", "");
	struct wf_part_writer *writer = NULL;
	struct wf_part_sum sum;
	uint8_t hundred[100], fixture[FILE_ROOM], written[FILE_ROOM];
	char golden[400];

	snprintf(golden, sizeof(golden), "%s/part", getenv("WEFT_FIXTURES"));
	assert_ok(check(scene, golden));
	for (unsigned i = 0; i < sizeof(hundred); i++) {
		hundred[i] = (uint8_t)i;
	}
	assert_ok(create(scene, path, &lane_1, &writer));
	assert_ok(wf_part_put(writer, &some_blocks[0], hundred));
	assert_ok(wf_part_put(writer, &some_blocks[1], NULL));
	assert_ok(wf_part_put(writer,
			      &(struct wf_part_block){.kind = WF_PART_LANE, .count = 3, .bytes = 3},
			      "abc"));
	assert_ok(wf_part_finish(writer, WEFT_OK, &sum));
	assert_int_equal(read_bytes(golden, fixture, sizeof(fixture)), sum.bytes);
	assert_int_equal(read_bytes(path, written, sizeof(written)), sum.bytes);
	assert_memory_equal(written, fixture, sum.bytes);
}

static void
a_payload_longer_than_the_buffer_comes_back_in_any_pieces(void **state)
{
	struct scene *scene = *state;
	const char *path = at(scene, "part", "");
	const struct wf_part_block block = {
		.kind = WF_PART_SLICE, .count = LONG_BYTES / 4, .bytes = LONG_BYTES};
	struct wf_part_writer *writer = NULL;
	struct wf_part_reader *reader = NULL;
	struct wf_part_block got;
	struct wf_part_sum sum;
	uint8_t *payload = malloc(LONG_BYTES);
	uint8_t *out = malloc(LONG_BYTES);

	assert_true(payload != NULL && out != NULL);
	fill_payload(0, payload, LONG_BYTES);
	assert_ok(create(scene, path, &lane_1, &writer));
	assert_ok(wf_part_begin(writer, &block));
	for (size_t done = 0; done < LONG_BYTES;) {
		size_t piece = done % 3000 + 1;
		piece = piece < LONG_BYTES - done ? piece : LONG_BYTES - done;
		assert_ok(wf_part_write(writer, payload + done, piece));
		done += piece;
	}
	assert_ok(wf_part_put(writer, &block, payload));
	assert_ok(wf_part_finish(writer, WEFT_OK, &sum));
	assert_ok(wf_part_open(&scene->failing.env, wf_saved_posix(), path, &reader));
	assert_ok(wf_part_next(reader, &got));
	assert_ok(wf_part_read(reader, out, LONG_BYTES));
	assert_memory_equal(out, payload, LONG_BYTES);
	assert_ok(wf_part_next(reader, &got));
	assert_ok(wf_part_read(reader, out, 5));
	assert_ok(wf_part_skip(reader));
	assert_int_equal(wf_part_next(reader, &got), WEFT_CLOSED);
	assert_int_equal(wf_part_sum(reader).crc, sum.crc);
	wf_part_close(reader);
	free(payload);
	free(out);
}

/* Blocks that are left, from their beginning or their middle, with and without a payload; the one
 * that is read is compared with its checksum as ever. */
static void
blocks_that_are_left_are_not_read_and_those_behind_them_are(void **state)
{
	struct scene *scene = *state;
	const char *path = at(scene, "part", "");
	struct wf_part_block block = {
		.kind = WF_PART_SLICE, .count = LONG_BYTES / 4, .bytes = LONG_BYTES};
	const struct wf_part_block empty = {.kind = WF_PART_ROWS};
	struct wf_part_writer *writer = NULL;
	struct wf_part_reader *reader = NULL;
	struct wf_part_block got;
	struct wf_part_sum sum;
	uint8_t *payload = malloc(LONG_BYTES);
	uint8_t *out = malloc(LONG_BYTES);

	assert_true(payload != NULL && out != NULL);
	fill_payload(0, payload, LONG_BYTES);
	assert_ok(create(scene, path, &lane_1, &writer));
	for (unsigned i = 0; i < 3; i++) {
		block.item = i;
		assert_ok(wf_part_put(writer, &block, payload));
		assert_ok(wf_part_begin(writer, &empty));
	}
	assert_ok(wf_part_finish(writer, WEFT_OK, &sum));
	assert_ok(wf_part_open(&scene->failing.env, wf_saved_posix(), path, &reader));
	for (unsigned i = 0; i < 3; i++) {
		assert_ok(wf_part_next(reader, &got));
		assert_int_equal(got.item, i);
		assert_ok(wf_part_read(reader, out, i == 2 ? LONG_BYTES : i * 5));
		wf_part_leave(reader);
		assert_ok(wf_part_next(reader, &got));
		assert_int_equal(got.kind, WF_PART_ROWS);
		wf_part_leave(reader);
	}
	assert_memory_equal(out, payload, LONG_BYTES);
	assert_int_equal(wf_part_next(reader, &got), WEFT_CLOSED);
	wf_part_close(reader);
	free(payload);
	free(out);
}

static void
a_part_without_blocks_is_one(void **state)
{
	struct scene *scene = *state;
	const char *path = at(scene, "part", "");
	struct wf_part_writer *writer = NULL;
	struct wf_part_sum sum;

	assert_ok(create(scene, path, &lane_1, &writer));
	assert_ok(wf_part_finish(writer, WEFT_OK, &sum));
	assert_int_equal(sum.bytes, WF_PART_HEAD_BYTES + WF_PART_BLOCK_HEAD_BYTES);
	assert_ok(check(scene, path));
}

static void
the_writer_refuses_what_the_reader_would(void **state)
{
	static const struct {
		struct wf_part_block block;
		const char *part;
	} cases[] = {
		{{.kind = 0}, "block 0: its kind is unknown"},
		{{.kind = WF_PART_VERSIONS + 1}, "its kind is unknown"},
		{{.kind = 1, .bytes = WF_PART_BLOCK_BYTES_MAX + 1}, "too long"},
		{{.kind = 1, .count = 1ull << 63}, "beyond what can be counted"},
		{{.kind = 1, .first = INT64_MAX, .count = 1}, "beyond what can be counted"},
	};
	struct scene *scene = *state;
	const char *path = at(scene, "part", "");
	struct wf_part_writer *writer = NULL;
	struct wf_part_sum sum;
	struct wf_part_head head = lane_1;

	head.service = WF_SERVICE_CONTROL;
	assert_refused(create(scene, path, &head, &writer), WEFT_INVALID, "neither dense nor");
	head = lane_1;
	head.lane = head.lane_count;
	assert_refused(create(scene, path, &head, &writer), WEFT_INVALID, "one of the lanes");
	assert_int_equal(names_in(scene->dir, false), 0);

	assert_ok(create(scene, path, &lane_1, &writer));
	for (size_t i = 0; i < WF_ARRAY_COUNT(cases); i++) {
		assert_refused(wf_part_begin(writer, &cases[i].block), WEFT_INVALID, cases[i].part);
	}
	assert_ok(wf_part_begin(writer, &some_blocks[0]));
	assert_refused(wf_part_begin(writer, &some_blocks[1]), WEFT_INVALID, "lacks 100 bytes");
	assert_refused(wf_part_write(writer, scene, 101), WEFT_INVALID, "where 100 are left");
	assert_refused(wf_part_finish(writer, WEFT_OK, &sum), WEFT_INVALID, "lacks 100 bytes");
}

static void
any_byte_that_is_damaged_is_found_without_the_manifest(void **state)
{
	struct scene *scene = *state;
	const char *path = at(scene, "part", "");
	uint8_t bytes[FILE_ROOM];

	(void)write_some(scene, path, &lane_1);
	const size_t count = read_bytes(path, bytes, sizeof(bytes));
	for (size_t i = 0; i < count; i++) {
		bytes[i] ^= (uint8_t)(1u << i % 8);
		write_bytes(path, bytes, count);
		assert_refused(check(scene, path), WEFT_DATA, path);
		bytes[i] ^= (uint8_t)(1u << i % 8);
	}
	write_bytes(path, bytes, count);
	assert_ok(check(scene, path));
}

static void
a_part_that_is_cut_or_goes_on_is_refused(void **state)
{
	struct scene *scene = *state;
	const char *path = at(scene, "part", "");
	uint8_t bytes[FILE_ROOM];

	(void)write_some(scene, path, &lane_1);
	const size_t count = read_bytes(path, bytes, sizeof(bytes));
	for (size_t left = 0; left < count; left++) {
		write_bytes(path, bytes, left);
		assert_refused(check(scene, path), WEFT_DATA, path);
	}
	bytes[count] = 0;
	write_bytes(path, bytes, count + 1);
	assert_refused(check(scene, path), WEFT_DATA, "has 1 bytes after its end");
	assert_int_equal(unlink(path), 0);
	assert_refused(check(scene, path), WEFT_DATA, "cannot be opened");
	assert_int_equal(mkdir(path, 0777), 0);
	assert_refused(check(scene, path), WEFT_DATA, "not a regular file");
}

/* A file in memory whose checksums are put right after it was changed. */
struct forged {
	uint8_t bytes[512];
	size_t count;
};

static uint32_t
seal(uint8_t *from, size_t count, uint32_t crc)
{
	crc = wf_crc32c(crc, from, count);
	wf_store_u32(from + count, wf_saved_crc_stored(crc));
	return crc;
}

/* A part with one block of 8 bytes: head at 0, block at 64, payload at 112, its checksum at 120,
 * end mark at 124. */
static struct forged
forge(struct scene *scene)
{
	const char *path = at(scene, "honest", "");
	const struct wf_part_block block = {.kind = WF_PART_ROWS, .count = 1, .bytes = 8};
	struct wf_part_writer *writer = NULL;
	struct wf_part_sum sum;
	struct forged forged;

	(void)unlink(path);
	assert_ok(create(scene, path, &lane_1, &writer));
	assert_ok(wf_part_put(writer, &block, "payload"));
	assert_ok(wf_part_finish(writer, WEFT_OK, &sum));
	forged.count = read_bytes(path, forged.bytes, sizeof(forged.bytes));
	assert_int_equal(forged.count, 64 + 48 + 8 + 4 + 48);
	return forged;
}

static void
seal_all(struct forged *forged)
{
	const uint32_t head = seal(forged->bytes, WF_PART_HEAD_CRC_AT, 0);
	const uint32_t block = seal(forged->bytes + 64, WF_PART_BLOCK_CRC_AT, head);
	const uint32_t payload = wf_crc32c(block, forged->bytes + 112, 8);

	wf_store_u32(forged->bytes + 120, wf_saved_crc_stored(payload));
	(void)seal(forged->bytes + 124, WF_PART_BLOCK_CRC_AT, head);
}

static void
fields_that_lie_are_refused_behind_good_checksums(void **state)
{
	static const struct {
		size_t at;
		uint64_t value; /* 8 bytes, little-endian */
		const char *part;
	} cases[] = {
		{0, 0, "is not a part of a snapshot"},
		{8, 2 | 2ull << 32, "format version 2: this weft reads version 1"},
		{8, 1 | 1ull << 32, "neither dense nor sparse"},
		{8, 1 | 0x102ull << 32, "bytes that this version does not write"},
		{16, 4 | 4ull << 32, "not one of the lanes"},
		{16, 0, "not one of the lanes"},
		{48, 1, "bytes that this version does not write"},
		{64, 1, "block 0: its head is that of another one"},
		{72, 0, "block 0: is an end mark with a payload"},
		{72, WF_PART_VERSIONS + 1, "block 0: its kind is unknown"},
		{80, 1ull << 63, "block 0: it reaches beyond what can be counted"},
		{88, UINT64_MAX, "block 0: it reaches beyond what can be counted"},
		{96, 61, "block 0: its payload is longer than the rest of the file"},
		{96, WF_PART_BLOCK_BYTES_MAX, "block 0: its payload is longer than the rest"},
		{96, WF_PART_BLOCK_BYTES_MAX + 1, "block 0: its payload is too long"},
		{96, UINT64_MAX, "block 0: its payload is too long"},
		{96, 7, "block 0: checksum of its payload: it is damaged"},
		{96, 0, "block 0: checksum of its payload: it is damaged"},
		{124, 0, "block 1: its head is that of another one"},
		{124, 2, "block 1: its head is that of another one"},
		{132, 1, "ends 4 bytes too early"},
		{132, 1ull << 32, "block 1: is an end mark with a payload"},
		{140, 1, "block 1: is an end mark with a payload"},
		{148, 1, "block 1: is an end mark with a payload"},
		{156, 1, "block 1: is an end mark with a payload"},
	};
	struct scene *scene = *state;
	char path[100];

	snprintf(path, sizeof(path), "%s/forged", scene->dir);
	for (size_t i = 0; i < WF_ARRAY_COUNT(cases); i++) {
		struct forged forged = forge(scene);
		wf_store_u64(forged.bytes + cases[i].at, cases[i].value);
		seal_all(&forged);
		write_bytes(path, forged.bytes, forged.count);
		assert_refused(check(scene, path), WEFT_DATA, cases[i].part);
	}
	struct forged forged = forge(scene);
	forged.bytes[104] = 1; /* where a block's head has 0 */
	seal_all(&forged);
	write_bytes(path, forged.bytes, forged.count);
	assert_refused(check(scene, path), WEFT_DATA, "block 0: its head is that of another one");
	forged.bytes[104] = 0;
	seal_all(&forged);
	write_bytes(path, forged.bytes, forged.count);
	assert_ok(check(scene, path));
}

static void
a_block_of_another_part_is_refused(void **state)
{
	struct scene *scene = *state;
	const char *path = at(scene, "part", "");
	const char *other_path = at(scene, "other", "");
	struct wf_part_head heads[] = {lane_1, lane_1, lane_1, lane_1, lane_1};
	uint8_t mine[FILE_ROOM], other[FILE_ROOM];

	heads[0].service = WF_SERVICE_SPARSE;
	heads[1].lane = 2;
	heads[2].epoch = 2;
	heads[3].step = 179;
	heads[4].job_digest++;
	const struct wf_part_sum sum = write_some(scene, path, &lane_1);
	for (size_t i = 0; i < WF_ARRAY_COUNT(heads); i++) {
		const size_t count = read_bytes(path, mine, sizeof(mine));
		(void)write_some(scene, other_path, &heads[i]);
		assert_int_equal(read_bytes(other_path, other, sizeof(other)), count);
		assert_int_equal(count, sum.bytes);
		/* All of it behind the other head. */
		memcpy(mine, other, WF_PART_HEAD_BYTES);
		write_bytes(other_path, mine, count);
		assert_refused(check(scene, other_path), WEFT_DATA,
			       "block 0: checksum of its head");
	}
}

static void
a_reader_has_the_same_memory_for_every_file(void **state)
{
	struct scene *scene = *state;
	const char *path = at(scene, "forged", "");
	struct wf_part_reader *reader = NULL;
	struct forged forged = forge(scene);

	wf_store_u64(forged.bytes + 96, WF_PART_BLOCK_BYTES_MAX);
	wf_store_u64(forged.bytes + 88, INT64_MAX);
	seal_all(&forged);
	write_bytes(path, forged.bytes, forged.count);
	assert_ok(wf_part_open(&scene->failing.env, wf_saved_posix(), path, &reader));
	assert_int_equal(scene->failing.live_count, 1);
	assert_true(scene->failing.live_bytes < WF_CHUNK_BYTES + 2 * WF_SAVED_PATH_BYTES);
	wf_part_close(reader);
}

/* What the system was asked to begin with, and how many bytes there were when it was. */
static struct {
	uint64_t written, begun;
	unsigned count;
	bool is_synced;
} disk;

static ssize_t
counted_write(int fd, const void *bytes, size_t count)
{
	ssize_t done = write(fd, bytes, count);
	disk.written += done > 0 ? (uint64_t)done : 0;
	return done;
}

static int
counted_write_back(int fd, off_t at, off_t count)
{
	(void)fd;
	assert_false(disk.is_synced);
	assert_int_equal(at, disk.begun);
	disk.begun += (uint64_t)count;
	assert_int_equal(disk.begun, disk.written);
	disk.count++;
	return -1; /* a hint may fail */
}

static int
counted_fsync(int fd)
{
	disk.is_synced = true;
	return fsync(fd);
}

/* Of a file of some stretches, one after the other while it is written; without the call as well.
 */
static void
a_long_part_is_on_its_way_to_the_disk_while_it_is_written(void **state)
{
	struct scene *scene = *state;
	struct wf_saved_calls calls = *wf_saved_posix();
	const struct wf_part_block block = {.kind = WF_PART_SLICE, .bytes = LONG_BYTES};
	uint8_t *payload = calloc(1, LONG_BYTES);

	assert_non_null(payload);
	calls.write = counted_write;
	calls.fsync = counted_fsync;
	for (unsigned with = 0; with < 2; with++) {
		const char *path = at(scene, "part", "");
		const struct wf_saved_spot spot = {&calls, AT_FDCWD, path};
		struct wf_part_writer *writer = NULL;
		struct wf_part_sum sum;

		memset(&disk, 0, sizeof(disk));
		calls.write_back = with != 0 ? counted_write_back : NULL;
		assert_ok(wf_part_create(&scene->failing.env, &spot, &lane_1, &writer));
		for (uint64_t i = 0; i * LONG_BYTES < 3ull * WF_SAVED_WRITE_BACK_BYTES; i++) {
			assert_ok(wf_part_put(writer, &block, payload));
		}
		assert_true(disk.written - disk.begun < WF_SAVED_WRITE_BACK_BYTES || with == 0);
		assert_ok(wf_part_finish(writer, WEFT_OK, &sum));
		assert_true(disk.is_synced);
		assert_in_range(disk.count, 2 * with, 3 * with);
		assert_ok(check(scene, path));
		assert_int_equal(unlink(path), 0);
	}
	free(payload);
}

static void
without_memory_nothing_is_left(void **state)
{
	struct scene *scene = *state;
	const char *path = at(scene, "part", "");
	struct wf_part_writer *writer = NULL;

	wf_failing_env_fail(&scene->failing, 1, false);
	assert_int_equal(create(scene, path, &lane_1, &writer), WEFT_NOMEM);
	assert_int_equal(names_in(scene->dir, false), 0);
	(void)write_some(scene, path, &lane_1);
	wf_failing_env_fail(&scene->failing, 1, false);
	assert_int_equal(check(scene, path), WEFT_NOMEM);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_SCENE(blocks_come_back_as_they_were_put),
		WITH_SCENE(a_part_of_format_1_stays_readable_and_is_written_as_ever),
		WITH_SCENE(a_payload_longer_than_the_buffer_comes_back_in_any_pieces),
		WITH_SCENE(blocks_that_are_left_are_not_read_and_those_behind_them_are),
		WITH_SCENE(a_part_without_blocks_is_one),
		WITH_SCENE(the_writer_refuses_what_the_reader_would),
		WITH_SCENE(any_byte_that_is_damaged_is_found_without_the_manifest),
		WITH_SCENE(a_part_that_is_cut_or_goes_on_is_refused),
		WITH_SCENE(fields_that_lie_are_refused_behind_good_checksums),
		WITH_SCENE(a_block_of_another_part_is_refused),
		WITH_SCENE(a_reader_has_the_same_memory_for_every_file),
		WITH_SCENE(a_long_part_is_on_its_way_to_the_disk_while_it_is_written),
		WITH_SCENE(without_memory_nothing_is_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
