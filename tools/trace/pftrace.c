/* SPDX-License-Identifier: Apache-2.0 */
/* pftrace: see pftrace.h. Fields are those of Perfetto's protos/perfetto/trace/trace_packet.proto
 * and track_event/(track_event, track_descriptor, debug_annotation).proto. Thread: main.
 *
 * Slices of one track have to nest, and pushes overlap: so a step is a slice, and what becomes of a
 * push are instants, which arrows tie together. */
#include "tools/trace/pftrace.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/assert.h"
#include "tools/trace/proto.h"
#include "wire/little.h"

#define FILE_BYTES_MAX (1ull << 32)
#define EVENT_BYTES 32u

/* Numbers of fields. */
enum {
	TRACE_PACKET = 1,

	PACKET_TIMESTAMP = 8,
	PACKET_SEQUENCE_ID = 10,
	PACKET_TRACK_EVENT = 11,
	PACKET_TRACK_DESCRIPTOR = 60,
	PACKET_WEFT = 15000, /* ours: a member of the recording */

	TRACK_UUID = 1,
	TRACK_NAME = 2,
	TRACK_PROCESS = 3,
	TRACK_PARENT_UUID = 5,

	PROCESS_PID = 1,
	PROCESS_NAME = 6,

	EVENT_ANNOTATION = 4,
	EVENT_TYPE = 9,
	EVENT_TRACK_UUID = 11,
	EVENT_CATEGORY = 22,
	EVENT_NAME = 23,
	EVENT_FLOW_ID = 47,
	EVENT_LAST_FLOW_ID = 48,

	ANNOTATION_UINT = 3,
	ANNOTATION_NAME = 10,

	WEFT_IS_TRAINER = 1,
	WEFT_PSERVER = 2,
	WEFT_IDX = 3,
	WEFT_DROPPED = 4,
	WEFT_HOST = 5,
	WEFT_EVENT = 6, /* 32 bytes: u64 at_ns, value; u32 step, slice, peer, what */
};

/* Values of EVENT_TYPE. */
enum event_type {
	SLICE_BEGIN = 1,
	SLICE_END = 2,
	INSTANT = 3,
};

#define SEQUENCE_ID 1

struct output {
	struct wf_proto_writer writer;
	const struct wf_recording *recording;
	const struct wf_pushes *pushes;
};

/* A member has a track for its steps, and a trainer one more for what goes to each lane. */
static uint64_t
track_of(const struct output *out, uint32_t member, uint32_t lane)
{
	uint64_t lanes = out->recording->count + 1;
	return 1 + member * lanes + (lane == UINT32_MAX ? 0 : lane + 1);
}

static void
write_track(struct output *out, uint64_t uuid, uint64_t parent, const char *name, bool is_process)
{
	struct wf_proto_writer *w = &out->writer;
	size_t packet = wf_proto_begin(w, TRACE_PACKET);
	wf_proto_varint(w, PACKET_SEQUENCE_ID, SEQUENCE_ID);
	size_t track = wf_proto_begin(w, PACKET_TRACK_DESCRIPTOR);
	wf_proto_varint(w, TRACK_UUID, uuid);
	if (parent != 0) {
		wf_proto_varint(w, TRACK_PARENT_UUID, parent);
	}
	if (is_process) {
		size_t process = wf_proto_begin(w, TRACK_PROCESS);
		wf_proto_varint(w, PROCESS_PID, uuid);
		wf_proto_text(w, PROCESS_NAME, name);
		wf_proto_end(w, process);
	} else {
		wf_proto_text(w, TRACK_NAME, name);
	}
	wf_proto_end(w, track);
	wf_proto_end(w, packet);
}

/* With the host, and by how much its clock may be wrong. */
static void
format_member(const struct output *out, uint32_t m, char *name, size_t bytes)
{
	const struct wf_recording_member *member = &out->recording->member[m];
	char who[64];
	char clock[64] = ", its clock is not known";
	wf_recording_name(out->recording, member, who, sizeof(who));
	if (member->has_clock) {
		(void)snprintf(clock, sizeof(clock), ", clock +-%.1f us",
			       (double)member->error_ns / 1e3);
	}
	bool has_host = member->host[0] != '\0';
	(void)snprintf(name, bytes, "%s%s%.60s%s%s", who, has_host ? " (" : "", member->host,
		       has_host ? ")" : "", clock);
}

