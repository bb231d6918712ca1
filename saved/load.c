/* SPDX-License-Identifier: Apache-2.0 */
/* load: an opened save into a model's arrays, and its tables for whoever reads their rows. Thread:
 * the caller's. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "saved/internal.h"

static int
compare_entry(const void *name, const void *entry)
{
	return strcmp(name, ((const struct wf_manifest_tensor *)entry)->name);
}

/* The save's tensor of a model's name; NULL: there is none. Saves have names of files, or, older
 * ones, what looked like one. */
static const struct wf_manifest_tensor *
find_tensor(const struct wf_saved *saved, const char *name)
{
	const struct wf_manifest *manifest = &saved->manifest;
	const struct wf_manifest_tensor *found = NULL;
	char file[WF_SAVED_NAME_BYTES];

	if (manifest->tensor_count == 0) {
		return NULL;
	}
	found = bsearch(name, manifest->tensor, manifest->tensor_count, sizeof(*found),
			compare_entry);
	if (found == NULL && wf_saved_name_settle(name, file) == WEFT_OK) {
		found = bsearch(file, manifest->tensor, manifest->tensor_count, sizeof(*found),
				compare_entry);
	}
	return found;
}

/* Rows and columns, and shapes where both are known. */
static enum weft_status
compare_shapes(const struct wf_saved *saved, const struct wf_manifest_tensor *entry,
	       const struct wf_saved_tensor *tensor)
{
	const uint64_t count = entry->rows * entry->cols;

	if (wf_saved_is_flat(saved, (uint32_t)(entry - saved->manifest.tensor)) &&
	    count == tensor->rows * tensor->cols) {
		return WEFT_OK;
	}
	if (entry->rows != tensor->rows || entry->cols != tensor->cols) {
		return wf_fail(WEFT_DATA,
			       "%s: tensor %s is %" PRIu64 " x %" PRIu64
			       "; this model has it %" PRIu64 " x %" PRIu64,
			       saved->path, tensor->name, entry->rows, entry->cols, tensor->rows,
			       tensor->cols);
	}
	if (wf_saved_has_shape(tensor) && entry->shape[0] != '\0' &&
	    strcmp(tensor->shape, entry->shape) != 0) {
		return wf_fail(WEFT_DATA, "%s: tensor %s has the shape %s; this model has it as %s",
			       saved->path, tensor->name, entry->shape, tensor->shape);
	}
	return WEFT_OK;
}

/* The save's tensor of that name; `*out` is its place. */
static enum weft_status
match(const struct wf_saved *saved, const struct wf_saved_tensor *tensor, bool with_state,
      uint32_t *out)
{
	const struct wf_manifest_tensor *entry = find_tensor(saved, tensor->name);

	if (entry == NULL) {
		return wf_fail(WEFT_DATA, "%s: tensor %s of this model is missing", saved->path,
			       tensor->name);
	}
	enum weft_status st = compare_shapes(saved, entry, tensor);
	if (st != WEFT_OK) {
		return st;
	}
	if (with_state && entry->state_count != tensor->state_count) {
		return wf_fail(WEFT_DATA,
			       "%s: tensor %s has %u state arrays; this optimizer has %u",
			       saved->path, tensor->name, entry->state_count, tensor->state_count);
	}
	*out = (uint32_t)(entry - saved->manifest.tensor);
	return WEFT_OK;
}

/* Names of a model are unique, so equal numbers of tensors and all found means the same ones. */
static enum weft_status
match_all(const struct wf_saved *saved, const struct wf_saved_tensor *tensor, uint32_t tensor_count,
	  bool with_state)
{
	uint32_t idx = 0;

	for (uint32_t i = 0; i < tensor_count; i++) {
		enum weft_status st = match(saved, &tensor[i], with_state, &idx);
		if (st != WEFT_OK) {
			return st;
		}
	}
	if (saved->manifest.tensor_count != tensor_count) {
		return wf_fail(WEFT_DATA, "%s: has %u tensors; this model has %u", saved->path,
			       saved->manifest.tensor_count, tensor_count);
	}
	return WEFT_OK;
}

