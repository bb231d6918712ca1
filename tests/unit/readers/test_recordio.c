/* SPDX-License-Identifier: Apache-2.0 */
/* RecordIO: files of another program are read, what is written reads back in the chunks that were
 * asked for, and what is damaged, truncated or lies is refused by file and byte. */
#include "tests/unit/train/setup.h"

#include <sys/mman.h>
#include <unistd.h>

#include <zlib.h>

#include "tests/unit/wire/heap_env.h"
#include "trainer/readers/crc32.h"
#include "trainer/readers/input.h"
#include "trainer/readers/payload.h"
#include "trainer/readers/recordio.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static struct heap_env heap;

static int
open_heap(void **state)
{
	heap = heap_env_make();
	return 0;
}

static int
close_heap(void **state)
{
	assert_int_equal(heap.out_bytes, 0);
	return 0;
}

static int
file_of(const void *bytes, size_t count)
{
	int fd = memfd_create("recordio", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, count), (ssize_t)count);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	return fd;
}

static struct wf_recordio_reader *
open_reader(int fd)
{
	struct wf_recordio_reader *reader = NULL;

	assert_ok(wf_recordio_reader_open(&heap.env, fd, "file", &reader));
	return reader;
}

static struct wf_recordio_reader *
open_fixture(const char *name, int *fd)
{
	static uint8_t bytes[4096];
	char path[512];
	const char *corpus = getenv("WEFT_CORPUS");

	assert_non_null(corpus);
	snprintf(path, sizeof(path), "%s/recordio/%s", corpus, name);
	FILE *file = fopen(path, "rb");
	assert_non_null(file);
	size_t count = fread(bytes, 1, sizeof(bytes), file);
	fclose(file);
	*fd = file_of(bytes, count);
	return open_reader(*fd);
}

static void
assert_record(struct wf_recordio_reader *reader, const char *text)
{
	struct wf_record record = {0};

	assert_ok(wf_recordio_read(reader, &record));
	assert_non_null(record.bytes);
	assert_int_equal(record.count, strlen(text));
	assert_memory_equal(record.bytes, text, record.count);
}

static void
assert_end(struct wf_recordio_reader *reader)
{
	struct wf_record record = {.bytes = (const uint8_t *)"", .count = 1};

	for (unsigned i = 0; i < 2; i++) {
		assert_ok(wf_recordio_read(reader, &record));
		assert_null(record.bytes);
	}
}

static void
files_of_another_program_are_read(void **state)
{
	static const char *const names[] = {"none",     "snappy",     "gzip",
					    "none_cpp", "snappy_cpp", "gzip_cpp"};
	char many[301];
	int fd = -1;

	memset(many, 'x', 300);
	many[300] = '\0';
	for (size_t i = 0; i < COUNT(names); i++) {
		struct wf_recordio_reader *reader = open_fixture(names[i], &fd);
		assert_record(reader, "one");
		assert_record(reader, "");
		assert_record(reader, "two words");
		assert_record(reader, many);
		assert_end(reader);
		wf_recordio_reader_close(reader);
		close(fd);
	}
}

static void
chunks_of_different_compressors_follow_each_other(void **state)
{
	struct wf_recordio_chunk chunk;
	int fd = -1;
	struct wf_recordio_reader *reader = open_fixture("two", &fd);

	assert_ok(wf_recordio_read_chunk(reader, &chunk));
	assert_int_equal(chunk.at, 0);
	assert_int_equal(chunk.records, 4);
	assert_int_equal(chunk.bytes, 4 * 4 + 3 + 9 + 300);
	assert_int_equal(chunk.compressor, WF_RECORDIO_SNAPPY);
	uint64_t next = WF_RECORDIO_HEADER_BYTES + chunk.stored_bytes;
	assert_ok(wf_recordio_read_chunk(reader, &chunk));
	assert_int_equal(chunk.at, next);
	assert_int_equal(chunk.compressor, WF_RECORDIO_NONE);
	assert_int_equal(wf_recordio_chunk_record(reader).count, 4);
	assert_null(wf_recordio_chunk_record(reader).bytes);
	assert_ok(wf_recordio_read_chunk(reader, &chunk));
	assert_int_equal(chunk.records, 0);
	wf_recordio_reader_close(reader);
	close(fd);
}

