/* SPDX-License-Identifier: Apache-2.0 */
/* idx: arrays of bytes as MNIST's files have them: two zero bytes, type 0x08, number of dimensions,
 * each of these as a big-endian u32, the bytes; packed (input.h) or not. Files are held to that to
 * the byte. Thread: any. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/env.h"
#include "trainer/readers/dataset.h"

#define WF_IDX_DIMS_MAX 3u
#define WF_IDX_BYTES_MAX (256u << 20) /* of a file, unpacked */

/* Where Debian's dataset-fashion-mnist puts its files. */
#define WF_IDX_FASHION_MNIST "/usr/share/datasets/fashion-mnist"

struct wf_idx {
	unsigned dims;
	uint32_t dim[WF_IDX_DIMS_MAX];
	uint8_t *byte; /* [the product of dim] */
	size_t count;
};

/**
 * Reads a file.
 * @param dims the expected dimensions
 * @param out ends with wf_idx_fini
 * @return WEFT_OK; WEFT_DATA: file and what is wrong with it; WEFT_IO: file and the system's
 * reason; WEFT_NOMEM
 */
enum weft_status wf_idx_read(struct wf_env *env, const char *path, unsigned dims,
			     struct wf_idx *out) WEFT_MUST_CHECK;
void wf_idx_fini(struct wf_env *env, struct wf_idx *idx); /* accepts a zeroed one */

/* Images and their classes: the files train-images-idx3-ubyte, train-labels-idx1-ubyte,
 * t10k-images-idx3-ubyte and t10k-labels-idx1-ubyte of a folder, or these with ".gz". The first two
 * are trained on, the others tested with; pixels are divided by 255. As the readers of dataset.h.
 */
enum weft_status wf_images_read(struct wf_env *env, const char *folder,
				struct wf_dataset *out) WEFT_MUST_CHECK;
