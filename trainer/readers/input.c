/* SPDX-License-Identifier: Apache-2.0 */
/* Files, chunks of them, and the table of formats. Thread: the input's owner. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/assert.h"
#include "trainer/readers/input_internal.h"

/* Stored bytes to `bytes`: `room` of them, or those that the file still has. */
static enum weft_status
read_stored(struct wf_input *input, uint8_t *bytes, size_t room, size_t *got)
{
	const uint64_t left = input->file_bytes - input->read_bytes;
	const size_t want = room < left ? room : (size_t)left;
	size_t done = 0;

	while (done < want) {
		ssize_t n = read(input->fd, bytes + done, want - done);
		if (n < 0 && errno == EINTR) {
			continue;
		}
		if (n < 0) {
			return wf_fail_errno(WEFT_IO, errno, "%s: cannot be read", input->path);
		}
		if (n == 0) {
			return wf_fail(WEFT_DATA,
				       "%s: became shorter while it was read: %" PRIu64
				       " of %" PRIu64 " bytes are left",
				       input->path, input->read_bytes + done, input->file_bytes);
		}
		done += (size_t)n;
	}
	input->read_bytes += done;
	*got = done;
	return WEFT_OK;
}

enum weft_status
wf_input_fill(struct wf_input *input, size_t want)
{
	size_t got = 0;

	WF_ASSERT(want <= WF_INPUT_CHUNK_BYTES);
	if (wf_input_have(input) >= want) {
		return WEFT_OK;
	}
	memmove(input->chunk, input->chunk + input->at, wf_input_have(input));
	input->end -= input->at;
	input->at = 0;
	enum weft_status st = read_stored(input, input->chunk + input->end,
					  WF_INPUT_CHUNK_BYTES - input->end, &got);
	input->end += got;
	return st;
}

enum weft_status
wf_input_refuse(const struct wf_input *input, uint64_t offset, const char *why)
{
	return wf_fail(WEFT_DATA, "%s: offset %" PRIu64 " of %" PRIu64 ": %s", input->path, offset,
		       input->file_bytes, why);
}

/* What the first bytes were recognised by comes from the chunk, everything else goes past it. */
static enum weft_status
plain_read(struct wf_input *input, uint8_t *bytes, size_t room, size_t *got)
{
	const size_t have = wf_input_have(input);
	const size_t count = have < room ? have : room;

	if (have == 0) {
		return read_stored(input, bytes, room, got);
	}
	memcpy(bytes, input->chunk + input->at, count);
	input->at += count;
	*got = count;
	return WEFT_OK;
}

static const struct wf_input_ops plain_ops = {
	.name = "plain",
	.ratio_max = 1,
	.read = plain_read,
};

static const struct wf_input_ops *const formats[] = {
	&wf_input_gzip_ops,
	&wf_input_other_ops,
	&wf_input_recordio_ops,
	&wf_input_zstd_ops,
};

/* Finds the format, and opens it. */
static enum weft_status
open_format(struct wf_input *input)
{
	enum weft_status st = wf_input_fill(input, WF_INPUT_HEAD_BYTES);
	if (st != WEFT_OK) {
		return st;
	}
	const struct wf_input_ops *ops = &plain_ops;
	for (unsigned i = 0; i < WF_ARRAY_COUNT(formats); i++) {
		if (formats[i]->recognises(input->chunk, wf_input_have(input))) {
			ops = formats[i];
		}
	}
	if (ops->state_bytes > 0) {
		input->state = wf_zalloc(input->env, ops->state_bytes);
		if (input->state == NULL) {
			return wf_fail(WEFT_NOMEM, "%s: %zu bytes", input->path, ops->state_bytes);
		}
	}
	input->ops = ops;
	return ops->open == NULL ? WEFT_OK : ops->open(input);
}

/* Not blocking: what lies there might be a pipe. */
static enum weft_status
open_file(struct wf_input *input)
{
	struct stat about;

	input->fd = open(input->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (input->fd < 0) {
		return wf_fail_errno(errno == ENOENT || errno == ENOTDIR ? WEFT_DATA : WEFT_IO,
				     errno, "%s: cannot be opened", input->path);
	}
	if (fstat(input->fd, &about) != 0) {
		return wf_fail_errno(WEFT_IO, errno, "%s: stat", input->path);
	}
	if (!S_ISREG(about.st_mode)) {
		return wf_fail(WEFT_DATA, "%s: is not a regular file", input->path);
	}
	input->file_bytes = (uint64_t)about.st_size;
	input->changed = about.st_mtim;
	return WEFT_OK;
}

enum weft_status
wf_input_open(struct wf_env *env, const char *path, struct wf_input **out)
{
	struct wf_input *input = wf_zalloc(env, sizeof(*input));
	if (input == NULL) {
		return wf_fail(WEFT_NOMEM, "%s: %zu bytes", path, sizeof(*input));
	}
	*input = (struct wf_input){.env = env, .path = path, .fd = -1};
	enum weft_status st = open_file(input);
	if (st == WEFT_OK) {
		input->chunk = wf_zalloc(env, WF_INPUT_CHUNK_BYTES);
		st = input->chunk == NULL
			     ? wf_fail(WEFT_NOMEM, "%s: %u bytes", path, WF_INPUT_CHUNK_BYTES)
			     : open_format(input);
	}
	if (st != WEFT_OK) {
		wf_input_close(input);
		return st;
	}
	*out = input;
	return WEFT_OK;
}

enum weft_status
wf_input_read(struct wf_input *input, void *bytes, size_t room, size_t *got)
{
	size_t done = 0;
	size_t more = 0;

	WF_ASSERT(room > 0);
	do {
		more = 0;
		enum weft_status st =
			input->ops->read(input, (uint8_t *)bytes + done, room - done, &more);
		if (st != WEFT_OK) {
			return st;
		}
		done += more;
		WF_ASSERT(done <= room);
	} while (more > 0 && done < room);
	*got = done;
	return WEFT_OK;
}

void
wf_input_close(struct wf_input *input)
{
	if (input == NULL) {
		return;
	}
	if (input->ops != NULL && input->ops->close != NULL) {
		input->ops->close(input);
	}
	if (input->state != NULL) {
		wf_free(input->env, input->state, input->ops->state_bytes);
	}
	if (input->fd >= 0) {
		close(input->fd);
	}
	wf_free(input->env, input->chunk, WF_INPUT_CHUNK_BYTES);
	wf_free(input->env, input, sizeof(*input));
}

const char *
wf_input_format(const struct wf_input *input)
{
	return input->ops->name;
}

uint64_t
wf_input_file_bytes(const struct wf_input *input)
{
	return input->file_bytes;
}

enum weft_status
wf_input_check_unchanged(const struct wf_input *input, uint64_t bytes,
			 const struct timespec *changed)
{
	if (input->file_bytes == bytes && input->changed.tv_sec == changed->tv_sec &&
	    input->changed.tv_nsec == changed->tv_nsec) {
		return WEFT_OK;
	}
	return wf_fail(WEFT_DATA,
		       "%s: was changed after it was listed: it must not change while it is in use",
		       input->path);
}

uint64_t
wf_input_bytes_max(const struct wf_input *input)
{
	const uint64_t ratio = input->ops->ratio_max;
	return input->file_bytes > UINT64_MAX / ratio ? UINT64_MAX : input->file_bytes * ratio;
}