static void
a_file_is_recognised_by_its_first_bytes(void **state)
{
	static const uint8_t right[] = {4, 3, 2, 1, 9};
	static const uint8_t wrong[] = {1, 2, 3, 4, 9};

	assert_true(wf_recordio_recognise(right, sizeof(right)));
	assert_false(wf_recordio_recognise(right, 3));
	assert_false(wf_recordio_recognise(wrong, sizeof(wrong)));
}

struct sink {
	uint8_t *bytes;
	size_t count;
	unsigned fail_at; /* which write fails, from 1; 0: none */
	unsigned writes;
};

static enum weft_status
write_to_sink(void *to, const void *bytes, size_t count)
{
	struct sink *sink = to;

	if (++sink->writes == sink->fail_at) {
		return wf_fail(WEFT_IO, "the disk is full");
	}
	sink->bytes = realloc(sink->bytes, sink->count + count);
	assert_non_null(sink->bytes);
	memcpy(sink->bytes + sink->count, bytes, count);
	sink->count += count;
	return WEFT_OK;
}

static struct wf_recordio_writer *
open_writer(struct sink *sink, enum wf_recordio_compressor compressor, size_t chunk_bytes)
{
	struct wf_recordio_writer *writer = NULL;
	struct wf_recordio_writer_opts opts = {.compressor = compressor,
					       .chunk_bytes = chunk_bytes,
					       .write = write_to_sink,
					       .to = sink};

	assert_ok(wf_recordio_writer_open(&heap.env, &opts, &writer));
	return writer;
}

/* Records of all kinds: empty, compressible, random, longer than a frame and than a chunk. */
static size_t
make_record(uint64_t *chance, uint8_t *bytes, size_t room)
{
	*chance = *chance * 6364136223846793005ull + 1442695040888963407ull;
	uint64_t drawn = *chance >> 20;
	size_t count = drawn % 17 == 0 ? 0 : drawn % (drawn % 5 == 0 ? room : 200);

	for (size_t i = 0; i < count; i++) {
		*chance = *chance * 6364136223846793005ull + 1442695040888963407ull;
		bytes[i] = drawn % 2 == 0 ? (uint8_t)(i % 7) : (uint8_t)(*chance >> 40);
	}
	return count;
}

static void
what_is_written_reads_back(void **state)
{
	static uint8_t made[150000];
	const uint64_t seed = test_seed();

	for (unsigned compressor = 0; compressor <= WF_RECORDIO_GZIP; compressor++) {
		struct sink sink = {0};
		uint64_t chance = seed;
		struct wf_recordio_writer *writer =
			open_writer(&sink, (enum wf_recordio_compressor)compressor, 100000);
		for (unsigned i = 0; i < 200; i++) {
			size_t count = make_record(&chance, made, sizeof(made));
			assert_ok(wf_recordio_write(writer, made, count));
		}
		assert_ok(wf_recordio_writer_finish(writer));
		wf_recordio_writer_close(writer);
		int fd = file_of(sink.bytes, sink.count);
		struct wf_recordio_reader *reader = open_reader(fd);
		chance = seed;
		for (unsigned i = 0; i < 200; i++) {
			struct wf_record record;
			size_t count = make_record(&chance, made, sizeof(made));
			assert_ok(wf_recordio_read(reader, &record));
			assert_int_equal(record.count, count);
			assert_memory_equal(record.bytes, made, count);
		}
		assert_end(reader);
		wf_recordio_reader_close(reader);
		close(fd);
		free(sink.bytes);
	}
}

