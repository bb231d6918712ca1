/* SPDX-License-Identifier: Apache-2.0 */
/* arrays: an opened save as a list of named arrays, which is what other formats are made of.
 * Private to this folder. Thread: the caller's.
 *
 * A tensor is NAME, and NAME.state0, NAME.state1. A table is NAME.keys, NAME.values, and with state
 * NAME.state, NAME.stamp, NAME.born, NAME.show, NAME.click: one row each for a row of the table, in
 * the same order. What a pass keeps aside is an array of its own name. Names are those of tensors,
 * not of files: any bytes. */
#pragma once

#include "saved/internal.h"

#define WF_ARRAY_NAME_BYTES (WF_SAVED_NAME_BYTES + 16u)

enum wf_array_source {
	WF_ARRAY_OF_TENSOR,
	WF_ARRAY_OF_TABLE,
	WF_ARRAY_ASIDE,
};

struct wf_saved_array {
	char name[WF_ARRAY_NAME_BYTES];
	enum wf_array_type type;
	char shape[WF_SHAPE_TEXT_BYTES];
	uint64_t count; /* of its elements */
	enum wf_array_source source;
	uint32_t idx;   /* of the tensor, table or array aside */
	unsigned field; /* which of its arrays */
};

struct wf_array_cursor {
	uint32_t idx; /* tensors, then tables, then arrays aside */
	unsigned field;
};

/* The array at the cursor (zeroed at first), which moves on. false: there are no more. */
bool wf_arrays_next(const struct wf_saved *saved, bool with_state, struct wf_array_cursor *cursor,
		    struct wf_saved_array *out);
/* WEFT_DATA: two arrays have one name. */
enum weft_status wf_arrays_check(const struct wf_saved *saved) WEFT_MUST_CHECK;
/* How many bytes the name of the table has, of whose state the array of this name is: 1 for
 * "t.stamp"; 0: it has another ending. */
size_t wf_array_state_owner(const char *name, size_t bytes);
uint64_t wf_array_bytes(const struct wf_saved_array *array);
/* Appends its bytes to `to`, little-endian, row by row. WEFT_DATA; WEFT_IO; WEFT_NOMEM */
enum weft_status wf_array_write(const struct wf_saved *saved, const struct wf_saved_array *array,
				struct wf_saved_file *to) WEFT_MUST_CHECK;

/* The destination of an export: it is created under a name beside it that is not in use, then
 * renamed. */
struct wf_export_place {
	const struct wf_saved_calls *calls;
	int folder;       /* open; files are created and renamed in it, whatever becomes of its path
			   * */
	const char *path; /* lent */
	const char *name; /* the last one of `path` */
	const char *made; /* the last one of `temporary` */
	char temporary[WF_SAVED_PATH_BYTES]; /* folder/.name.tmp-0123456789abcdef */
};

/* WEFT_INVALID: the path; WEFT_IO: its folder. Ends with wf_export_close. */
enum weft_status wf_export_open(const struct wf_saved *saved, const char *path,
				struct wf_export_place *out) WEFT_MUST_CHECK;
/* Renames the finished file to its final name. WEFT_IO */
enum weft_status wf_export_rename(const struct wf_export_place *place) WEFT_MUST_CHECK;
void wf_export_close(struct wf_export_place *place);
/* Creates the file `path` by `write`: it appears whole or not at all. */
typedef enum weft_status wf_export_fn(const struct wf_saved *saved, bool with_state,
				      struct wf_saved_file *to);
enum weft_status wf_export(const struct wf_saved *saved, bool with_state, const char *path,
			   wf_export_fn *write) WEFT_MUST_CHECK;
