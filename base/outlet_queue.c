/* SPDX-License-Identifier: Apache-2.0 */
/* outlet_queue: see outlet_queue.h. Thread: any, as described there. */
#include "base/outlet_queue.h"

#include <limits.h>
#include <string.h>

#include "base/assert.h"

struct head {
	uint64_t bytes;   /* of the line behind it */
	uint64_t dropped; /* lines, right before this one */
};
WF_STATIC_ASSERT(sizeof(struct head) == WF_OUTLET_HEAD_BYTES, "as callers reckon with it");

uint64_t
wf_outlet_queue_put_at(const struct wf_outlet_queue *queue)
{
	return atomic_load_explicit(&queue->put_at, memory_order_acquire); /* put's release */
}

uint64_t
wf_outlet_queue_done_at(const struct wf_outlet_queue *queue)
{
	return atomic_load_explicit(&queue->done_at, memory_order_acquire); /* settle's release */
}

static void
copy_in(struct wf_outlet_queue *queue, uint64_t at, const void *from, size_t bytes)
{
	size_t begin = at % queue->bytes;
	size_t first = queue->bytes - begin < bytes ? queue->bytes - begin : bytes;
	memcpy(queue->text + begin, from, first);
	memcpy(queue->text, (const char *)from + first, bytes - first);
}

static void
copy_out(const struct wf_outlet_queue *queue, uint64_t at, void *to, size_t bytes)
{
	size_t begin = at % queue->bytes;
	size_t first = queue->bytes - begin < bytes ? queue->bytes - begin : bytes;
	memcpy(to, queue->text + begin, first);
	memcpy((char *)to + first, queue->text, bytes - first);
}

size_t
wf_outlet_queue_room(const struct wf_outlet_queue *queue)
{
	return queue->bytes - (size_t)(wf_outlet_queue_put_at(queue) - queue->popped_at);
}

bool
wf_outlet_queue_is_empty(const struct wf_outlet_queue *queue)
{
	return queue->popped_at == wf_outlet_queue_put_at(queue);
}

bool
wf_outlet_queue_put(struct wf_outlet_queue *queue, const char *line, size_t bytes)
{
	const struct head head = {.bytes = bytes, .dropped = queue->dropped};
	if (wf_outlet_queue_room(queue) < sizeof(head) + bytes) {
		queue->dropped++;
		return false;
	}
	uint64_t at = wf_outlet_queue_put_at(queue);
	copy_in(queue, at, &head, sizeof(head));
	copy_in(queue, at + sizeof(head), line, bytes);
	queue->dropped = 0;
	atomic_store_explicit(&queue->put_at, at + sizeof(head) + bytes,
			      memory_order_release); /* put_at's acquire */
	return true;
}

void
wf_outlet_queue_pop(struct wf_outlet_queue *queue, struct wf_outlet_batch *batch)
{
	batch->bytes = 0;
	batch->lines = 0;
	batch->dropped = queue->lost;
	queue->lost = 0;
	while (!wf_outlet_queue_is_empty(queue)) {
		struct head head;
		copy_out(queue, queue->popped_at, &head, sizeof(head));
		if (batch->lines > 0 &&
		    (head.dropped > 0 || batch->bytes + head.bytes > PIPE_BUF)) {
			return;
		}
		batch->dropped += head.dropped;
		copy_out(queue, queue->popped_at + sizeof(head), batch->text + batch->bytes,
			 head.bytes);
		batch->bytes += head.bytes;
		batch->lines++;
		queue->popped_at += sizeof(head) + head.bytes;
	}
	if (batch->lines == 0) {
		batch->dropped += queue->dropped;
		queue->dropped = 0;
	}
}

void
wf_outlet_queue_settle(struct wf_outlet_queue *queue, uint64_t lost, bool all)
{
	queue->lost += lost;
	queue->popped_at = all ? wf_outlet_queue_put_at(queue) : queue->popped_at;
	atomic_store_explicit(&queue->done_at, queue->popped_at,
			      memory_order_release); /* done_at's acquire */
}