static void
a_chunk_is_as_long_as_was_asked_and_a_longer_record_stands_alone(void **state)
{
	static const struct {
		size_t record_bytes;
		uint32_t of_chunk; /* the number of records of the chunk that it is in */
	} rows[] = {{4, 3}, {4, 3}, {2, 3}, {11, 1}, {0, 3}, {9, 3}, {1, 3}, {10, 1}};
	struct sink sink = {0};
	struct wf_recordio_chunk chunk;

	struct wf_recordio_writer *writer = open_writer(&sink, WF_RECORDIO_NONE, 10);
	for (size_t i = 0; i < COUNT(rows); i++) {
		assert_ok(wf_recordio_write(writer, "abcdefghijklm", rows[i].record_bytes));
	}
	assert_ok(wf_recordio_writer_finish(writer));
	assert_ok(wf_recordio_writer_finish(writer)); /* there is nothing left to write */
	wf_recordio_writer_close(writer);
	int fd = file_of(sink.bytes, sink.count);
	struct wf_recordio_reader *reader = open_reader(fd);
	for (size_t i = 0; i < COUNT(rows); i += rows[i].of_chunk) {
		assert_ok(wf_recordio_read_chunk(reader, &chunk));
		assert_int_equal(chunk.records, rows[i].of_chunk);
	}
	assert_ok(wf_recordio_read_chunk(reader, &chunk));
	assert_int_equal(chunk.records, 0);
	wf_recordio_reader_close(reader);
	close(fd);
	free(sink.bytes);
}

static void
a_file_without_records_has_no_bytes(void **state)
{
	struct sink sink = {0};
	struct wf_recordio_writer *writer = open_writer(&sink, WF_RECORDIO_SNAPPY, 0);

	assert_ok(wf_recordio_writer_finish(writer));
	wf_recordio_writer_close(writer);
	assert_int_equal(sink.writes, 0);
}

static void
a_write_that_fails_is_passed_on(void **state)
{
	for (unsigned fail_at = 1; fail_at <= 2; fail_at++) {
		struct sink sink = {.fail_at = fail_at};
		struct wf_recordio_writer *writer = open_writer(&sink, WF_RECORDIO_GZIP, 4);
		assert_ok(wf_recordio_write(writer, "abcd", 4));
		assert_refused(wf_recordio_write(writer, "e", 1), WEFT_IO, "disk is full");
		wf_recordio_writer_close(writer);
		free(sink.bytes);
	}
}

static void
a_record_that_no_reader_would_accept_is_not_written(void **state)
{
	struct sink sink = {0};
	struct wf_recordio_writer *writer = open_writer(&sink, WF_RECORDIO_NONE, 0);

	assert_refused(wf_recordio_write(writer, "", WF_RECORDIO_RECORD_BYTES_MAX + 1u),
		       WEFT_INVALID, "a record has 267386881 bytes");
	wf_recordio_writer_close(writer);
}

/* Two chunks of "one" and "two words", of this compressor. `out` is [512]. */
static size_t
make_file(enum wf_recordio_compressor compressor, uint8_t *out)
{
	struct sink sink = {0};
	struct wf_recordio_writer *writer = open_writer(&sink, compressor, 12);

	for (unsigned i = 0; i < 2; i++) {
		assert_ok(wf_recordio_write(writer, "one", 3));
		assert_ok(wf_recordio_write(writer, "two words", 9));
	}
	assert_ok(wf_recordio_writer_finish(writer));
	wf_recordio_writer_close(writer);
	assert_true(sink.count <= 512);
	memcpy(out, sink.bytes, sink.count);
	free(sink.bytes);
	return sink.count;
}

static void
every_bit_of_a_file_counts(void **state)
{
	for (unsigned compressor = 0; compressor <= WF_RECORDIO_GZIP; compressor++) {
		uint8_t bytes[512];
		size_t count = make_file((enum wf_recordio_compressor)compressor, bytes);
		for (size_t bit = 0; bit < 4 * count; bit++) { /* of the first chunk */
			struct wf_recordio_chunk chunk;
			bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
			int fd = file_of(bytes, count);
			struct wf_recordio_reader *reader = open_reader(fd);
			assert_refused(wf_recordio_read_chunk(reader, &chunk), WEFT_DATA,
				       "file: the chunk at byte 0: ");
			assert_null(wf_recordio_chunk_record(reader).bytes);
			wf_recordio_reader_close(reader);
			close(fd);
			bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
		}
	}
}

