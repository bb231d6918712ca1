/* SPDX-License-Identifier: Apache-2.0 */
/* import: models in files of other programs, and saves of weft, as a list of named arrays: the
 * original's parameter files and its tar of them, NumPy's npy and npz, safetensors. Such files
 * are not trusted: sizes are checked against that of the file, and anything that does not follow
 * the format is refused with file, array and reason.
 *
 * Thread: any, one at a time for each import. Blocks on the disk. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/options.h"
#include "base/shape.h"
#include "saved/saved.h"

#define WF_IMPORT_ARRAYS_MAX 65536u

enum wf_import_format {
	WF_IMPORT_AUTO, /* by its contents */
	WF_IMPORT_PASS, /* a save of weft, or a snapshot of pservers */
	WF_IMPORT_PADDLE,
	WF_IMPORT_TAR,
	WF_IMPORT_NPZ,
	WF_IMPORT_NPY,
	WF_IMPORT_SAFETENSORS,
};

/* An array of more than two dimensions has its first one as rows, all others together as columns;
 * one of one dimension has one column, and a scalar one row, too. An empty one has no row. */
struct wf_import_array {
	char name[WF_SAVED_NAME_BYTES]; /* of its file in a save: saved/names.h */
	enum wf_array_type type;
	uint64_t rows;
	uint64_t cols; /* 0: the shape is not known, `rows` is the number of values */
	char shape[WF_SHAPE_TEXT_BYTES]; /* base/shape.h; "": all that is known are rows and cols */
	const char *objection;           /* why it cannot be read; NULL: it can */
};

/* What to do about tensors of a model that are not in the file. */
enum wf_import_missing {
	WF_IMPORT_MISSING_FAIL,
	WF_IMPORT_MISSING_RAND, /* they keep the values that they have */
	WF_IMPORT_MISSING_ZERO,
};

struct wf_import;

/* "auto", "pass", "paddle", "tar", "npz", "npy", "safetensors". WEFT_INVALID */
enum weft_status wf_import_format_parse(const char *name,
					enum wf_import_format *out) WEFT_MUST_CHECK;
const char *wf_import_format_name(enum wf_import_format format);
/* "fail", "rand", "zero", as the original's load_missing_parameter_strategy. WEFT_INVALID */
enum weft_status wf_import_missing_parse(const char *name,
					 enum wf_import_missing *out) WEFT_MUST_CHECK;

/**
 * Lists the arrays at `path`: a file, or a folder of parameter files or of a save.
 * @param out ends with wf_import_close
 * @return WEFT_OK; WEFT_DATA: file and what is wrong with it; WEFT_IO: file and the system's
 *         reason; WEFT_INVALID: the path is empty or too long; WEFT_NOMEM
 */
enum weft_status wf_import_open(struct wf_env *env, const struct wf_saved_calls *calls,
				const char *path, enum wf_import_format format,
				struct wf_import **out) WEFT_MUST_CHECK;
void wf_import_close(struct wf_import *import); /* accepts NULL */
/* The format that was found; never WF_IMPORT_AUTO. */
enum wf_import_format wf_import_format_of(const struct wf_import *import);
uint32_t wf_import_count(const struct wf_import *import);
/* Names ascend. Lent until close. */
const struct wf_import_array *wf_import_at(const struct wf_import *import, uint32_t idx);
/* The save of weft that it is; NULL: it is something else. Lent until close. */
const struct wf_saved *wf_import_saved(const struct wf_import *import);
/* The number of tables that a save of weft has beside its arrays. */
uint32_t wf_import_table_count(const struct wf_import *import);
/* Reads array `idx` into value [rows, cols], row-major. Floats of 64 bits are rounded to the
 * nearest of 32. WEFT_DATA: array and reason, as one that is not of floats; `value` may have been
 * written; WEFT_IO; WEFT_NOMEM */
enum weft_status wf_import_read(struct wf_import *import, uint32_t idx,
				float *value) WEFT_MUST_CHECK;
/* Reads its elements as they are, of its type, little-endian, row-major. As above. */
enum weft_status wf_import_read_raw(struct wf_import *import, uint32_t idx,
				    void *bytes) WEFT_MUST_CHECK;

/* The result of a load. */
struct wf_import_load {
	uint32_t missing_count; /* tensors of the model that are not in the file */
	const char *missing;    /* the first of them; lent by the caller's tensors */
	uint32_t unused_count;  /* arrays of the file that are no tensors of the model */
	const char *unused;     /* the first of them; lent until close */
};

/**
 * Fills a model's values; states are ignored. Arrays have the shape of their tensor; a row
 * goes into a column and the other way round, and of the original's files the count alone is known.
 * @return WEFT_OK; WEFT_DATA: the tensor, and both shapes if that is it; all of them are looked at
 *         before any value is written; WEFT_IO; WEFT_NOMEM
 */
enum weft_status wf_import_load(struct wf_import *import, const struct wf_saved_tensor *tensor,
				uint32_t tensor_count, enum wf_import_missing missing,
				struct wf_import_load *out) WEFT_MUST_CHECK;

struct wf_import_save {
	const char *version; /* of the weft that writes it */
	uint64_t pass;
	const char *like; /* a save whose tensors give arrays their shapes; NULL: none */
	/* Patterns of names, as fnmatch(3) has them, where `*` is any text. Arrays are left out
	 * that fit none of `only`, if there are any, or one of `skip`. */
	const struct wf_option_list *only, *skip; /* NULL: none */
	bool converts; /* floats of 16 and 64 bits become tensors too; else they are kept aside */
};
struct wf_import_saved {
	uint32_t tensor_count;
	uint64_t value_count;
	uint32_t aside_count;   /* arrays that are kept as they are */
	uint32_t skipped_count; /* arrays that the patterns leave out */
	uint32_t state_count;   /* arrays NAME.state0 and so on that were left out */
};

/**
 * Saves the values: no optimizer's state, step 0. That pass must not exist. Arrays of f32 become
 * tensors; those of other types, and empty ones, are kept aside, bit for bit.
 * @return as of wf_saved_write; WEFT_DATA: an array that cannot be read, or does not have the shape
 *         of its namesake in `like`; WEFT_INVALID: the pass exists, or a pattern fits no name
 */
enum weft_status wf_import_save(struct wf_import *import, const struct wf_saved_place *place,
				const struct wf_import_save *opts,
				struct wf_import_saved *out) WEFT_MUST_CHECK;