static void
write_tracks(struct output *out)
{
	for (uint32_t m = 0; m < out->recording->count; m++) {
		char name[256];
		uint64_t own = track_of(out, m, UINT32_MAX);
		format_member(out, m, name, sizeof(name));
		write_track(out, own, 0, name, true);
		for (uint32_t l = 0;
		     out->recording->member[m].is_trainer && l < out->recording->count; l++) {
			const struct wf_recording_member *lane = &out->recording->member[l];
			char to[80] = "to ";
			if (!lane->is_trainer) {
				wf_recording_name(out->recording, lane, to + 3, sizeof(to) - 3);
				write_track(out, track_of(out, m, l), own, to, false);
			}
		}
	}
}

static void
annotate(struct wf_proto_writer *w, const char *name, uint64_t value)
{
	size_t annotation = wf_proto_begin(w, EVENT_ANNOTATION);
	wf_proto_text(w, ANNOTATION_NAME, name);
	wf_proto_varint(w, ANNOTATION_UINT, value);
	wf_proto_end(w, annotation);
}

struct open_event {
	size_t packet, event;
};

static struct open_event
begin_event(struct output *out, enum event_type type, uint64_t track, uint64_t at_ns,
	    const char *category, const char *name)
{
	struct wf_proto_writer *w = &out->writer;
	struct open_event open = {.packet = wf_proto_begin(w, TRACE_PACKET)};
	wf_proto_varint(w, PACKET_TIMESTAMP, at_ns);
	wf_proto_varint(w, PACKET_SEQUENCE_ID, SEQUENCE_ID);
	open.event = wf_proto_begin(w, PACKET_TRACK_EVENT);
	wf_proto_varint(w, EVENT_TYPE, type);
	wf_proto_varint(w, EVENT_TRACK_UUID, track);
	if (name != NULL) {
		wf_proto_text(w, EVENT_CATEGORY, category);
		wf_proto_text(w, EVENT_NAME, name);
	}
	return open;
}

static void
end_event(struct output *out, const struct open_event *open)
{
	wf_proto_end(&out->writer, open->event);
	wf_proto_end(&out->writer, open->packet);
}

/* [from, to] with a name; nothing if it would overlap what came before: `*free_ns`. */
static void
write_slice(struct output *out, uint64_t track, uint64_t from_ns, uint64_t to_ns,
	    const char *category, const char *name, uint32_t step, uint64_t *free_ns)
{
	if (from_ns == 0 || to_ns < from_ns || from_ns < *free_ns) {
		return;
	}
	struct open_event open = begin_event(out, SLICE_BEGIN, track, from_ns, category, name);
	annotate(&out->writer, "step", step);
	end_event(out, &open);
	open = begin_event(out, SLICE_END, track, to_ns, NULL, NULL);
	end_event(out, &open);
	*free_ns = to_ns;
}

/* What becomes of pushes, and other moments. */
static const struct {
	const char *name, *category;
} kinds[WF_TRACE_KINDS] = {
	[WF_TRACE_STEP_BEGUN] = {"step begun", "step"},
	[WF_TRACE_QUEUED] = {"push asked for", "push"},
	[WF_TRACE_STEP_POSTED] = {"STEP posted", "step"},
	[WF_TRACE_POSTED] = {"push posted", "push"},
	[WF_TRACE_SENT] = {"push sent", "push"},
	[WF_TRACE_ANSWERED] = {"answer arrived", "answer"},
	[WF_TRACE_MARKED] = {"clock of the lane", "clock"},
	[WF_TRACE_STEP_ARRIVED] = {"STEP arrived", "step"},
	[WF_TRACE_ARRIVED] = {"push arrived", "push"},
	[WF_TRACE_PARKED] = {"push parked", "push"},
	[WF_TRACE_APPLIED] = {"applied", "apply"},
	[WF_TRACE_ANSWER_POSTED] = {"answer posted", "answer"},
	[WF_TRACE_STEP_DONE] = {"step done", "step"},
	[WF_TRACE_CPU_NS] = {"CPU time", "usage"},
	[WF_TRACE_RUN_QUEUE_NS] = {"time on a run queue", "usage"},
	[WF_TRACE_MAJOR_FAULTS] = {"major faults", "usage"},
	[WF_TRACE_ROWS_ASKED] = {"rows asked for", "rows"},
	[WF_TRACE_ROWS_ANSWERED] = {"rows arrived", "rows"},
	[WF_TRACE_ROWS_PULLED] = {"request for rows arrived", "rows"},
	[WF_TRACE_HOT_KEY] = {"hot key", "rows"},
	[WF_TRACE_SERVICE] = {"service", "usage"},
	[WF_TRACE_DEVICES] = {"accelerators open", "usage"},
};