static void
a_truncated_file_is_refused_with_the_place(void **state)
{
	uint8_t bytes[512];
	char place[64];
	size_t count = make_file(WF_RECORDIO_SNAPPY, bytes);

	snprintf(place, sizeof(place), "file: the chunk at byte %zu: the file ends", count / 2);
	for (size_t cut = count / 2 + 1; cut < count; cut++) {
		struct wf_record record;
		int fd = file_of(bytes, cut);
		struct wf_recordio_reader *reader = open_reader(fd);
		assert_record(reader, "one");
		assert_record(reader, "two words");
		assert_refused(wf_recordio_read(reader, &record), WEFT_DATA, place);
		assert_non_null(strstr(weft_last_error(), "it is truncated"));
		assert_end(reader);
		wf_recordio_reader_close(reader);
		close(fd);
	}
}

static void
the_chunk_behind_a_damaged_one_is_read(void **state)
{
	uint8_t bytes[512];
	struct wf_recordio_chunk chunk;
	size_t count = make_file(WF_RECORDIO_GZIP, bytes);

	bytes[WF_RECORDIO_HEADER_BYTES + 12] ^= 1;
	int fd = file_of(bytes, count);
	struct wf_recordio_reader *reader = open_reader(fd);
	assert_refused(wf_recordio_read_chunk(reader, &chunk), WEFT_DATA, "checksum is wrong");
	assert_ok(wf_recordio_read_chunk(reader, &chunk));
	assert_int_equal(chunk.at, count / 2);
	assert_int_equal(chunk.records, 2);
	assert_record(reader, "one");
	wf_recordio_reader_close(reader);
	close(fd);
}

static void
behind_a_damaged_header_nothing_is_guessed(void **state)
{
	static const size_t places[] = {0, 8}; /* of the magic word, and of the compressor */

	for (size_t i = 0; i < COUNT(places); i++) {
		uint8_t bytes[512];
		struct wf_recordio_chunk chunk;
		size_t count = make_file(WF_RECORDIO_NONE, bytes);
		bytes[places[i]] ^= 0x40;
		int fd = file_of(bytes, count);
		struct wf_recordio_reader *reader = open_reader(fd);
		assert_refused(wf_recordio_read_chunk(reader, &chunk), WEFT_DATA,
			       "file: the chunk at byte 0: ");
		assert_end(reader);
		wf_recordio_reader_close(reader);
		close(fd);
	}
}

static void
put_word(uint8_t *at, uint32_t word)
{
	for (unsigned i = 0; i < 4; i++) {
		at[i] = (uint8_t)(word >> (8 * i));
	}
}

/* A chunk without records is passed over; what follows it is not a chunk that was read. */
static void
behind_an_empty_chunk_a_truncated_one_gives_no_record(void **state)
{
	uint8_t bytes[512] = {0};
	struct wf_recordio_chunk chunk;
	size_t count = WF_RECORDIO_HEADER_BYTES;

	put_word(bytes, WF_RECORDIO_MAGIC);
	count += make_file(WF_RECORDIO_NONE, bytes + count) / 2;
	for (size_t cut = WF_RECORDIO_HEADER_BYTES + 1; cut < count; cut++) {
		int fd = file_of(bytes, cut);
		struct wf_recordio_reader *reader = open_reader(fd);
		assert_refused(wf_recordio_read_chunk(reader, &chunk), WEFT_DATA,
			       "file: the chunk at byte 20: the file ends");
		assert_null(wf_recordio_chunk_record(reader).bytes);
		wf_recordio_reader_close(reader);
		close(fd);
	}
}

static void
a_checksum_is_zlibs_whatever_the_length_and_place(void **state)
{
	static uint8_t bytes[1100];

	assert_int_equal(wf_crc32("123456789", 9), 0xcbf43926u);
	for (size_t i = 0; i < sizeof(bytes); i++) {
		bytes[i] = (uint8_t)(i * i >> 3);
	}
	for (size_t count = 0; count <= 1024; count++) {
		const uint8_t *at = bytes + count % 17;
		assert_int_equal(wf_crc32(at, count), crc32(0, at, (uInt)count));
	}
}

