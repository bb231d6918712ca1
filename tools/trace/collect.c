/* SPDX-License-Identifier: Apache-2.0 */
/* collect: asks the pservers of a job for what its members record. Thread: main. */
#include <inttypes.h>
#include <stdio.h>

#include "base/url.h"
#include "tools/trace/recording.h"
#include "tools/watch/client.h"

#define DEFAULT_PORT 7164
#define PSERVERS_MAX 256u
#define ASK_AGAIN_NS (WF_NS_PER_S / 20)
#define COLLECT_NS (60 * WF_NS_PER_S)
#define ANSWER_NS (10 * WF_NS_PER_S)

static enum weft_status
add_record(struct wf_recording *recording, const struct wf_watch_record *record)
{
	const uint64_t *value = record->value;
	if (record->kind != WF_WATCH_TRACED || value[WF_WTRACE_IS_TRAINER] > 1 ||
	    value[WF_WTRACE_COUNT] > WF_WATCH_TRACE_EVENTS ||
	    value[WF_WTRACE_PSERVER] > UINT16_MAX) {
		return wf_fail(WEFT_PROTOCOL, "RECORD: kind %" PRIu64 " in the answer to a trace",
			       record->kind);
	}
	bool is_trainer = value[WF_WTRACE_IS_TRAINER] != 0;
	struct wf_recording_member *member = wf_recording_member(
		recording, is_trainer, is_trainer ? 0 : (uint32_t)value[WF_WTRACE_PSERVER],
		(uint32_t)(is_trainer ? record->idx : record->lane));
	enum weft_status st = member != NULL ? WEFT_OK : WEFT_NOMEM;
	if (st == WEFT_OK) {
		member->dropped = value[WF_WTRACE_DROPPED];
		(void)snprintf(member->host, sizeof(member->host), "%s",
			       record->text[WF_WTRACE_HOST]);
	}
	for (uint64_t i = 0; st == WEFT_OK && i < value[WF_WTRACE_COUNT]; i++) {
		const uint64_t *word = &value[WF_WTRACE_EVENT + i * WF_WATCH_TRACE_WORDS];
		const struct wf_trace_event event = {
			.at_ns = word[0],
			.value = word[1],
			.step = (uint32_t)word[2],
			.slice = (uint32_t)(word[2] >> 32),
			.peer = (uint32_t)word[3],
			.what = (uint16_t)(word[3] >> 32),
		};
		st = wf_recording_add(recording, member, &event);
	}
	return st;
}

/* One pserver, as far as it is asked. */
struct source {
	struct wf_watch_client *client;
	bool is_here; /* all that it has */
};

/* Asks once more. */
static enum weft_status
ask_one(struct wf_recording *recording, struct source *source, const struct wf_watch_ask *ask)
{
	struct wf_picture picture = {0};
	enum weft_status st = wf_watch_request(source->client, ask, &picture);
	for (uint32_t i = 0; i < picture.count && st == WEFT_OK; i++) {
		st = add_record(recording, &picture.record[i]);
	}
	source->is_here = picture.count > 0;
	wf_picture_fini(&picture);
	return st;
}

/* Until all have recorded, and everything is here. Each pserver is asked in each round, because its
 * lanes begin when it is first asked. */
static enum weft_status
ask_all(struct wf_recording *recording, struct source *source, unsigned count, uint32_t steps)
{
	const uint64_t id = wf_random(recording->env) | 1;
	uint64_t deadline_ns = wf_now_ns(recording->env) + COLLECT_NS;
	unsigned missing = count;
	enum weft_status st = WEFT_OK;
	while (missing > 0 && st == WEFT_OK) {
		missing = 0;
		for (unsigned i = 0; i < count && st == WEFT_OK; i++) {
			const struct wf_watch_ask ask = {
				.question = WF_WATCH_TRACE,
				.argument = {steps | (i == 0 ? WF_WATCH_TRACE_TRAINERS : 0), id}};
			st = source[i].is_here ? WEFT_OK : ask_one(recording, &source[i], &ask);
			missing += source[i].is_here ? 0 : 1;
		}
		if (st == WEFT_OK && missing > 0 && wf_now_ns(recording->env) > deadline_ns) {
			st = wf_fail(WEFT_TIMEOUT, "the job has not been recorded within %.0f s",
				     (double)COLLECT_NS / 1e9);
		}
		if (st == WEFT_OK && missing > 0) {
			wf_wait(recording->env, -1, wf_now_ns(recording->env) + ASK_AGAIN_NS);
		}
	}
	return st;
}

enum weft_status
wf_recording_collect(struct wf_recording *recording, const char *at, const char *secret_file,
		     uint32_t steps)
{
	struct wf_host host[PSERVERS_MAX];
	struct source source[PSERVERS_MAX] = {{0}};
	unsigned count = 0;
	unsigned open = 0;
	recording->steps = steps;
	enum weft_status st = wf_host_list_parse(at, DEFAULT_PORT, host, PSERVERS_MAX, &count);
	for (; st == WEFT_OK && open < count; open += st == WEFT_OK ? 1 : 0) {
		const struct wf_watch_opts opts = {.env = recording->env,
						   .host = host[open],
						   .secret_file = secret_file,
						   .timeout_ns = ANSWER_NS};
		st = wf_watch_open(&opts, &source[open].client);
	}
	st = st == WEFT_OK ? ask_all(recording, source, count, steps) : st;
	for (unsigned i = 0; i < open; i++) {
		wf_watch_client_close(source[i].client);
	}
	return st;
}