static bool
is_at(const struct output *out, const struct wf_pushed *push, uint32_t m,
      const struct wf_trace_event *event)
{
	const struct wf_recording_member *member = &out->recording->member[m];
	if (push->step != event->step || push->slice != event->slice) {
		return false;
	}
	if (!member->is_trainer) {
		return push->lane == m &&
		       (event->peer == WF_TRACE_ALL ||
			out->recording->member[push->trainer].idx == event->peer);
	}
	const struct wf_recording_member *lane = &out->recording->member[push->lane];
	return push->trainer == m && wf_trace_lane(lane->pserver, lane->idx) == event->peer;
}

/* The first push of a step. */
static uint32_t
first_of(const struct wf_pushes *pushes, uint32_t step)
{
	uint32_t low = 0;
	uint32_t high = pushes->count;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (pushes->all[middle].step < step) {
			low = middle + 1;
		} else {
			high = middle;
		}
	}
	return low;
}

/* The arrows that begin, go on or end at the event: one for each push that it is about. */
static void
write_flows(struct output *out, uint32_t m, const struct wf_trace_event *event)
{
	bool has = event->what == WF_TRACE_POSTED || event->what == WF_TRACE_ARRIVED ||
		   event->what == WF_TRACE_APPLIED || event->what == WF_TRACE_ANSWER_POSTED ||
		   event->what == WF_TRACE_ANSWERED;
	const struct wf_pushes *pushes = out->pushes;
	for (uint32_t i = first_of(pushes, event->step);
	     has && i < pushes->count && pushes->all[i].step == event->step; i++) {
		if (is_at(out, &pushes->all[i], m, event)) {
			bool is_last = event->what == WF_TRACE_ANSWERED;
			wf_proto_fixed64(&out->writer, is_last ? EVENT_LAST_FLOW_ID : EVENT_FLOW_ID,
					 i + 1ull);
		}
	}
}

static uint32_t
lane_member(const struct output *out, uint32_t peer)
{
	for (uint32_t i = 0; i < out->recording->count; i++) {
		const struct wf_recording_member *member = &out->recording->member[i];
		if (!member->is_trainer && wf_trace_lane(member->pserver, member->idx) == peer) {
			return i;
		}
	}
	return UINT32_MAX;
}

static void
write_instant(struct output *out, uint32_t m, const struct wf_trace_event *event)
{
	const struct wf_recording_member *member = &out->recording->member[m];
	bool is_rows = event->what == WF_TRACE_ROWS_ASKED || event->what == WF_TRACE_ROWS_ANSWERED;
	bool of_lane = member->is_trainer && event->what != WF_TRACE_STEP_BEGUN &&
		       (event->what < WF_TRACE_STEP_ARRIVED || is_rows);
	uint64_t track = track_of(out, m, of_lane ? lane_member(out, event->peer) : UINT32_MAX);
	struct open_event open = begin_event(out, INSTANT, track, event->at_ns,
					     kinds[event->what].category, kinds[event->what].name);
	annotate(&out->writer, "step", event->step);
	annotate(&out->writer, "slice", event->slice);
	if (event->peer != WF_TRACE_ALL && !member->is_trainer) {
		bool is_key = event->what == WF_TRACE_HOT_KEY;
		annotate(&out->writer, is_key ? "table" : "trainer", event->peer);
	}
	if (event->value != 0) {
		annotate(&out->writer, "value", event->value);
	}
	write_flows(out, m, event);
	end_event(out, &open);
}

/* A lane's steps: from the first STEP to the end. */
static void
write_lane_steps(struct output *out, uint32_t m)
{
	const struct wf_recording_member *member = &out->recording->member[m];
	uint64_t begun_ns = 0;
	uint64_t free_ns = 0;
	uint32_t step = 0;
	for (uint32_t i = 0; i < member->count; i++) {
		const struct wf_trace_event *event = &member->event[i];
		if (event->what == WF_TRACE_STEP_ARRIVED && (begun_ns == 0 || event->step > step)) {
			begun_ns = event->at_ns;
			step = event->step;
		} else if (event->what == WF_TRACE_STEP_DONE && event->step == step) {
			char name[32];
			(void)snprintf(name, sizeof(name), "step %u", step);
			write_slice(out, track_of(out, m, UINT32_MAX), begun_ns, event->at_ns,
				    "step", name, step, &free_ns);
			begun_ns = 0;
		}
	}
}

/* A trainer's steps: it computes from the last answer to the last push, and waits until the answers
 * are here. */
