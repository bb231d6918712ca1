/* SPDX-License-Identifier: Apache-2.0 */
/* Export to the original's own forms: a folder of parameter files with a file `done`, as its
 * trainer saved a pass, and the tar of parameters of its Python interface. Both have values alone:
 * neither an optimizer's state nor tables. Thread: the caller's. */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "trainer/saved/arrays.h"
#include "trainer/saved/directory.h"
#include "trainer/saved/parameter_config.h"
#include "trainer/saved/tar.h"

#define DONE_FILE "done"

static enum weft_status
check_values_alone(const struct wf_saved *saved, bool with_state)
{
	if (with_state) {
		return wf_fail(WEFT_INVALID, "state: the formats paddle and tar have values alone; "
					     "leave it out, or take npz or safetensors");
	}
	if (saved->manifest.table_count > 0) {
		return wf_fail(WEFT_INVALID,
			       "%s: has tables, which the formats paddle and tar have no room for; "
			       "take npz or safetensors",
			       saved->path);
	}
	return WEFT_OK;
}

static enum weft_status
write_parameter(const struct wf_saved *saved, uint32_t idx, struct wf_saved_file *to)
{
	struct wf_saved_file_place place;

	enum weft_status st = wf_saved_file_of(saved, idx, 0, &place);
	if (st == WEFT_OK) {
		st = wf_tensor_write_header(to, place.file.count);
	}
	return st == WEFT_OK ? wf_tensor_copy(saved->calls, &place.file, to) : st;
}

static enum weft_status
pad(struct wf_saved_file *to, uint64_t unit)
{
	static const uint8_t zeros[WF_TAR_BLOCK_BYTES];
	enum weft_status st = WEFT_OK;

	while (st == WEFT_OK && to->bytes % unit != 0) {
		const uint64_t left = unit - to->bytes % unit;
		st = wf_saved_file_write(to, zeros,
					 left < sizeof(zeros) ? (size_t)left : sizeof(zeros));
	}
	return st;
}

/* A header, with one of a long name before it where the name has no room. */
static enum weft_status
write_header(const char *name, uint64_t bytes, struct wf_saved_file *to)
{
	static const char long_name[] = "././@LongLink";
	struct wf_tar_header header = {.kind = WF_TAR_FILE, .bytes = bytes};
	uint8_t block[WF_TAR_BLOCK_BYTES];
	const size_t name_bytes = strlen(name);
	enum weft_status st = WEFT_OK;

	if (name_bytes > WF_TAR_NAME_IN_HEADER) {
		struct wf_tar_header ahead = {.kind = WF_TAR_LONG_NAME,
					      .bytes = name_bytes + 1,
					      .name_bytes = sizeof(long_name) - 1};
		memcpy(ahead.name, long_name, ahead.name_bytes);
		wf_tar_encode(&ahead, block);
		st = wf_saved_file_write(to, block, sizeof(block));
		if (st == WEFT_OK) {
			st = wf_saved_file_write(to, name, name_bytes + 1);
		}
		if (st == WEFT_OK) {
			st = pad(to, WF_TAR_BLOCK_BYTES);
		}
	}
	header.name_bytes = name_bytes < WF_TAR_NAME_IN_HEADER ? name_bytes : WF_TAR_NAME_IN_HEADER;
	memcpy(header.name, name, header.name_bytes);
	wf_tar_encode(&header, block);
	return st == WEFT_OK ? wf_saved_file_write(to, block, sizeof(block)) : st;
}

static enum weft_status
write_config(const struct wf_manifest_tensor *tensor, struct wf_saved_file *to)
{
	char name[WF_SAVED_NAME_BYTES + WF_PARAMETER_CONFIG_ENDING_BYTES];
	uint8_t config[WF_PARAMETER_CONFIG_BYTES_MAX];
	const bool is_row = tensor->cols == 1 && wf_parameter_is_bias(tensor->name);

	snprintf(name, sizeof(name), "%s" WF_PARAMETER_CONFIG_ENDING, tensor->name);
	const size_t bytes =
		wf_parameter_config_encode(tensor->name, is_row ? 1 : tensor->rows,
					   is_row ? tensor->rows : tensor->cols, config);
	enum weft_status st = write_header(name, bytes, to);
	if (st == WEFT_OK) {
		st = wf_saved_file_write(to, config, bytes);
	}
	return st == WEFT_OK ? pad(to, WF_TAR_BLOCK_BYTES) : st;
}

