/* SPDX-License-Identifier: Apache-2.0 */
/* CPU time of RecordIO beside that of its compressor alone, for the lines of a file, repeated to 64
 * MB. data.py runs it. RecordIO is written to memory, and read from a file in memory. The other
 * side uses nothing of the product: zlib or snappy pack the same bytes, lengths of the records
 * included, block by block into memory, and unpack them out of such a file. Thread: the only one.
 *
 * usage: recordio FILE snappy|gzip ROUNDS; prints a line for each round: seconds to write, to pack
 * alone, to read, to unpack alone. */
#include <snappy-c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

#include "trainer/readers/recordio.h"

/* Not the product's assertion: what the compressors alone do uses nothing of it. */
#define MUST(condition) ((condition) ? (void)0 : abort())

#define TEXT_BYTES ((size_t)64 << 20)
#define SNAPPY_BLOCK ((size_t)64 << 10)
#define GZIP_BLOCK ((size_t)1 << 20)
#define BLOCKS_MAX (2 * TEXT_BYTES / SNAPPY_BLOCK)
#define ROUNDS_MAX 1000u

struct bytes {
	uint8_t *at; /* [room] */
	size_t count, room;
};

static double
cpu_s(void)
{
	struct timespec now;
	MUST(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now) == 0);
	return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static struct bytes
make(size_t room)
{
	struct bytes out = {.at = malloc(room), .room = room};
	MUST(out.at != NULL);
	memset(out.at, 0, room); /* its pages are there */
	return out;
}

static enum weft_status
append(void *to, const void *bytes, size_t count)
{
	struct bytes *out = to;
	MUST(count <= out->room - out->count);
	memcpy(out->at + out->count, bytes, count);
	out->count += count;
	return WEFT_OK;
}

/* The file's whole lines, again and again. */
static struct bytes
load(const char *path)
{
	struct bytes out = make(TEXT_BYTES);
	FILE *in = fopen(path, "rb");
	MUST(in != NULL);
	size_t once = fread(out.at, 1, out.room, in);
	fclose(in);
	while (once > 0 && out.at[once - 1] != '\n') {
		once--;
	}
	MUST(once > 0);
	for (out.count = once; out.count + once <= out.room; out.count += once) {
		memcpy(out.at + out.count, out.at, once);
	}
	return out;
}

static void
write_records(struct wf_env *env, const struct bytes *text, enum wf_recordio_compressor compressor,
	      struct bytes *out)
{
	const struct wf_recordio_writer_opts opts = {
		.compressor = compressor, .write = append, .to = out};
	struct wf_recordio_writer *writer = NULL;
	out->count = 0;
	MUST(wf_recordio_writer_open(env, &opts, &writer) == WEFT_OK);
	for (size_t at = 0; at < text->count;) {
		const uint8_t *end = memchr(text->at + at, '\n', text->count - at);
		size_t count = (size_t)(end - (text->at + at));
		MUST(wf_recordio_write(writer, text->at + at, count) == WEFT_OK);
		at += count + 1;
	}
	MUST(wf_recordio_writer_finish(writer) == WEFT_OK);
	wf_recordio_writer_close(writer);
}

/* A file of these bytes, at its beginning. */
static int
open_file(const struct bytes *bytes)
{
	int fd = memfd_create("packed", MFD_CLOEXEC);

	MUST(fd >= 0);
	MUST(write(fd, bytes->at, bytes->count) == (ssize_t)bytes->count);
	MUST(lseek(fd, 0, SEEK_SET) == 0);
	return fd;
}

/* Returns the bytes of the records, with their lengths. */
static size_t
read_records(struct wf_env *env, int fd)
{
	struct wf_recordio_reader *reader = NULL;
	struct wf_record record;
	size_t bytes = 0;

	MUST(wf_recordio_reader_open(env, fd, "packed", &reader) == WEFT_OK);
	do {
		MUST(wf_recordio_read(reader, &record) == WEFT_OK);
		bytes += record.bytes != NULL ? record.count + sizeof(uint32_t) : 0;
	} while (record.bytes != NULL);
	wf_recordio_reader_close(reader);
	return bytes;
}

/* ---- the compressor alone ---- */

struct alone {
	bool is_snappy;
	size_t block_bytes;         /* unpacked */
	struct bytes plain, packed; /* `plain` has each record behind its length */
	size_t block[BLOCKS_MAX];   /* bytes of each, packed */
	size_t count;
};

