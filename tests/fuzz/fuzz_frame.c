/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target of what weft launch and its agents on other hosts read: frames, and files of hosts.
 * The first byte chooses. What is read of a frame stays within it, and what is accepted as a list
 * of hosts is consistent. */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "tests/fuzz/fuzz_target.h"
#include "tools/launch/frame.h"
#include "tools/launch/hosts.h"

/* Reads a body in an order that depends on it. */
static void
read_body(struct wf_frame *frame)
{
	struct wf_args texts;

	while (frame->left > 0 && !frame->bad) {
		switch (frame->body[0] % 3) {
		case 0:
			(void)wf_frame_read_number(frame);
			break;
		case 1:
			WF_ASSERT(strlen(wf_frame_read_text(frame)) <= WF_FRAME_BODY_BYTES);
			break;
		default:
			wf_frame_read_texts(frame, &texts);
			WF_ASSERT(texts.count < WF_ARGS_MAX && texts.argv[texts.count] == NULL);
			break;
		}
	}
	WF_ASSERT((wf_frame_check(frame) == WEFT_OK) == !frame->bad);
}

static void
read_frames(const uint8_t *data, size_t bytes)
{
	struct wf_frame_stream *stream = calloc(1, sizeof(*stream));
	struct wf_frame frame;
	enum weft_status st = WEFT_AGAIN;

	WF_ASSERT(stream != NULL);
	while (st == WEFT_AGAIN && bytes > 0) {
		size_t room;
		void *to = wf_frame_room(stream, &room);
		size_t piece = bytes < room ? bytes : room;
		memcpy(to, data, piece);
		wf_frame_received(stream, piece);
		data += piece;
		bytes -= piece;
		while ((st = wf_frame_next(stream, &frame)) == WEFT_OK) {
			read_body(&frame);
		}
	}
	free(stream);
}

static void
read_hosts(const uint8_t *data, size_t bytes)
{
	static struct wf_hosts hosts;
	char *text = malloc(bytes + 1);

	WF_ASSERT(text != NULL);
	memcpy(text, data, bytes);
	text[bytes] = '\0';
	enum weft_status st = data[-1] % 2 == 0 ? wf_hosts_parse(text, &hosts)
						: wf_hosts_parse_file("input", text, &hosts);
	if (st == WEFT_OK) {
		WF_ASSERT(hosts.count >= 1 && hosts.count <= hosts.entry_count);
		WF_ASSERT(hosts.entry_count <= WF_HOSTS_MAX);
		for (unsigned i = 0; i < hosts.entry_count; i++) {
			const struct wf_launch_host *host = &hosts.host[hosts.entry[i]];
			WF_ASSERT(hosts.entry[i] < hosts.count && host->at.name[0] != '-');
			WF_ASSERT(strpbrk(host->at.name, " ;'\"$`&|<>()\\\n") == NULL);
		}
	}
	free(text);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	if (bytes > 0) {
		(data[0] < 128 ? read_frames : read_hosts)(data + 1, bytes - 1);
	}
	return 0;
}