static enum weft_status
write_tar(const struct wf_saved *saved, bool with_state, struct wf_saved_file *to)
{
	static const uint8_t zeros[WF_TAR_BLOCK_BYTES];
	enum weft_status st = WEFT_OK;

	(void)with_state;
	for (uint32_t i = 0; st == WEFT_OK && i < saved->manifest.tensor_count; i++) {
		const struct wf_manifest_tensor *tensor = &saved->manifest.tensor[i];
		st = write_header(tensor->name, wf_manifest_file_bytes(tensor->rows, tensor->cols),
				  to);
		if (st == WEFT_OK) {
			st = write_parameter(saved, i, to);
		}
		if (st == WEFT_OK) {
			st = pad(to, WF_TAR_BLOCK_BYTES);
		}
		if (st == WEFT_OK) {
			st = write_config(tensor, to);
		}
	}
	/* Two blocks of zeros, then whole records. */
	for (unsigned i = 0; st == WEFT_OK && i < 2; i++) {
		st = wf_saved_file_write(to, zeros, sizeof(zeros));
	}
	return st == WEFT_OK ? pad(to, WF_TAR_RECORD_BYTES) : st;
}

enum weft_status
wf_saved_export_tar(const struct wf_saved *saved, const char *path, bool with_state)
{
	enum weft_status st = check_values_alone(saved, with_state);
	return st == WEFT_OK ? wf_export(saved, with_state, path, write_tar) : st;
}

/* Make folder/name by one of the writers below. */
static enum weft_status
write_one(const struct wf_saved *saved, const char *folder, const char *name, int64_t idx)
{
	char path[WF_SAVED_PATH_BYTES];
	char text[64];
	struct wf_saved_file to;

	enum weft_status st = wf_saved_join(folder, name, path);
	if (st == WEFT_OK) {
		st = wf_saved_file_create(saved->calls, path, &to);
	}
	if (st != WEFT_OK) {
		return st;
	}
	if (idx >= 0) {
		return wf_saved_file_finish(&to, write_parameter(saved, (uint32_t)idx, &to));
	}
	int bytes = snprintf(text, sizeof(text), "weft %s\n", saved->manifest.about.version);
	return wf_saved_file_finish(&to, wf_saved_file_write(&to, text, (size_t)bytes));
}

/* `done` last, as the original did: who sees it sees all of it. */
static enum weft_status
fill_folder(const struct wf_saved *saved, const char *folder)
{
	enum weft_status st = WEFT_OK;

	for (uint32_t i = 0; st == WEFT_OK && i < saved->manifest.tensor_count; i++) {
		const char *name = saved->manifest.tensor[i].name;
		if (wf_parameter_is_aside(name)) {
			return wf_fail(WEFT_DATA,
				       "%s: a tensor is named %s, which in such a folder is a "
				       "file beside the parameters; take another format",
				       saved->path, name);
		}
		st = write_one(saved, folder, name, i);
	}
	if (st == WEFT_OK) {
		st = write_one(saved, folder, DONE_FILE, -1);
	}
	return st == WEFT_OK ? wf_saved_sync_folder(saved->calls, folder) : st;
}

enum weft_status
wf_saved_export_paddle(const struct wf_saved *saved, const char *path, bool with_state)
{
	char folder[WF_SAVED_PATH_BYTES];
	char temporary[WF_SAVED_PATH_BYTES];

	enum weft_status st = check_values_alone(saved, with_state);
	if (st == WEFT_OK) {
		st = wf_export_split(path, folder, temporary);
	}
	if (st != WEFT_OK) {
		return st;
	}
	(void)wf_saved_remove_folder(temporary); /* of a process that had our number and died */
	if (saved->calls->mkdir(temporary, 0777) != 0) {
		return wf_fail_errno(WEFT_IO, errno, "%s: cannot be made", temporary);
	}
	st = fill_folder(saved, temporary);
	/* Takes the place of an empty folder, and of nothing else. */
	if (st == WEFT_OK && saved->calls->rename(temporary, path) != 0) {
		st = wf_fail_errno(WEFT_IO, errno, "%s: cannot be renamed to %s", temporary, path);
	}
	if (st != WEFT_OK) {
		const struct wf_error why = *wf_error_record();
		(void)wf_saved_remove_folder(temporary);
		*wf_error_record() = why;
		return st;
	}
	return wf_saved_sync_folder(saved->calls, folder);
}