/* A chunk of this payload, with a right checksum. */
static int
chunk_file(uint32_t compressor, uint32_t records, const uint8_t *stored, size_t count)
{
	uint8_t *bytes = malloc(WF_RECORDIO_HEADER_BYTES + count);

	assert_non_null(bytes);
	put_word(bytes, WF_RECORDIO_MAGIC);
	put_word(bytes + 4, (uint32_t)crc32(0, stored, (uInt)count));
	put_word(bytes + 8, compressor);
	put_word(bytes + 12, (uint32_t)count);
	put_word(bytes + 16, records);
	memcpy(bytes + WF_RECORDIO_HEADER_BYTES, stored, count);
	int fd = file_of(bytes, WF_RECORDIO_HEADER_BYTES + count);
	free(bytes);
	return fd;
}

static void
assert_chunk_refused(int fd, const char *why)
{
	struct wf_recordio_chunk chunk;
	struct wf_recordio_reader *reader = open_reader(fd);

	assert_refused(wf_recordio_read_chunk(reader, &chunk), WEFT_DATA, why);
	wf_recordio_reader_close(reader);
	close(fd);
}

static void
a_payload_that_is_not_its_records_is_refused(void **state)
{
	static const struct {
		uint32_t records;
		size_t count;
		uint8_t stored[12];
		const char *why;
	} rows[] = {
		{2, 5, {1, 0, 0, 0, 'a'}, "has 1 of the 2 records"},
		{0xffffffff, 5, {1, 0, 0, 0, 'a'}, "has 1 of the 4294967295 records"},
		{1, 7, {1, 0, 0, 0, 'a', 'b', 'c'}, "has 2 bytes behind the last of its 1"},
		{2, 7, {1, 0, 0, 0, 'a', 'b', 'c'}, "its record 2 reaches beyond"},
		{1, 5, {2, 0, 0, 0, 'a'}, "its record 1 reaches beyond"},
		{1, 5, {0xff, 0xff, 0xff, 0xff, 'a'}, "its record 1 reaches beyond"},
		{0, 4, {0, 0, 0, 0}, "has 4 bytes behind the last of its 0"},
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		assert_chunk_refused(chunk_file(WF_RECORDIO_NONE, rows[i].records, rows[i].stored,
						rows[i].count),
				     rows[i].why);
	}
}

#define ID 0xff, 6, 0, 0, 's', 'N', 'a', 'P', 'p', 'Y'

static void
a_snappy_stream_that_breaks_a_rule_is_refused(void **state)
{
	static const struct {
		size_t count;
		uint8_t stored[32];
		const char *why;
	} rows[] = {
		{8, {1, 8, 0, 0, 0, 0, 0, 0}, "ends within a frame"},
		{10, {0xff, 6, 0, 0, 's', 'N', 'a', 'P', 'p', 'X'}, "wrong identifier"},
		{4, {0x80, 0, 0, 0}, "does not begin with the identifier"},
		{13, {ID, 1, 4, 0}, "ends within a frame"},
		{14, {ID, 2, 0, 0, 0}, "has the type 0x02"},
		{17, {ID, 1, 3, 0, 0, 1, 2, 3}, "no room for its checksum"},
		{22, {ID, 1, 8, 0, 0, 1, 2, 3, 4, 'a', 'b', 'c', 'd'}, "checksum of a snappy"},
		{18, {ID, 0, 4, 0, 0, 1, 2, 3, 4}, "does not begin with its length"},
		{21, {ID, 0, 7, 0, 0, 1, 2, 3, 4, 0x81, 0x80, 0x04}, "has 65537 bytes of text"},
		{20, {ID, 0, 6, 0, 0, 1, 2, 3, 4, 5, 0}, "a snappy frame is damaged"},
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		assert_chunk_refused(
			chunk_file(WF_RECORDIO_SNAPPY, 1, rows[i].stored, rows[i].count),
			rows[i].why);
	}
}

static void
frames_that_may_be_skipped_are(void **state)
{
	/* One record, "a", between frames without text; the checksum is that of another program. */
	static const uint8_t stored[] = {ID,   0xfe, 2,    0, 0, 9, 9, ID,  1,    9, 0, 0, 0x74,
					 0xc8, 0x74, 0xb6, 1, 0, 0, 0, 'a', 0x80, 0, 0, 0};
	int fd = chunk_file(WF_RECORDIO_SNAPPY, 1, stored, sizeof(stored));
	struct wf_recordio_reader *reader = open_reader(fd);
	assert_record(reader, "a");
	assert_end(reader);
	wf_recordio_reader_close(reader);
	close(fd);
}