static void
write_trainer_steps(struct output *out, uint32_t m)
{
	const struct wf_pushes *pushes = out->pushes;
	uint64_t track = track_of(out, m, UINT32_MAX);
	uint64_t answered_ns = 0;
	uint64_t free_ns = 0;
	for (uint32_t i = 0, n; i < pushes->count; i += n) {
		uint32_t step = pushes->all[i].step;
		uint64_t pushed_ns = 0;
		uint64_t last_ns = 0;
		char name[48];
		for (n = 0; i + n < pushes->count && pushes->all[i + n].step == step; n++) {
			const struct wf_pushed *push = &pushes->all[i + n];
			bool is_its = push->trainer == m;
			pushed_ns =
				is_its && push->queued_ns > pushed_ns ? push->queued_ns : pushed_ns;
			last_ns =
				is_its && push->answered_ns > last_ns ? push->answered_ns : last_ns;
		}
		(void)snprintf(name, sizeof(name), "compute, step %u", step);
		write_slice(out, track, answered_ns, pushed_ns, "compute", name, step, &free_ns);
		(void)snprintf(name, sizeof(name), "wait for answers, step %u", step);
		write_slice(out, track, pushed_ns, last_ns, "wait", name, step, &free_ns);
		answered_ns = last_ns;
	}
}

/* The recording itself. */
static void
write_own(struct output *out, uint32_t m)
{
	const struct wf_recording_member *member = &out->recording->member[m];
	struct wf_proto_writer *w = &out->writer;
	size_t packet = wf_proto_begin(w, TRACE_PACKET);
	size_t own = wf_proto_begin(w, PACKET_WEFT);
	wf_proto_varint(w, WEFT_IS_TRAINER, member->is_trainer);
	wf_proto_varint(w, WEFT_PSERVER, member->pserver);
	wf_proto_varint(w, WEFT_IDX, member->idx);
	wf_proto_varint(w, WEFT_DROPPED, member->dropped);
	wf_proto_text(w, WEFT_HOST, member->host);
	for (uint32_t i = 0; i < member->count; i++) {
		const struct wf_trace_event *event = &member->event[i];
		uint8_t bytes[EVENT_BYTES];
		wf_store_u64(bytes, event->at_ns);
		wf_store_u64(bytes + 8, event->value);
		wf_store_u32(bytes + 16, event->step);
		wf_store_u32(bytes + 20, event->slice);
		wf_store_u32(bytes + 24, event->peer);
		wf_store_u32(bytes + 28, event->what);
		wf_proto_bytes(w, WEFT_EVENT, bytes, sizeof(bytes));
	}
	wf_proto_end(w, own);
	wf_proto_end(w, packet);
}

static void
write_all(struct output *out)
{
	write_tracks(out);
	for (uint32_t m = 0; m < out->recording->count; m++) {
		const struct wf_recording_member *member = &out->recording->member[m];
		if (member->is_trainer) {
			write_trainer_steps(out, m);
		} else {
			write_lane_steps(out, m);
		}
		for (uint32_t i = 0; i < member->count; i++) {
			write_instant(out, m, &member->event[i]);
		}
		write_own(out, m);
	}
}

static enum weft_status
save(const char *path, const struct wf_proto_writer *writer)
{
	FILE *file = fopen(path, "wb");
	if (file == NULL) {
		return wf_fail(WEFT_IO, "cannot write %.200s: %s", path, strerror(errno));
	}
	bool wrote = fwrite(writer->bytes, 1, writer->used, file) == writer->used;
	bool closed = fclose(file) == 0;
	return wrote && closed ? WEFT_OK
			       : wf_fail(WEFT_IO, "cannot write %.200s: %s", path, strerror(errno));
}

enum weft_status
wf_pftrace_write(const char *path, const struct wf_recording *recording,
		 const struct wf_pushes *pushes)
{
	struct output out = {
		.writer = {.env = recording->env}, .recording = recording, .pushes = pushes};
	write_all(&out);
	enum weft_status st = out.writer.bad ? wf_fail(WEFT_NOMEM, "no memory for the timeline")
					     : save(path, &out.writer);
	wf_proto_fini(&out.writer);
	return st;
}

/* ---- reading ---- */

static enum weft_status
damaged(const char *path)
{
	return wf_fail(WEFT_DATA, "%.200s is no file that weft trace has written, or is damaged",
		       path);
}

struct own_head {
	uint64_t is_trainer, pserver, idx, dropped;
	char host[WF_REASON_BYTES];
};

