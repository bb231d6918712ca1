/* SPDX-License-Identifier: Apache-2.0 */
/* import_internal: what import.c and the readers of formats share. Private to this folder. Thread:
 * the caller's. */
#pragma once

#include "saved/import.h"
#include "saved/internal.h"

/* Where an array's values are. */
struct wf_import_entry {
	struct wf_import_array array;
	bool is_by_columns; /* the first index runs fastest, as Fortran has it */
	bool is_big_endian;
	bool is_deflated;
	bool has_crc;
	bool is_shape;    /* no array: `array` has the shape of the one of this name */
	bool is_renamed;  /* its name in the file is longer, or cannot be that of a tensor */
	uint32_t zip_crc; /* of everything unpacked */
	uint64_t at;      /* of the first stored byte */
	uint64_t stored_bytes;
	uint64_t skip_bytes; /* in front of the values, unpacked */
	uint32_t idx;        /* WF_IMPORT_PASS: of the save's tensor, or of its array aside */
	bool is_aside;       /* WF_IMPORT_PASS */
};

struct wf_import {
	struct wf_env *env;
	const struct wf_saved_calls *calls;
	enum wf_import_format format;
	char path[WF_SAVED_PATH_BYTES];
	bool is_folder;            /* of files that have an array each */
	struct wf_saved_file file; /* else: the one file, open */
	struct wf_saved *saved;    /* WF_IMPORT_PASS */
	struct wf_import_entry
		*entry; /* [entry_count] of [entry_room]; sorted at the end of open */
	uint32_t entry_count, entry_room;
};

/* A shape on its way. */
struct wf_import_shape {
	struct wf_shape shape;
	bool is_bad; /* too many dimensions, or more values than a file can have */
};

/* import_list.c */
uint64_t wf_import_shape_rows(const struct wf_import_shape *shape); /* of one that is not bad */
uint64_t wf_import_shape_cols(const struct wf_import_shape *shape);
void wf_import_shape_add(struct wf_import_shape *shape, uint64_t dim);
/* Into the entry, with its objection if there is one. */
void wf_import_shape_apply(const struct wf_import_shape *shape, struct wf_import_entry *entry);
/* The number of elements; of an entry without objection. */
uint64_t wf_import_elements(const struct wf_import_entry *entry);
/* Whether the entry's values take so many bytes. */
bool wf_import_takes_bytes(const struct wf_import_entry *entry, uint64_t bytes);
/* Adds an entry under a name of any bytes, not terminated. WEFT_DATA: too many; WEFT_NOMEM */
enum weft_status wf_import_add(struct wf_import *import, const struct wf_import_entry *entry,
			       const char *name, size_t name_bytes) WEFT_MUST_CHECK;
/* The same for the name of a file, which is decoded first. */
enum weft_status wf_import_add_file(struct wf_import *import, const struct wf_import_entry *entry,
				    const char *name, size_t name_bytes) WEFT_MUST_CHECK;
/* Reads the header of a parameter file, "i32 0, u32 4, u64 count", which describes the `bytes` from
 * `at` on; a file without one gets an objection. WEFT_IO */
enum weft_status wf_import_parameter(struct wf_saved_file *file, uint64_t at, uint64_t bytes,
				     struct wf_import_entry *out) WEFT_MUST_CHECK;

/* The array of a tensor's name, or NULL. */
const struct wf_import_entry *wf_import_find(const struct wf_import *import, const char *name);

/* Lists the arrays. WEFT_DATA, WEFT_IO, WEFT_NOMEM */
enum weft_status wf_import_list_npy(struct wf_import *import) WEFT_MUST_CHECK;
enum weft_status wf_import_list_npz(struct wf_import *import) WEFT_MUST_CHECK;
enum weft_status wf_import_list_parameters(struct wf_import *import) WEFT_MUST_CHECK;
enum weft_status wf_import_list_pass(struct wf_import *import) WEFT_MUST_CHECK;
enum weft_status wf_import_list_safetensors(struct wf_import *import) WEFT_MUST_CHECK;
enum weft_status wf_import_list_tar(struct wf_import *import) WEFT_MUST_CHECK;
