/* SPDX-License-Identifier: Apache-2.0 */
/* A RecordIO file of texts: each record is a line. A line feed is added behind it, unless its last
 * byte is one. Thread: the input's owner. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "trainer/readers/input_internal.h"
#include "trainer/readers/recordio.h"

#define RATIO_MAX 1032u /* of deflate; snappy's is less */

struct recordio {
	struct wf_recordio_reader *reader;
	struct wf_record record; /* what is left of it */
	uint64_t number;         /* of the record in the file, from 1 */
	bool wants_feed;         /* a line feed follows what is left */
};

/* The first bytes are in the chunk by now: the reader begins at the start of the file. */
static enum weft_status
recordio_open(struct wf_input *input)
{
	struct recordio *recordio = input->state;

	if (lseek(input->fd, 0, SEEK_SET) != 0) {
		return wf_fail_errno(WEFT_IO, errno, "%s: cannot be read", input->path);
	}
	return wf_recordio_reader_open(input->env, input->fd, input->path, &recordio->reader);
}

static void
recordio_close(struct wf_input *input)
{
	struct recordio *recordio = input->state;
	wf_recordio_reader_close(recordio->reader);
}

/* Advances to the next record. */
static enum weft_status
read_record(struct wf_input *input, struct recordio *recordio)
{
	enum weft_status st = wf_recordio_read(recordio->reader, &recordio->record);
	if (st != WEFT_OK || recordio->record.bytes == NULL) {
		return st;
	}
	const struct wf_record *record = &recordio->record;
	const uint8_t *feed = memchr(record->bytes, '\n', record->count);
	recordio->number++;
	if (feed != NULL && feed + 1 != record->bytes + record->count) {
		return wf_fail(WEFT_DATA,
			       "%s: record %" PRIu64 ": has a line feed in it, so it is not a line "
			       "of a text",
			       input->path, recordio->number);
	}
	recordio->wants_feed = feed == NULL;
	return WEFT_OK;
}

static enum weft_status
recordio_read(struct wf_input *input, uint8_t *bytes, size_t room, size_t *got)
{
	struct recordio *recordio = input->state;
	struct wf_record *record = &recordio->record;
	size_t done = 0;

	while (done < room) {
		if (record->count == 0 && !recordio->wants_feed) {
			enum weft_status st = read_record(input, recordio);
			if (st != WEFT_OK) {
				return st;
			}
			if (record->bytes == NULL) {
				break;
			}
		}
		size_t piece = record->count < room - done ? record->count : room - done;
		memcpy(bytes + done, record->bytes, piece);
		record->bytes += piece;
		record->count -= piece;
		done += piece;
		if (record->count == 0 && recordio->wants_feed && done < room) {
			bytes[done++] = '\n';
			recordio->wants_feed = false;
		}
	}
	*got = done;
	return WEFT_OK;
}

static bool
recordio_recognises(const uint8_t *head, size_t count)
{
	return wf_recordio_recognise(head, count);
}

const struct wf_input_ops wf_input_recordio_ops = {
	.name = "recordio",
	.recognises = recordio_recognises,
	.state_bytes = sizeof(struct recordio),
	.ratio_max = RATIO_MAX,
	.open = recordio_open,
	.read = recordio_read,
	.close = recordio_close,
};
