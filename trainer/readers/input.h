/* SPDX-License-Identifier: Apache-2.0 */
/* input: the bytes of one file as a stream, unpacked on the way. Whether the file is plain or
 * packed with gzip or zstd, or RecordIO, is recognised by its first bytes, never by its name.
 * Memory does not depend on the file: 128 KiB, zlib's 40 KiB, for zstd the window that a frame asks
 * for, at most WF_INPUT_ZSTD_WINDOW_LOG, and for RecordIO a chunk, stored and unpacked
 * (recordio.h). Each record of RecordIO is a line: a line feed is added, unless it ends in one.
 *
 * A file is exactly what its format says, to its last byte: several gzip members or zstd frames may
 * follow each other, and nothing else. Checksums are verified where the format has them, which is
 * behind the bytes that they are of: a file is known to be whole only when its end has been read.
 *
 * Thread: its owner's. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "base/env.h"

#define WF_INPUT_ZSTD_WINDOW_LOG 27 /* 128 MiB, what `zstd --long` asks for */

struct wf_input;

/**
 * Opens a file.
 * @param path lent until wf_input_close
 * @param out  ends with wf_input_close
 * @return WEFT_OK; WEFT_DATA: it does not exist, is no regular file, or is packed in a way that is
 *         not read, such as bzip2; WEFT_IO: it cannot be opened; WEFT_NOMEM
 */
enum weft_status wf_input_open(struct wf_env *env, const char *path,
			       struct wf_input **out) WEFT_MUST_CHECK;
/**
 * Reads what comes next.
 * @param room >= 1
 * @param got  room, or less where the file ends: 0 from then on. Bytes that are appended to a file
 *             after it was opened are not read.
 * @return WEFT_OK; WEFT_DATA: the file is truncated, damaged, has something else behind its end, or
 *         became shorter: path and offset in the file; WEFT_IO; WEFT_NOMEM. After a failure the
 *         input can only be closed.
 */
enum weft_status wf_input_read(struct wf_input *input, void *bytes, size_t room,
			       size_t *got) WEFT_MUST_CHECK;
void wf_input_close(struct wf_input *input); /* accepts NULL */

/* "plain", "gzip", "recordio", "zstd". */
const char *wf_input_format(const struct wf_input *input);
/* Of the file itself, when it was opened. */
uint64_t wf_input_file_bytes(const struct wf_input *input);
/* WEFT_DATA: when it was opened, it had other bytes, or was last changed at another time. */
enum weft_status wf_input_check_unchanged(const struct wf_input *input, uint64_t bytes,
					  const struct timespec *changed) WEFT_MUST_CHECK;
/* The most bytes that a file of this format and size can hold, unpacked. What a header announces
 * beyond them is a lie. */
uint64_t wf_input_bytes_max(const struct wf_input *input);
