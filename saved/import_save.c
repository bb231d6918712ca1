/* SPDX-License-Identifier: Apache-2.0 */
/* An import as a save of weft: all values are in memory, then written like any pass. Thread: the
 * caller's. */
#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "saved/arrays.h"
#include "saved/directory.h"
#include "saved/import_internal.h"

struct memory {
	void *at;
	size_t bytes;
};

struct saving {
	struct wf_import *import;
	struct wf_env *env;
	const struct wf_import_save *opts;
	struct wf_import *like;         /* NULL: none */
	struct wf_saved_tensor *tensor; /* [count] */
	struct wf_saved_aside *aside;   /* [count] */
	struct memory *memory;          /* [count] of what is aside */
	uint32_t count;                 /* arrays of the import */
	uint32_t kept, kept_aside;      /* of them, tensors and others */
	struct wf_import_saved saved;
};

/* The array OWNER.END is there, too. */
static bool
has_beside(const struct wf_import *import, const char *owner, size_t bytes, const char *end)
{
	char plain[WF_ARRAY_NAME_BYTES];
	char file[WF_SAVED_NAME_BYTES];

	const int count = snprintf(plain, sizeof(plain), "%.*s%s", (int)bytes, owner, end);
	return wf_saved_name_encode(plain, (size_t)count, file) == WEFT_OK &&
	       wf_import_find(import, file) != NULL;
}

/* NAME.state0 of a NAME that exists too, or NAME.stamp of a table. `name` is that of a file, which
 * has no ".state" in it. */
static bool
is_state(const struct wf_import *import, const char *name)
{
	static const char mark[] = ".state";
	char plain[WF_SAVED_NAME_BYTES];

	const size_t bytes = wf_saved_name_decode(name, plain);
	const size_t table = wf_array_state_owner(plain, bytes);
	if (table > 0 && has_beside(import, plain, table, ".keys") &&
	    has_beside(import, plain, table, ".values")) {
		return true;
	}
	const size_t ending = sizeof(mark); /* with the digit */
	const char *at = bytes > ending ? plain + bytes - ending : plain;
	if (at == plain || strncmp(at, mark, sizeof(mark) - 1) != 0 || plain[bytes - 1] < '0' ||
	    plain[bytes - 1] > '9') {
		return false;
	}
	return has_beside(import, plain, bytes - ending, "");
}

/* One of the patterns fits the name. */
static bool
fits(const struct wf_option_list *patterns, const char *name)
{
	for (unsigned i = 0; patterns != NULL && i < patterns->count; i++) {
		if (fnmatch(patterns->text[i], name, 0) == 0) {
			return true;
		}
	}
	return false;
}

static bool
is_wanted(const struct wf_import_save *opts, const char *file)
{
	char name[WF_SAVED_NAME_BYTES];

	(void)wf_saved_name_decode(file, name);
	return (opts->only == NULL || opts->only->count == 0 || fits(opts->only, name)) &&
	       !fits(opts->skip, name);
}

/* Each pattern fits a name, or it was mistyped. */
static enum weft_status
check_patterns(const struct wf_import *import, const char *option,
	       const struct wf_option_list *patterns)
{
	char name[WF_SAVED_NAME_BYTES];

	for (unsigned i = 0; patterns != NULL && i < patterns->count; i++) {
		uint32_t k = 0;
		for (; k < import->entry_count; k++) {
			(void)wf_saved_name_decode(import->entry[k].array.name, name);
			if (fnmatch(patterns->text[i], name, 0) == 0) {
				break;
			}
		}
		if (k == import->entry_count) {
			return wf_fail(WEFT_INVALID, "%s=%.100s: %s has no array of such a name",
				       option, patterns->text[i], import->path);
		}
	}
	return WEFT_OK;
}

/* The shape of the namesake in `like`, which must have as many values. What has no shapes, as a
 * snapshot, gives none. */
static enum weft_status
apply_like(const struct saving *saving, struct wf_saved_tensor *tensor)
{
	const struct wf_import_entry *entry =
		saving->like == NULL ? NULL : wf_import_find(saving->like, tensor->name);

	if (entry == NULL) {
		return WEFT_OK;
	}
	const struct wf_import_array *array = &entry->array;
	if (wf_import_elements(entry) != tensor->rows * tensor->cols) {
		return wf_fail(WEFT_DATA,
			       "%s: %s is %" PRIu64 " x %" PRIu64 "; %s has it %" PRIu64
			       " x %" PRIu64,
			       saving->import->path, tensor->name, tensor->rows, tensor->cols,
			       saving->opts->like, array->rows, array->cols == 0 ? 1 : array->cols);
	}
	if (array->cols == 0) {
		return WEFT_OK;
	}
	tensor->rows = array->rows;
	tensor->cols = array->cols;
	tensor->shape = array->shape;
	return WEFT_OK;
}

