/* SPDX-License-Identifier: Apache-2.0 */
/* Files of MNIST's format. A header is trusted only as far as a file of that size can hold what it
 * announces. Thread: the caller's. */
#include "trainer/readers/idx.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "trainer/readers/input.h"

#define TYPE_U8 0x08u

static enum weft_status
refuse(const char *path, const char *what)
{
	return wf_fail(WEFT_DATA, "%s: %s", path, what);
}

/* Exactly `count` bytes. */
static enum weft_status
read_bytes(struct wf_input *input, const char *path, void *bytes, size_t count)
{
	size_t got = 0;

	enum weft_status st = wf_input_read(input, bytes, count, &got);
	if (st == WEFT_OK && got < count) {
		return refuse(path, "ends too early: it is truncated");
	}
	return st;
}

/* No bytes are left, and the checksum of a packed file is right. */
static enum weft_status
read_end(struct wf_input *input, const char *path)
{
	uint8_t more;
	size_t got = 0;

	enum weft_status st = wf_input_read(input, &more, 1, &got);
	if (st == WEFT_OK && got > 0) {
		return refuse(path, "has more bytes than its header gives");
	}
	return st;
}

static enum weft_status
read_header(struct wf_input *input, const char *path, unsigned dims, struct wf_idx *out)
{
	uint8_t head[4 + 4 * WF_IDX_DIMS_MAX];
	uint64_t count = 1;

	enum weft_status st = read_bytes(input, path, head, 4 + 4 * (size_t)dims);
	if (st != WEFT_OK) {
		return st;
	}
	if (head[0] != 0 || head[1] != 0 || head[2] != TYPE_U8 || head[3] != dims) {
		return wf_fail(WEFT_DATA,
			       "%s: begins with %02x %02x %02x %02x; an idx file of bytes in %u "
			       "dimensions begins with 00 00 08 %02x",
			       path, head[0], head[1], head[2], head[3], dims, dims);
	}
	for (unsigned i = 0; i < dims; i++) {
		const uint8_t *at = head + 4 + 4 * (size_t)i;
		out->dim[i] = (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 |
			      at[3];
		count *= out->dim[i];
		if (count == 0 || count > WF_IDX_BYTES_MAX) {
			return wf_fail(WEFT_DATA, "%s: its header gives 0 bytes, or more than %u",
				       path, WF_IDX_BYTES_MAX);
		}
	}
	if (count > wf_input_bytes_max(input)) {
		return refuse(
			path,
			"its header gives more bytes than it can hold: it is truncated or damaged");
	}
	out->dims = dims;
	out->count = (size_t)count;
	return WEFT_OK;
}

static enum weft_status
read_file(struct wf_env *env, struct wf_input *input, const char *path, unsigned dims,
	  struct wf_idx *out)
{
	struct wf_idx idx = {0};

	enum weft_status st = read_header(input, path, dims, &idx);
	if (st != WEFT_OK) {
		return st;
	}
	idx.byte = wf_zalloc(env, idx.count);
	if (idx.byte == NULL) {
		return wf_fail(WEFT_NOMEM, "%s: %zu bytes", path, idx.count);
	}
	st = read_bytes(input, path, idx.byte, idx.count);
	if (st == WEFT_OK) {
		st = read_end(input, path);
	}
	if (st != WEFT_OK) {
		wf_idx_fini(env, &idx);
		return st;
	}
	*out = idx;
	return WEFT_OK;
}

enum weft_status
wf_idx_read(struct wf_env *env, const char *path, unsigned dims, struct wf_idx *out)
{
	struct wf_input *input;

	WF_ASSERT(dims >= 1 && dims <= WF_IDX_DIMS_MAX);
	enum weft_status st = wf_input_open(env, path, &input);
	if (st != WEFT_OK) {
		return st;
	}
	st = read_file(env, input, path, dims, out);
	wf_input_close(input);
	return st;
}

void
wf_idx_fini(struct wf_env *env, struct wf_idx *idx)
{
	wf_free(env, idx->byte, idx->count);
	*idx = (struct wf_idx){0};
}

/* folder/name, or folder/name.gz if that exists. `out` is [WF_DATA_PATH_BYTES]. */
static enum weft_status
find_file(const char *folder, const char *name, char *out)
{
	int bytes = snprintf(out, WF_DATA_PATH_BYTES, "%s/%s.gz", folder, name);

	if (bytes < 0 || bytes >= (int)WF_DATA_PATH_BYTES) {
		return wf_fail(WEFT_INVALID, "%.60s...: longer than %u bytes", folder,
			       WF_DATA_PATH_BYTES - 1);
	}
	if (access(out, F_OK) != 0) {
		out[bytes - 3] = '\0';
	}
	if (access(out, F_OK) == 0) {
		return WEFT_OK;
	}
	return errno == ENOENT || errno == ENOTDIR
		       ? wf_fail(WEFT_DATA, "%s: no such file, with .gz or without", out)
		       : wf_fail_errno(WEFT_IO, errno, "%s: cannot be looked for", out);
}

/* Images and labels of one half, as many of either. */
struct half {
	struct wf_idx image, label;
};

static enum weft_status
read_half(struct wf_env *env, const char *folder, const char *prefix, struct half *out)
{
	char name[64];
	char path[WF_DATA_PATH_BYTES];

	snprintf(name, sizeof(name), "%s-images-idx3-ubyte", prefix);
	enum weft_status st = find_file(folder, name, path);
	if (st == WEFT_OK) {
		st = wf_idx_read(env, path, 3, &out->image);
	}
	snprintf(name, sizeof(name), "%s-labels-idx1-ubyte", prefix);
	if (st == WEFT_OK) {
		st = find_file(folder, name, path);
	}
	if (st == WEFT_OK) {
		st = wf_idx_read(env, path, 1, &out->label);
	}
	if (st == WEFT_OK && out->image.dim[0] != out->label.dim[0]) {
		st = wf_fail(WEFT_DATA, "%s: has %" PRIu32 " labels for %" PRIu32 " images", path,
			     out->label.dim[0], out->image.dim[0]);
	}
	return st;
}

/* Classes are 0 .. the largest label that is trained on. */
static enum weft_status
count_classes(const char *folder, const struct half *train, const struct half *test, uint32_t *out)
{
	uint32_t classes = 2;

	for (size_t i = 0; i < train->label.count; i++) {
		const uint32_t label = train->label.byte[i];
		classes = label >= classes ? label + 1 : classes;
	}
	for (size_t i = 0; i < test->label.count; i++) {
		if (test->label.byte[i] >= classes) {
			return wf_fail(WEFT_DATA,
				       "%s: label %u of test image %zu is not one of the training "
				       "labels, 0..%" PRIu32,
				       folder, test->label.byte[i], i, classes - 1);
		}
	}
	*out = classes;
	return WEFT_OK;
}

static void
copy_half(const struct half *half, size_t first, struct wf_dataset *dataset)
{
	memcpy(dataset->pixel + first * dataset->features, half->image.byte, half->image.count);
	for (size_t i = 0; i < half->label.count; i++) {
		dataset->y[first + i] = (float)half->label.byte[i];
	}
}

static enum weft_status
join(struct wf_env *env, const char *folder, const struct half half[2], struct wf_dataset *out)
{
	const struct wf_idx *train = &half[0].image;
	const struct wf_idx *test = &half[1].image;
	struct wf_dataset dataset = {
		.features = train->dim[1] * train->dim[2],
		.rows = (size_t)train->dim[0] + test->dim[0],
		.train_rows = train->dim[0],
	};

	if (train->dim[1] != test->dim[1] || train->dim[2] != test->dim[2]) {
		return wf_fail(WEFT_DATA,
			       "%s: the training images have %" PRIu32 " x %" PRIu32
			       " pixels, the test images %" PRIu32 " x %" PRIu32,
			       folder, train->dim[1], train->dim[2], test->dim[1], test->dim[2]);
	}
	enum weft_status st = count_classes(folder, &half[0], &half[1], &dataset.classes);
	if (st != WEFT_OK) {
		return st;
	}
	dataset.pixel = wf_zalloc_array(env, dataset.rows, dataset.features);
	dataset.y = wf_zalloc_array(env, dataset.rows, sizeof(float));
	if (dataset.pixel == NULL || dataset.y == NULL) {
		wf_dataset_fini(env, &dataset);
		return wf_fail(WEFT_NOMEM, "%s: %zu images", folder, dataset.rows);
	}
	copy_half(&half[0], 0, &dataset);
	copy_half(&half[1], dataset.train_rows, &dataset);
	*out = dataset;
	return WEFT_OK;
}

enum weft_status
wf_images_read(struct wf_env *env, const char *folder, struct wf_dataset *out)
{
	struct half half[2] = {0};

	enum weft_status st = read_half(env, folder, "train", &half[0]);
	if (st == WEFT_OK) {
		st = read_half(env, folder, "t10k", &half[1]);
	}
	if (st == WEFT_OK) {
		st = join(env, folder, half, out);
	}
	for (unsigned i = 0; i < 2; i++) {
		wf_idx_fini(env, &half[i].image);
		wf_idx_fini(env, &half[i].label);
	}
	return st;
}
