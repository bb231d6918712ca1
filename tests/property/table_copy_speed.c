/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes and time of a complete copy of a table, and of one that has only what has changed since,
 * each written to a file and synced: table_copy_speed FILE [ROWS [CHANGED]]. Rows are of 16 values
 * with adagrad. Not a test: it only prints. Thread: one. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/assert.h"
#include "sparse/table/capture.h"
#include "wire/partition.h"

#define DIM 16u
#define BATCH 4096u
#define BLOCK_BYTES ((uint64_t)256 << 10)

struct file_sink {
	struct wf_capture_sink base; /* first */
	int fd;
	uint64_t claimed, bytes;
	uint8_t block[2 * BLOCK_BYTES];
};

static void *
claim(struct wf_capture_sink *base, const struct wf_capture_block *block)
{
	struct file_sink *sink = (struct file_sink *)base;
	WF_ASSERT(block->bytes <= sizeof(sink->block));
	sink->claimed = block->bytes;
	return sink->block;
}

static void
add(struct wf_capture_sink *base)
{
	struct file_sink *sink = (struct file_sink *)base;
	WF_ASSERT(write(sink->fd, sink->block, sink->claimed) == (ssize_t)sink->claimed);
	sink->bytes += sink->claimed;
}

/* Keys 0, stride, 2 stride .. below `rows`. */
static void
push(struct wf_table *table, uint64_t rows, uint64_t stride, uint64_t *step)
{
	static uint64_t key[BATCH];
	static float grad[BATCH * DIM];
	for (uint64_t next = 0; next < rows;) {
		struct wf_table_batch batch = {.key = key, .grad = grad};
		for (; batch.count < BATCH && next < rows; next += stride) {
			grad[batch.count * DIM] = 1.0f;
			key[batch.count++] = next;
		}
		const struct wf_table_push one = {.step = ++*step,
						  .rate = 0.1,
						  .divisor = 1.0f,
						  .batch = &batch,
						  .batch_count = 1};
		WF_ASSERT(wf_table_push(table, &one) == WEFT_OK);
	}
}

static void
copy(struct wf_env *env, struct wf_capture *capture, struct file_sink *sink, uint64_t base)
{
	const uint64_t begin_ns = wf_now_ns(env);
	WF_ASSERT(ftruncate(sink->fd, 0) == 0 && lseek(sink->fd, 0, SEEK_SET) == 0);
	sink->bytes = 0;
	WF_ASSERT(wf_capture_begin(capture, base) == WEFT_OK);
	while (wf_capture_copy_some(capture, 1u << 20) == WF_CAPTURE_MORE) {
	}
	const uint64_t copied_ns = wf_now_ns(env);
	WF_ASSERT(fsync(sink->fd) == 0);
	printf("%-8s %12" PRIu64 " bytes, copied in %.3f s, synced in %.3f s\n",
	       base == 0 ? "complete" : "delta", sink->bytes, (double)(copied_ns - begin_ns) / 1e9,
	       (double)(wf_now_ns(env) - begin_ns) / 1e9);
}

int
main(int argc, char **argv)
{
	static struct file_sink sink = {.base = {claim, add}};
	const uint64_t rows = argc > 2 ? strtoull(argv[2], NULL, 0) : 1000000;
	const uint64_t changed = argc > 3 ? strtoull(argv[3], NULL, 0) : rows / 100;
	struct wf_env *env = NULL;
	struct wf_table *table = NULL;
	struct wf_capture *capture = NULL;
	uint64_t step = 0;
	struct wf_table_opts opts = {
		.dim = DIM,
		.entries_max = BATCH,
		.partition_count = WF_PARTITION_COUNT,
		.row = wf_row_defaults(),
		.admit = {.probability = 1.0},
	};
	opts.row.kind = WF_ROW_ADAGRAD;
	opts.row.set.learning_rate = 0.1;
	if (argc < 2 || rows == 0 || changed == 0 || changed > rows) {
		(void)fprintf(stderr, "table_copy_speed FILE [ROWS [CHANGED]]\n");
		return 64;
	}
	sink.fd = open(argv[1], O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	WF_ASSERT(sink.fd >= 0 && wf_env_system_create(WF_LOG_WARN, 2, &env) == WEFT_OK);
	WF_ASSERT(wf_table_create(env, &opts, &table) == WEFT_OK);
	const struct wf_capture_opts set = {
		.table = table, .sink = &sink.base, .block_bytes = BLOCK_BYTES, .has_deltas = true};
	WF_ASSERT(wf_capture_create(&set, &capture) == WEFT_OK);
	push(table, rows, 1, &step);
	for (unsigned i = 0; i < 3; i++) {
		const uint64_t base = step;
		copy(env, capture, &sink, 0);
		push(table, rows, rows / changed, &step);
		copy(env, capture, &sink, base);
	}
	wf_capture_destroy(capture);
	wf_table_destroy(table);
	wf_env_system_destroy(env);
	return close(sink.fd) == 0 && unlink(argv[1]) == 0 ? 0 : 74;
}