static void
a_header_gets_no_more_memory_than_there_are_bytes(void **state)
{
	static const uint32_t lies[] = {WF_RECORDIO_CHUNK_BYTES_MAX + 1u, 0xffffffffu,
					WF_RECORDIO_CHUNK_BYTES_MAX};

	for (size_t i = 0; i < COUNT(lies); i++) {
		uint8_t bytes[WF_RECORDIO_HEADER_BYTES + 3] = {0};
		put_word(bytes, WF_RECORDIO_MAGIC);
		put_word(bytes + 12, lies[i]);
		put_word(bytes + 16, 7);
		heap.asked_bytes = 0;
		assert_chunk_refused(file_of(bytes, sizeof(bytes)),
				     i < 2 ? "at most 268435456 are read" : "it is truncated");
		assert_true(heap.asked_bytes < 2u << 20);
	}
}

/* Frames that are a few bytes long and say that each has 64 KiB of text. */
static void
a_stream_that_announces_too_much_is_refused_before_it_is_unpacked(void **state)
{
	static const uint8_t id[] = {ID};
	static const uint8_t frame[] = {0, 8, 0, 0, 1, 2, 3, 4, 0x80, 0x80, 0x04, 0};
	static uint8_t stored[sizeof(id) + 4097 * sizeof(frame)];

	memcpy(stored, id, sizeof(id));
	for (size_t i = 0; i < 4097; i++) {
		memcpy(stored + sizeof(id) + i * sizeof(frame), frame, sizeof(frame));
	}
	heap.asked_bytes = 0;
	assert_chunk_refused(chunk_file(WF_RECORDIO_SNAPPY, 1, stored, sizeof(stored)),
			     "more than 268435456 bytes unpacked");
	assert_true(heap.asked_bytes < 2u << 20);
}

static void
a_gzip_stream_that_breaks_off_or_has_more_is_refused(void **state)
{
	uint8_t bytes[512];
	size_t count = make_file(WF_RECORDIO_GZIP, bytes) / 2 - WF_RECORDIO_HEADER_BYTES;
	const uint8_t *stored = bytes + WF_RECORDIO_HEADER_BYTES;

	for (size_t cut = 4; cut < count; cut++) {
		assert_chunk_refused(chunk_file(WF_RECORDIO_GZIP, 2, stored, cut),
				     "gzip stream is truncated");
	}
	bytes[WF_RECORDIO_HEADER_BYTES + count] = 'x';
	assert_chunk_refused(chunk_file(WF_RECORDIO_GZIP, 2, stored, count + 1), "gzip stream is");
	bytes[WF_RECORDIO_HEADER_BYTES + count - 6] ^= 1; /* its own checksum */
	assert_chunk_refused(chunk_file(WF_RECORDIO_GZIP, 2, stored, count),
			     "gzip stream is damaged");
}

static void
without_memory_nothing_is_left_behind(void **state)
{
	uint8_t bytes[512];

	for (unsigned compressor = 0; compressor <= WF_RECORDIO_GZIP; compressor++) {
		size_t count = make_file((enum wf_recordio_compressor)compressor, bytes);
		unsigned needed = 0;
		for (unsigned fail_at = 1;; fail_at++) {
			struct heap_env poor = heap_env_make();
			struct wf_recordio_reader *reader = NULL;
			struct wf_record record = {0};
			int fd = file_of(bytes, count);
			poor.fail_at = fail_at;
			enum weft_status st =
				wf_recordio_reader_open(&poor.env, fd, "file", &reader);
			if (st == WEFT_OK) {
				st = wf_recordio_read(reader, &record);
			}
			wf_recordio_reader_close(reader);
			close(fd);
			assert_int_equal(poor.out_bytes, 0);
			if (st == WEFT_OK) {
				needed = fail_at - 1;
				break;
			}
			assert_int_equal(st, WEFT_NOMEM);
		}
		assert_true(needed >= 2);
	}
}

