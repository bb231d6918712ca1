/* SPDX-License-Identifier: Apache-2.0 */
/* Export to the original's own forms: a folder of parameter files with a file `done`, as its
 * trainer saved a pass, and the tar of parameters of its Python interface. Both have values alone:
 * neither an optimizer's state nor tables. Thread: the caller's. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "saved/arrays.h"
#include "saved/parameter_config.h"
#include "saved/tar.h"

#define DONE_FILE "done"

static enum weft_status
check_values_alone(const struct wf_saved *saved, bool with_state)
{
	if (with_state) {
		return wf_fail(WEFT_INVALID, "state: the formats paddle and tar hold values only; "
					     "leave it out, or use npz or safetensors");
	}
	if (saved->manifest.table_count > 0) {
		return wf_fail(WEFT_INVALID,
			       "%s: has tables, which the formats paddle and tar cannot hold; use "
			       "npz or safetensors",
			       saved->path);
	}
	if (saved->manifest.aside_count > 0) {
		return wf_fail(WEFT_INVALID,
			       "%s: keeps arrays aside that are not of f32, such as %s, which the "
			       "formats paddle and tar cannot hold; use npz or safetensors, or "
			       "import the model without them (--skip)",
			       saved->path, saved->manifest.aside[0].name);
	}
	return WEFT_OK;
}

static enum weft_status
write_parameter(const struct wf_saved *saved, uint32_t idx, struct wf_saved_file *to)
{
	const struct wf_manifest_tensor *tensor = &saved->manifest.tensor[idx];

	enum weft_status st = wf_tensor_write_header(to, tensor->rows * tensor->cols);
	return st == WEFT_OK
		       ? wf_saved_read_tensor(saved, idx, 0, &(struct wf_tensor_target){.file = to})
		       : st;
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

/* The original's parameters have two dimensions or more, and its biases are rows. */
static void
original_shape(const struct wf_manifest_tensor *tensor, struct wf_shape *out)
{
	const bool is_row = tensor->cols == 1 && wf_parameter_is_bias(tensor->name);

	if (tensor->shape[0] != '\0' && wf_shape_parse(tensor->shape, out) && out->dims > 2) {
		return;
	}
	*out = (struct wf_shape){.dims = 2, .dim = {tensor->rows, tensor->cols}};
	if (is_row) {
		*out = (struct wf_shape){.dims = 2, .dim = {1, tensor->rows}};
	}
}

static enum weft_status
write_config(const struct wf_manifest_tensor *tensor, struct wf_saved_file *to)
{
	char name[WF_SAVED_NAME_BYTES + WF_PARAMETER_CONFIG_ENDING_BYTES];
	uint8_t config[WF_PARAMETER_CONFIG_BYTES_MAX];
	struct wf_shape shape;

	original_shape(tensor, &shape);
	snprintf(name, sizeof(name), "%s" WF_PARAMETER_CONFIG_ENDING, tensor->name);
	const size_t bytes = wf_parameter_config_encode(tensor->name, &shape, config);
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

/* A folder being made. */
struct making {
	const struct wf_saved *saved;
	const struct wf_export_place *place;
	int fd;
	uint32_t begun; /* files, tensors' first and then `done` */
};

static const char *
name_of(const struct making *making, uint32_t idx)
{
	const struct wf_manifest *manifest = &making->saved->manifest;
	return idx < manifest->tensor_count ? manifest->tensor[idx].name : DONE_FILE;
}

static enum weft_status
write_one(struct making *making, uint32_t idx)
{
	const struct wf_saved *saved = making->saved;
	char path[WF_SAVED_PATH_BYTES];
	char text[64];
	const struct wf_saved_spot spot = {saved->calls, making->fd, path};
	struct wf_saved_file to;

	enum weft_status st = wf_saved_join(making->place->temporary, name_of(making, idx), path);
	if (st == WEFT_OK) {
		st = wf_saved_file_create(&spot, &to);
	}
	if (st != WEFT_OK) {
		return st;
	}
	making->begun = idx + 1;
	if (idx < saved->manifest.tensor_count) {
		return wf_saved_file_finish(&to, write_parameter(saved, idx, &to));
	}
	int bytes = snprintf(text, sizeof(text), "weft %s\n", saved->manifest.about.version);
	return wf_saved_file_finish(&to, wf_saved_file_write(&to, text, (size_t)bytes));
}

/* `done` last, as the original did: a reader that sees it sees all of the folder. */
static enum weft_status
fill_folder(struct making *making)
{
	const struct wf_saved *saved = making->saved;
	enum weft_status st = WEFT_OK;

	for (uint32_t i = 0; st == WEFT_OK && i <= saved->manifest.tensor_count; i++) {
		if (i < saved->manifest.tensor_count && wf_parameter_is_aside(name_of(making, i))) {
			return wf_fail(WEFT_DATA,
				       "%s: a tensor is named %s, which is the name of another "
				       "file in such a folder; use another format",
				       saved->path, name_of(making, i));
		}
		st = write_one(making, i);
	}
	return st == WEFT_OK
		       ? wf_saved_sync_folder(saved->calls, making->fd, making->place->temporary)
		       : st;
}

/* Removes what this export created, and no other file. */
static void
remove_made(const struct making *making)
{
	const struct wf_export_place *place = making->place;
	const struct wf_error why = *wf_error_record();

	for (uint32_t i = 0; i < making->begun; i++) {
		(void)place->calls->unlinkat(making->fd, name_of(making, i), 0);
	}
	(void)place->calls->unlinkat(place->folder, place->made, AT_REMOVEDIR);
	*wf_error_record() = why;
}

static enum weft_status
make_folder(const struct wf_saved *saved, const struct wf_export_place *place)
{
	struct making making = {.saved = saved, .place = place};

	if (place->calls->mkdirat(place->folder, place->made, 0777) != 0) {
		return wf_fail_errno(WEFT_IO, errno, "%s: cannot be created", place->temporary);
	}
	making.fd = wf_saved_open_folder(place->calls, place->folder, place->made);
	if (making.fd < 0) {
		enum weft_status st =
			wf_fail_errno(WEFT_IO, errno, "%s: cannot be opened", place->temporary);
		remove_made(&making);
		return st;
	}
	enum weft_status st = fill_folder(&making);
	/* Replaces an empty folder, and nothing else. */
	if (st == WEFT_OK) {
		st = wf_export_rename(place);
	}
	if (st != WEFT_OK) {
		remove_made(&making);
	}
	(void)place->calls->close(making.fd); /* nothing was written through it */
	return st == WEFT_OK ? wf_saved_sync_folder(place->calls, place->folder, place->path) : st;
}

enum weft_status
wf_saved_export_paddle(const struct wf_saved *saved, const char *path, bool with_state)
{
	struct wf_export_place place;

	enum weft_status st = check_values_alone(saved, with_state);
	if (st == WEFT_OK) {
		st = wf_export_open(saved, path, &place);
	}
	if (st == WEFT_OK) {
		st = make_folder(saved, &place);
		wf_export_close(&place);
	}
	return st;
}
