/* SPDX-License-Identifier: Apache-2.0 */
/* bags: rows of keyed features for models with tables. A row has `slots` bags; a bag has any number
 * of entries, each a key (which row of a table) and a weight; in addition there are dense features
 * and a target. As in dataset.h the training rows come first, and every trainer reads the whole
 * file and selects its share by row number. Thread: read-only after loading; a batch belongs to the
 * thread that filled it. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/env.h"
#include "trainer/readers/text.h"

#define WF_SLOT_VALUE_BYTES_MAX 63u

struct wf_bags {
	uint32_t slots;    /* bags of a row */
	uint32_t features; /* columns of x; may be 0 */
	uint32_t classes;  /* y is one of 0..classes-1 */
	size_t rows;
	size_t train_rows; /* the first ones, once split: 0 < train_rows < rows */
	uint32_t *first;   /* [rows * slots + 1]: bag row * slots + slot has the entries
			      first[bag] .. first[bag + 1] - 1 */
	size_t entries;    /* of all bags */
	uint64_t *key;     /* [entries] */
	float *weight;     /* [entries] */
	float *x;          /* [rows, features] */
	float *y;          /* [rows] */

	size_t row_entries_max;        /* of the row that has most */
	size_t row_alloc, entry_alloc; /* as allocated */
};

/* Each reader returns WEFT_OK, and wf_bags_fini ends `out`; WEFT_DATA: file, line, column, value;
 * WEFT_IO; WEFT_NOMEM. All split 80/20 in file order. The *_parse functions read a text that is
 * already in memory, of any number of rows; they do not split it. README.md describes each format
 * and the use of its columns. */

/* birdstrikes.csv: 8 slots of one entry, 2 dense features; y is 1 where there was damage. */
enum weft_status wf_strikes_read(struct wf_env *env, const char *path,
				 struct wf_bags *out) WEFT_MUST_CHECK;
enum weft_status wf_strikes_parse(struct wf_env *env, const struct wf_text *text,
				  struct wf_bags *out) WEFT_MUST_CHECK;
/* Criteo's TSV: 26 slots of one entry, 26 dense features; y is the label. */
enum weft_status wf_criteo_read(struct wf_env *env, const char *path,
				struct wf_bags *out) WEFT_MUST_CHECK;
enum weft_status wf_criteo_parse(struct wf_env *env, const struct wf_text *text,
				 struct wf_bags *out) WEFT_MUST_CHECK;
/* LIBSVM with two classes: 1 slot with any number of entries, no dense features; y is 1 for the
 * label +1, 0 for -1 or 0. Keys are the file's indices themselves. */
enum weft_status wf_libsvm_read(struct wf_env *env, const char *path,
				struct wf_bags *out) WEFT_MUST_CHECK;
enum weft_status wf_libsvm_parse(struct wf_env *env, const struct wf_text *text,
				 struct wf_bags *out) WEFT_MUST_CHECK;
/* Splits the rows of a set. WEFT_DATA: `path` has too few. */
enum weft_status wf_bags_split(const char *path, struct wf_bags *bags) WEFT_MUST_CHECK;
void wf_bags_fini(struct wf_env *env, struct wf_bags *bags); /* accepts a zeroed one */

/* Key of a value in a slot: the digest (base/digest.h) of the slot as u64 and the value as a
 * string. At most WF_SLOT_VALUE_BYTES_MAX bytes; a missing value is the empty one. */
uint64_t wf_slot_key(uint32_t slot, const char *value, size_t bytes);

/* Rows put together for one computation. */
struct wf_bag_batch {
	uint32_t slots, features;
	size_t rows;     /* in it now */
	uint32_t *first; /* [rows * slots + 1] */
	uint64_t *key;   /* [first[rows * slots]] */
	float *weight;   /* [first[rows * slots]] */
	float *x;        /* [rows, features] */
	float *y;        /* [rows] */

	size_t rows_max, entries_max; /* as allocated */
};

struct wf_bag_batch_opts {
	uint32_t slots, features; /* 0 slots: dense rows, no entries */
	size_t rows_max;          /* of a batch; >= 1 */
	size_t row_entries_max;   /* of a row */
};

/* WEFT_NOMEM */
enum weft_status wf_bag_batch_init(struct wf_env *env, const struct wf_bag_batch_opts *opts,
				   struct wf_bag_batch *out) WEFT_MUST_CHECK;
void wf_bag_batch_fini(struct wf_env *env, struct wf_bag_batch *batch); /* accepts a zeroed one */
/* Copies `count` rows, given by number, into a batch made for this set. */
void wf_bags_gather(const struct wf_bags *bags, const uint32_t *row, size_t count,
		    struct wf_bag_batch *batch);