/* All that an input gives, in pieces of `room` bytes. */
static void
assert_input(int fd, size_t room, const char *text)
{
	char path[64];
	char got[2048] = "";
	struct wf_input *input = NULL;
	size_t done = 0;
	size_t count = 1;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	assert_ok(wf_input_open(&heap.env, path, &input));
	assert_string_equal(wf_input_format(input), "recordio");
	while (count > 0) {
		assert_true(done + room < sizeof(got));
		assert_ok(wf_input_read(input, got + done, room, &count));
		done += count;
	}
	wf_input_close(input);
	assert_int_equal(done, strlen(text));
	assert_memory_equal(got, text, done);
	close(fd);
}

static void
the_records_of_a_file_are_the_lines_of_an_input(void **state)
{
	struct sink sink = {0};
	struct wf_recordio_writer *writer = open_writer(&sink, WF_RECORDIO_SNAPPY, 8);

	assert_ok(wf_recordio_write(writer, "one", 3));
	assert_ok(wf_recordio_write(writer, "", 0));
	assert_ok(wf_recordio_write(writer, "two\n", 4));
	assert_ok(wf_recordio_write(writer, "three words more", 16));
	assert_ok(wf_recordio_writer_finish(writer));
	wf_recordio_writer_close(writer);
	for (size_t room = 1; room < 40; room++) {
		assert_input(file_of(sink.bytes, sink.count), room,
			     "one\n\ntwo\nthree words more\n");
	}
	free(sink.bytes);
}

static void
a_record_that_is_two_lines_is_no_input(void **state)
{
	struct sink sink = {0};
	struct wf_input *input = NULL;
	char path[64];
	char got[32];
	size_t count = 0;
	struct wf_recordio_writer *writer = open_writer(&sink, WF_RECORDIO_NONE, 0);

	assert_ok(wf_recordio_write(writer, "one", 3));
	assert_ok(wf_recordio_write(writer, "two\nlines", 9));
	assert_ok(wf_recordio_writer_finish(writer));
	wf_recordio_writer_close(writer);
	int fd = file_of(sink.bytes, sink.count);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	assert_ok(wf_input_open(&heap.env, path, &input));
	assert_refused(wf_input_read(input, got, sizeof(got), &count), WEFT_DATA,
		       ": record 2: has a line feed in it");
	wf_input_close(input);
	close(fd);
	free(sink.bytes);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(files_of_another_program_are_read),
		cmocka_unit_test(chunks_of_different_compressors_follow_each_other),
		cmocka_unit_test(a_file_is_recognised_by_its_first_bytes),
		cmocka_unit_test(what_is_written_reads_back),
		cmocka_unit_test(a_chunk_is_as_long_as_was_asked_and_a_longer_record_stands_alone),
		cmocka_unit_test(a_file_without_records_has_no_bytes),
		cmocka_unit_test(a_write_that_fails_is_passed_on),
		cmocka_unit_test(a_record_that_no_reader_would_accept_is_not_written),
		cmocka_unit_test(every_bit_of_a_file_counts),
		cmocka_unit_test(a_truncated_file_is_refused_with_the_place),
		cmocka_unit_test(the_chunk_behind_a_damaged_one_is_read),
		cmocka_unit_test(behind_a_damaged_header_nothing_is_guessed),
		cmocka_unit_test(behind_an_empty_chunk_a_truncated_one_gives_no_record),
		cmocka_unit_test(a_checksum_is_zlibs_whatever_the_length_and_place),
		cmocka_unit_test(a_payload_that_is_not_its_records_is_refused),
		cmocka_unit_test(a_snappy_stream_that_breaks_a_rule_is_refused),
		cmocka_unit_test(frames_that_may_be_skipped_are),
		cmocka_unit_test(a_header_gets_no_more_memory_than_there_are_bytes),
		cmocka_unit_test(a_stream_that_announces_too_much_is_refused_before_it_is_unpacked),
		cmocka_unit_test(a_gzip_stream_that_breaks_off_or_has_more_is_refused),
		cmocka_unit_test(the_records_of_a_file_are_the_lines_of_an_input),
		cmocka_unit_test(a_record_that_is_two_lines_is_no_input),
		cmocka_unit_test(without_memory_nothing_is_left_behind),
	};

	return cmocka_run_group_tests(tests, open_heap, close_heap);
}