static enum weft_status
add_tensor(struct saving *saving, uint32_t idx)
{
	const struct wf_import_array *array = wf_import_at(saving->import, idx);
	struct wf_saved_tensor *tensor = &saving->tensor[saving->kept];

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

/* An array of another type, or an empty one. The original's files have no shape, but one dimension.
 */
static enum weft_status
add_aside(struct saving *saving, uint32_t idx)
{
	const struct wf_import_entry *entry = &saving->import->entry[idx];
	const uint32_t at = saving->kept_aside;
	const uint64_t bytes =
		wf_import_elements(entry) * wf_array_type_about(entry->array.type)->bytes;
	void *to = wf_zalloc(saving->env, bytes + 1); /* not none */

	if (to == NULL) {
		return wf_fail(WEFT_NOMEM, "%s: %s with %" PRIu64 " bytes", saving->import->path,
			       entry->array.name, bytes);
	}
	saving->memory[at] = (struct memory){to, bytes + 1};
	saving->aside[at] = (struct wf_saved_aside){
		.name = entry->array.name,
		.type = entry->array.type,
		.shape = entry->array.shape,
		.bytes = to,
	};
	saving->kept_aside++;
	return wf_import_read_raw(saving->import, idx, to);
}

static enum weft_status
add_array(struct saving *saving, uint32_t idx)
{
	const struct wf_import_entry *entry = &saving->import->entry[idx];
	const struct wf_import_array *array = &entry->array;

	if (!is_wanted(saving->opts, array->name)) {
		saving->saved.skipped_count++;
		return WEFT_OK;
	}
	if (array->objection != NULL) {
		return wf_fail(WEFT_DATA, "%s: %s %s; --skip=%s leaves it out",
			       saving->import->path, array->name, array->objection, array->name);
	}
	if (is_state(saving->import, array->name)) {
		saving->saved.state_count++;
		return WEFT_OK;
	}
	const bool is_float =
		array->type == WF_ARRAY_F32 || array->shape[0] == '\0' ||
		(saving->opts->converts && wf_array_type_about(array->type)->is_float);
	return is_float && wf_import_elements(entry) > 0 ? add_tensor(saving, idx)
							 : add_aside(saving, idx);
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
	saving->aside = wf_zalloc_array(saving->env, saving->count, sizeof(*saving->aside));
	saving->memory = wf_zalloc_array(saving->env, saving->count, sizeof(*saving->memory));
	if (saving->tensor == NULL || saving->aside == NULL || saving->memory == NULL) {
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
	for (uint32_t i = 0; i < saving->kept_aside; i++) {
		wf_free(saving->env, saving->memory[i].at, saving->memory[i].bytes);
	}
	wf_free(saving->env, saving->tensor, saving->count * sizeof(*saving->tensor));
	wf_free(saving->env, saving->aside, saving->count * sizeof(*saving->aside));
	wf_free(saving->env, saving->memory, saving->count * sizeof(*saving->memory));
	wf_import_close(saving->like);
}

static enum weft_status
write_pass(struct saving *saving, struct wf_saved_folder *folder)
{
	struct wf_saved_about about = {.pass = saving->opts->pass, .optimizer = "none"};

	snprintf(about.version, sizeof(about.version), "%s", saving->opts->version);
	snprintf(about.settings, sizeof(about.settings), "imported from %s",
		 wf_import_format_name(saving->import->format));
	const struct wf_saved_content content = {
		.tensor = saving->tensor,
		.tensor_count = saving->kept,
		.aside = saving->aside,
		.aside_count = saving->kept_aside,
	};
	if (content.tensor_count + content.aside_count == 0) {
		return wf_fail(WEFT_INVALID, "%s: nothing is left to import", saving->import->path);
	}
	return wf_saved_write_all(folder, &about, &content);
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
		st = check_patterns(saving->import, "only", saving->opts->only);
	}
	if (st == WEFT_OK) {
		st = check_patterns(saving->import, "skip", saving->opts->skip);
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
	saving.saved.aside_count = saving.kept_aside;
	saving_fini(&saving);
	if (st == WEFT_OK) {
		*out = saving.saved;
	}
	return st;
}