static enum weft_status
load_tensor(const struct wf_saved *saved, const struct wf_saved_tensor *tensor, bool with_state)
{
	uint32_t idx = 0;

	enum weft_status st = match(saved, tensor, with_state, &idx);
	for (unsigned a = 0; st == WEFT_OK && a < 1 + (with_state ? tensor->state_count : 0); a++) {
		const struct wf_tensor_target to = {.value = a == 0 ? tensor->value
								    : tensor->state[a - 1]};
		st = wf_saved_read_tensor(saved, idx, a, &to);
	}
	return st;
}

enum weft_status
wf_saved_load(const struct wf_saved *saved, const struct wf_saved_tensor *tensor,
	      uint32_t tensor_count, bool with_state)
{
	enum weft_status st = match_all(saved, tensor, tensor_count, with_state);

	for (uint32_t i = 0; st == WEFT_OK && i < tensor_count; i++) {
		st = load_tensor(saved, &tensor[i], with_state);
	}
	return st;
}

uint32_t
wf_saved_table_count(const struct wf_saved *saved)
{
	return saved->manifest.table_count;
}

uint32_t
wf_saved_aside_count(const struct wf_saved *saved)
{
	return saved->manifest.aside_count;
}

/* The index of the table of that name; the number of tables if there is none. */
static uint32_t
find_table(const struct wf_saved *saved, const char *name)
{
	char file[WF_SAVED_NAME_BYTES];
	const bool has_file = wf_saved_name_settle(name, file) == WEFT_OK;
	uint32_t idx = 0;

	for (; idx < saved->manifest.table_count; idx++) {
		const char *own = saved->manifest.table[idx].name;
		if (strcmp(own, name) == 0 || (has_file && strcmp(own, file) == 0)) {
			break;
		}
	}
	return idx;
}

static enum weft_status
compare_heads(const struct wf_saved_table *table, const struct wf_rows_head *is)
{
	const struct wf_rows_head *want = &table->head;

	if (table->optimizer == NULL) {
		if (is->shape.dim == want->shape.dim && is->vocabulary == want->vocabulary) {
			return WEFT_OK;
		}
		return wf_fail(WEFT_DATA,
			       "table %s was saved with %" PRIu32 " values, vocabulary %" PRIu64
			       "; this one has %" PRIu32 ", %" PRIu64,
			       table->name, is->shape.dim, is->vocabulary, want->shape.dim,
			       want->vocabulary);
	}
	if (is->shape.dim != want->shape.dim ||
	    is->shape.state_floats != want->shape.state_floats ||
	    is->shape.has_score != want->shape.has_score || is->vocabulary != want->vocabulary ||
	    is->counter_count != want->counter_count) {
		return wf_fail(WEFT_DATA,
			       "table %s was saved with %" PRIu32 " values, %" PRIu32
			       " floats of state, scores %d, vocabulary %" PRIu64 ", %" PRIu32
			       " counters; this one has %" PRIu32 ", %" PRIu32 ", %d, %" PRIu64
			       ", %" PRIu32,
			       table->name, is->shape.dim, is->shape.state_floats,
			       is->shape.has_score, is->vocabulary, is->counter_count,
			       want->shape.dim, want->shape.state_floats, want->shape.has_score,
			       want->vocabulary, want->counter_count);
	}
	return WEFT_OK;
}

static enum weft_status
open_rows(const struct wf_saved *saved, const struct wf_saved_table *table, uint32_t idx,
	  struct wf_rows_reader **out)
{
	struct wf_rows_reader *rows = NULL;
	enum weft_status st = wf_saved_open_rows(saved, idx, &rows);

	if (st == WEFT_OK) {
		st = compare_heads(table, wf_rows_head(rows));
	}
	if (st != WEFT_OK) {
		wf_rows_close(rows);
		return st;
	}
	*out = rows;
	return WEFT_OK;
}

enum weft_status
wf_saved_open_table(const struct wf_saved *saved, const struct wf_saved_table *table,
		    struct wf_rows_reader **out)
{
	const uint32_t idx = find_table(saved, table->name);

	if (idx == saved->manifest.table_count) {
		return wf_fail(WEFT_DATA, "%s: table %s of this model is missing", saved->path,
			       table->name);
	}
	const struct wf_manifest_table *entry = &saved->manifest.table[idx];
	if (table->optimizer != NULL && strcmp(entry->optimizer, table->optimizer) != 0) {
		return wf_fail(WEFT_DATA, "%s: table %s has the state of %s; this model's is %s",
			       saved->path, table->name, entry->optimizer, table->optimizer);
	}
	return open_rows(saved, table, idx, out);
}