static struct bytes
lay_out(const struct bytes *text)
{
	struct bytes out = make(2 * TEXT_BYTES);

	for (size_t at = 0; at < text->count;) {
		const uint8_t *end = memchr(text->at + at, '\n', text->count - at);
		uint32_t count = (uint32_t)(end - (text->at + at));
		append(&out, &count, sizeof(count));
		append(&out, text->at + at, count);
		at += count + 1;
	}
	return out;
}

static void
pack_alone(struct alone *alone)
{
	const struct bytes *in = &alone->plain;
	struct bytes *out = &alone->packed;

	out->count = 0;
	alone->count = 0;
	for (size_t at = 0; at < in->count; at += alone->block_bytes) {
		size_t left = in->count - at;
		size_t count = left < alone->block_bytes ? left : alone->block_bytes;
		size_t room = out->room - out->count;
		uLongf packed = room;
		if (alone->is_snappy) {
			MUST(snappy_compress((const char *)in->at + at, count,
					     (char *)out->at + out->count, &room) == SNAPPY_OK);
			packed = room;
		} else {
			MUST(compress(out->at + out->count, &packed, in->at + at, count) == Z_OK);
		}
		alone->block[alone->count++] = packed;
		out->count += packed;
	}
}

/* Returns the bytes. */
static size_t
unpack_alone(const struct alone *alone, int fd, struct bytes *in, struct bytes *out)
{
	size_t bytes = 0;

	for (size_t i = 0; i < alone->count; i++) {
		size_t count = out->room;
		uLongf got = out->room;
		MUST(read(fd, in->at, alone->block[i]) == (ssize_t)alone->block[i]);
		if (alone->is_snappy) {
			MUST(snappy_uncompress((const char *)in->at, alone->block[i],
					       (char *)out->at, &count) == SNAPPY_OK);
			got = count;
		} else {
			MUST(uncompress(out->at, &got, in->at, alone->block[i]) == Z_OK);
		}
		bytes += got;
	}
	return bytes;
}

/* ---- both ---- */

static void
run_round(struct wf_env *env, const struct bytes *text, struct alone *alone, struct bytes *packed)
{
	struct bytes in = make(2 * alone->block_bytes);
	struct bytes out = make(alone->block_bytes);
	double at[3];

	at[0] = cpu_s();
	write_records(env, text, alone->is_snappy ? WF_RECORDIO_SNAPPY : WF_RECORDIO_GZIP, packed);
	at[1] = cpu_s();
	pack_alone(alone);
	at[2] = cpu_s();
	printf("%.6f %.6f", at[1] - at[0], at[2] - at[1]);
	int records_fd = open_file(packed);
	int blocks_fd = open_file(&alone->packed);
	at[0] = cpu_s();
	size_t read_bytes = read_records(env, records_fd);
	at[1] = cpu_s();
	size_t bytes = unpack_alone(alone, blocks_fd, &in, &out);
	at[2] = cpu_s();
	MUST(read_bytes == alone->plain.count && bytes == read_bytes);
	printf(" %.6f %.6f\n", at[1] - at[0], at[2] - at[1]);
	close(records_fd);
	close(blocks_fd);
	free(in.at);
	free(out.at);
}

int
main(int argc, char **argv)
{
	static struct alone alone;
	struct wf_env *env = NULL;
	char *end = NULL;

	MUST(argc == 4);
	unsigned long rounds = strtoul(argv[3], &end, 10);
	MUST(*end == '\0' && rounds > 0 && rounds <= ROUNDS_MAX);
	alone.is_snappy = strcmp(argv[2], "snappy") == 0;
	MUST(alone.is_snappy || strcmp(argv[2], "gzip") == 0);
	alone.block_bytes = alone.is_snappy ? SNAPPY_BLOCK : GZIP_BLOCK;
	struct bytes text = load(argv[1]);
	struct bytes packed = make(2 * TEXT_BYTES);
	alone.plain = lay_out(&text);
	alone.packed = make(2 * TEXT_BYTES);
	MUST(wf_env_system_create(WF_LOG_WARN, STDERR_FILENO, &env) == WEFT_OK);
	for (unsigned long i = 0; i < rounds; i++) {
		run_round(env, &text, &alone, &packed);
	}
	wf_env_system_destroy(env);
	return 0;
}