static bool
read_head(struct wf_proto_reader reader, struct own_head *head)
{
	struct wf_proto_field field;
	*head = (struct own_head){0};
	while (wf_proto_next(&reader, &field)) {
		if (field.number == WEFT_IS_TRAINER && !field.is_bytes) {
			head->is_trainer = field.value;
		} else if (field.number == WEFT_PSERVER && !field.is_bytes) {
			head->pserver = field.value;
		} else if (field.number == WEFT_IDX && !field.is_bytes) {
			head->idx = field.value;
		} else if (field.number == WEFT_DROPPED && !field.is_bytes) {
			head->dropped = field.value;
		} else if (field.number == WEFT_HOST && field.is_bytes) {
			if (field.count >= sizeof(head->host)) {
				return false;
			}
			memcpy(head->host, field.bytes, field.count);
			head->host[field.count] = '\0';
		}
	}
	for (const char *c = head->host; *c != '\0'; c++) {
		if (*c < ' ' || *c > '~') {
			return false; /* it is printed */
		}
	}
	return !reader.bad && head->is_trainer <= 1 && head->pserver <= UINT16_MAX &&
	       head->idx <= UINT16_MAX;
}

static enum weft_status
read_own(const char *path, struct wf_proto_reader reader, struct wf_recording *recording)
{
	struct own_head head;
	struct wf_proto_field field;
	if (!read_head(reader, &head)) {
		return damaged(path);
	}
	struct wf_recording_member *member = wf_recording_member(
		recording, head.is_trainer != 0, (uint32_t)head.pserver, (uint32_t)head.idx);
	if (member == NULL) {
		return WEFT_NOMEM;
	}
	enum weft_status st = WEFT_OK;
	member->dropped = head.dropped;
	(void)snprintf(member->host, sizeof(member->host), "%s", head.host);
	while (st == WEFT_OK && wf_proto_next(&reader, &field)) {
		if (field.number != WEFT_EVENT) {
			continue;
		}
		if (!field.is_bytes || field.count != EVENT_BYTES ||
		    wf_load_u32(field.bytes + 28) > UINT16_MAX) {
			return damaged(path);
		}
		const struct wf_trace_event event = {
			.at_ns = wf_load_u64(field.bytes),
			.value = wf_load_u64(field.bytes + 8),
			.step = wf_load_u32(field.bytes + 16),
			.slice = wf_load_u32(field.bytes + 20),
			.peer = wf_load_u32(field.bytes + 24),
			.what = (uint16_t)wf_load_u32(field.bytes + 28),
		};
		st = wf_recording_add(recording, member, &event);
	}
	return st;
}

static enum weft_status
parse(const char *path, const uint8_t *bytes, size_t count, struct wf_recording *recording)
{
	struct wf_proto_reader file = {.bytes = bytes, .count = count};
	struct wf_proto_field field;
	enum weft_status st = WEFT_OK;
	while (st == WEFT_OK && wf_proto_next(&file, &field)) {
		struct wf_proto_reader packet = {.bytes = field.bytes, .count = field.count};
		if (field.number != TRACE_PACKET || !field.is_bytes) {
			return damaged(path);
		}
		while (st == WEFT_OK && wf_proto_next(&packet, &field)) {
			if (field.number == PACKET_WEFT && field.is_bytes) {
				st = read_own(path,
					      (struct wf_proto_reader){.bytes = field.bytes,
								       .count = field.count},
					      recording);
			}
		}
		st = st == WEFT_OK && packet.bad ? damaged(path) : st;
	}
	return st == WEFT_OK && (file.bad || recording->count == 0) ? damaged(path) : st;
}

enum weft_status
wf_pftrace_read(const char *path, struct wf_recording *recording)
{
	FILE *file = fopen(path, "rb");
	struct stat about;
	if (file == NULL || fstat(fileno(file), &about) != 0) {
		enum weft_status st =
			wf_fail(WEFT_IO, "cannot read %.200s: %s", path, strerror(errno));
		if (file != NULL) {
			(void)fclose(file);
		}
		return st;
	}
	enum weft_status st = WEFT_OK;
	uint8_t *bytes = NULL;
	size_t count = (size_t)about.st_size;
	if (!S_ISREG(about.st_mode) || about.st_size <= 0 ||
	    (uint64_t)about.st_size > FILE_BYTES_MAX) {
		st = damaged(path);
	} else if ((bytes = wf_zalloc(recording->env, count)) == NULL) {
		st = wf_fail(WEFT_NOMEM, "%.200s: no memory for %zu bytes", path, count);
	} else if (fread(bytes, 1, count, file) != count) {
		st = wf_fail(WEFT_IO, "cannot read %.200s: %s", path, strerror(errno));
	}
	(void)fclose(file);
	st = st == WEFT_OK ? parse(path, bytes, count, recording) : st;
	wf_free(recording->env, bytes, count);
	return st;
}
