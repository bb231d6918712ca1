/* SPDX-License-Identifier: Apache-2.0 */
/* An import as a save of weft: all values are in memory, then written like any pass. Thread: the
 * caller's. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "trainer/saved/directory.h"
#include "trainer/saved/import_internal.h"

struct saving {
	struct wf_import *import;
	struct wf_env *env;
	const struct wf_import_save *opts;
	struct wf_import *like;         /* NULL: none */
	struct wf_saved_tensor *tensor; /* [count] */
	uint32_t count;                 /* arrays of the import */
	uint32_t kept;                  /* of them, tensors */
	struct wf_import_saved saved;
};

/* NAME.state0 of a NAME that exists too. */
static bool
is_state(const struct wf_import *import, const char *name)
{
	static const char mark[] = ".state";
	const char *at = strstr(name, mark);
	char owner[WF_SAVED_NAME_BYTES];

	if (at == NULL || at[sizeof(mark) - 1] < '0' || at[sizeof(mark) - 1] > '9' ||
	    at[sizeof(mark)] != '\0') {
		return false;
	}
	snprintf(owner, sizeof(owner), "%.*s", (int)(at - name), name);
	return wf_import_find(import, owner) != NULL;
}

/* The shape of the namesake in `like`, which must have as many values. */
static enum weft_status
apply_like(const struct saving *saving, struct wf_saved_tensor *tensor)
{
	const struct wf_import_entry *entry =
		saving->like == NULL ? NULL : wf_import_find(saving->like, tensor->name);

	if (entry == NULL) {
		return WEFT_OK;
	}
	const struct wf_import_array *array = &entry->array;
	if (array->rows * array->cols != tensor->rows * tensor->cols) {
		return wf_fail(WEFT_DATA,
			       "%s: %s is %" PRIu64 " x %" PRIu64 "; %s has it %" PRIu64
			       " x %" PRIu64,
			       saving->import->path, tensor->name, tensor->rows, tensor->cols,
			       saving->opts->like, array->rows, array->cols);
	}
	tensor->rows = array->rows;
	tensor->cols = array->cols;
	tensor->shape = array->shape;
	return WEFT_OK;
}

static enum weft_status
add_array(struct saving *saving, uint32_t idx)
{
	const struct wf_import_array *array = wf_import_at(saving->import, idx);
	struct wf_saved_tensor *tensor = &saving->tensor[saving->kept];

	if (is_state(saving->import, array->name)) {
		saving->saved.state_count++;
		return WEFT_OK;
	}
	if (array->objection != NULL) {
		return wf_fail(WEFT_DATA, "%s: %s %s", saving->import->path, array->name,
			       array->objection);
	}
	if (wf_saved_check_name(array->name) != WEFT_OK) {
		const struct wf_error why = *wf_error_record();
		return wf_fail(WEFT_DATA, "%.200s: %.300s", saving->import->path, why.text);
	}
	*tensor = (struct wf_saved_tensor){
		.name = array->name,
		.rows = array->rows,
		.cols = array->cols == 0 ? 1 : array->cols,
		.shape = array->shape,
	};
	enum weft_status st = apply_like(saving, tensor);
	if (st != WEFT_OK) {
		return st;
	}
	const uint64_t count = tensor->rows * tensor->cols;
	saving->kept++;
	saving->saved.value_count += count;
	tensor->value = wf_zalloc_array(saving->env, count, sizeof(float));
	if (tensor->value == NULL) {
		return wf_fail(WEFT_NOMEM, "%s: %s with %" PRIu64 " values", saving->import->path,
			       array->name, count);
	}
	return wf_import_read(saving->import, idx, tensor->value);
}

static enum weft_status
add_arrays(struct saving *saving)
{
	enum weft_status st = WEFT_OK;

	if (saving->opts->like != NULL) {
		st = wf_import_open(saving->env, saving->import->calls, saving->opts->like,
				    WF_IMPORT_PASS, &saving->like);
	}
	if (st != WEFT_OK) {
		return st;
	}
	saving->tensor = wf_zalloc_array(saving->env, saving->count, sizeof(*saving->tensor));
	if (saving->tensor == NULL) {
		return wf_fail(WEFT_NOMEM, "%s: list of %" PRIu32 " tensors", saving->import->path,
			       saving->count);
	}
	for (uint32_t i = 0; st == WEFT_OK && i < saving->count; i++) {
		st = add_array(saving, i);
	}
	return st;
}

static void
saving_fini(struct saving *saving)
{
	for (uint32_t i = 0; i < saving->kept; i++) {
		const struct wf_saved_tensor *tensor = &saving->tensor[i];
		wf_free(saving->env, tensor->value, tensor->rows * tensor->cols * sizeof(float));
	}
	wf_free(saving->env, saving->tensor, saving->count * sizeof(*saving->tensor));
	wf_import_close(saving->like);
}

static enum weft_status
write_pass(struct saving *saving, struct wf_saved_folder *folder)
{
	struct wf_saved_about about = {.pass = saving->opts->pass, .optimizer = "none"};

	snprintf(about.version, sizeof(about.version), "%s", saving->opts->version);
	snprintf(about.settings, sizeof(about.settings), "imported from %s",
		 wf_import_format_name(saving->import->format));
	return wf_saved_write(folder, &about, saving->tensor, saving->kept);
}

/* Opening the folder gives a pass aside its name back, so the name is not taken. */
static enum weft_status
save_in(struct saving *saving, struct wf_saved_folder *folder)
{
	enum weft_status st = wf_saved_check_free(folder, saving->opts->pass);

	if (st == WEFT_OK && wf_import_table_count(saving->import) > 0) {
		st = wf_fail(WEFT_DATA, "%s: has tables, which cannot be imported",
			     saving->import->path);
	}
	if (st == WEFT_OK) {
		st = add_arrays(saving);
	}
	return st == WEFT_OK ? write_pass(saving, folder) : st;
}

enum weft_status
wf_import_save(struct wf_import *import, const struct wf_saved_place *place,
	       const struct wf_import_save *opts, struct wf_import_saved *out)
{
	struct saving saving = {
		.import = import,
		.env = place->env,
		.opts = opts,
		.count = wf_import_count(import),
	};
	struct wf_saved_folder *folder = NULL;

	enum weft_status st = wf_saved_folder_open(place, &folder);
	if (st == WEFT_OK) {
		st = save_in(&saving, folder);
		wf_saved_folder_close(folder);
	}
	saving.saved.tensor_count = saving.kept;
	saving_fini(&saving);
	if (st == WEFT_OK) {
		*out = saving.saved;
	}
	return st;
}
