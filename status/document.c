/* SPDX-License-Identifier: Apache-2.0 */
/* document: see document.h. */
#include "status/document.h"

#include "base/assert.h"

static double
seconds(uint64_t ns)
{
	return (double)ns / 1e9;
}

static void
emit_pserver(struct wf_emit *emit, const struct wf_watch_record *pserver)
{
	if (pserver == NULL) {
		wf_emit_null(emit, "pserver");
		return;
	}
	const uint64_t *value = pserver->value;
	wf_emit_open(emit, "pserver", '{');
	wf_emit_text(emit, "host", pserver->text[WF_PSERVER_HOST]);
	wf_emit_u64(emit, "pid", value[WF_PSERVER_PID]);
	wf_emit_u64(emit, "port", value[WF_PSERVER_PORT]);
	wf_emit_u64(emit, "index", value[WF_PSERVER_IDX]);
	wf_emit_u64(emit, "count", value[WF_PSERVER_COUNT]);
	wf_emit_u64(emit, "dense_lanes", value[WF_PSERVER_DENSE_LANES]);
	wf_emit_u64(emit, "sparse_lanes", value[WF_PSERVER_SPARSE_LANES]);
	wf_emit_f64(emit, "uptime_s",
		    seconds(value[WF_PSERVER_AT_NS] - value[WF_PSERVER_START_AT_NS]));
	wf_emit_close(emit, '}');
}

static void
emit_job(struct wf_emit *emit, const struct wf_summary *summary)
{
	const struct wf_watch_record *first = summary->first;
	wf_emit_open(emit, "job", '{');
	wf_emit_text(emit, "state", wf_summary_job_name(summary->job));
	if (first != NULL) {
		wf_emit_f64(emit, "age_s", seconds(first->value[WF_WLANE_JOB_NS]));
		wf_emit_u64(emit, "trainers", first->value[WF_WLANE_TRAINERS]);
		wf_emit_u64(emit, "trainers_up", first->value[WF_WLANE_TRAINERS_UP]);
		wf_emit_u64(emit, "trainers_lost", first->value[WF_WLANE_TRAINERS_LOST]);
		wf_emit_u64(emit, "trainers_left", first->value[WF_WLANE_TRAINERS_GONE]);
		wf_emit_u64(emit, "step", first->value[WF_WLANE_STEP]);
		wf_emit_u64(emit, "pass", first->value[WF_WLANE_PASS]);
		wf_emit_u64(emit, "samples", first->value[WF_WLANE_SAMPLES]);
		wf_emit_bool(emit, "timed", first->value[WF_WLANE_IS_TIMED] != 0);
	}
	wf_emit_words(emit, "wait", summary->wait);
	wf_emit_f64(emit, "wait_s", seconds(summary->wait_ns));
	wf_emit_words(emit, "cause", summary->cause);
	wf_emit_close(emit, '}');
}

static void
emit_rates(struct wf_emit *emit, const struct wf_summary *summary)
{
	if (summary->over_s <= 0) {
		wf_emit_null(emit, "rates");
		return;
	}
	wf_emit_open(emit, "rates", '{');
	wf_emit_f64(emit, "over_s", summary->over_s);
	wf_emit_f64(emit, "steps_per_s", summary->steps_per_s);
	wf_emit_f64(emit, "received_bytes_per_s", summary->received_per_s);
	wf_emit_f64(emit, "sent_bytes_per_s", summary->sent_per_s);
	wf_emit_f64(emit, "sparse_received_bytes_per_s", summary->sparse_received_per_s);
	wf_emit_f64(emit, "sparse_sent_bytes_per_s", summary->sparse_sent_per_s);
	wf_emit_f64(emit, "keys_pulled_per_s", summary->pulled_per_s);
	wf_emit_f64(emit, "keys_pushed_per_s", summary->pushed_per_s);
	wf_emit_f64(emit, "rows_updated_per_s", summary->updated_per_s);
	wf_emit_close(emit, '}');
}

static void
emit_split(struct wf_emit *emit, const struct wf_split *split)
{
	wf_emit_open(emit, "split", '{');
	wf_emit_f64(emit, "own_ms", split->own_ms);
	wf_emit_f64(emit, "compute_ms", split->compute_ms);
	wf_emit_f64(emit, "network_ms", split->network_ms);
	wf_emit_f64(emit, "ahead_ms", split->ahead_ms);
	wf_emit_f64(emit, "apply_ms", split->apply_ms);
	wf_emit_close(emit, '}');
}

static void
emit_step(struct wf_emit *emit, const struct wf_summary *summary)
{
	bool timed = summary->steps_timed > 0;
	wf_emit_open(emit, "step", '{');
	wf_emit_u64(emit, "timed", summary->steps_timed);
	wf_emit_f64(emit, "p50_ms", timed ? summary->p50_ms : __builtin_nan(""));
	wf_emit_f64(emit, "p99_ms", timed ? summary->p99_ms : __builtin_nan(""));
	emit_split(emit, &summary->split);
	wf_emit_close(emit, '}');
}

static void
emit_member(struct wf_emit *emit, const struct wf_summary_member *member)
{
	const struct wf_watch_record *record = member->record;
	const uint64_t *value = record->value;
	wf_emit_open(emit, NULL, '{');
	wf_emit_u64(emit, "trainer", member->trainer);
	wf_emit_text(emit, "state", wf_summary_state_name(value[WF_MEMBER_STATE]));
	wf_emit_text(emit, "host", record->text[WF_MEMBER_HOST]);
	wf_emit_u64(emit, "pid", value[WF_MEMBER_PID]);
	wf_emit_u64(emit, "step", member->step);
	wf_emit_u64(emit, "lag_steps", member->lag);
	wf_emit_u64(emit, "pass", value[WF_MEMBER_PASS]);
	wf_emit_bool(emit, "out_of_data", value[WF_MEMBER_IS_OUT] != 0);
	wf_emit_open(emit, "waited_for", '[');
	for (unsigned bit = 0; bit < WF_SUMMARY_WAITS; bit++) {
		if ((member->waits >> bit & 1) != 0) {
			wf_emit_text(emit, NULL, wf_summary_wait_name(bit));
		}
	}
	wf_emit_close(emit, ']');
	wf_emit_f64(emit, "silent_s", seconds(member->silent_ns));
	wf_emit_u64(emit, "reconnects", member->reconnects);
	wf_emit_u64(emit, "slots_used", member->slots);
	wf_emit_words(emit, "path", record->text[WF_MEMBER_PATH_NAME]);
	wf_emit_words(emit, "path_why", record->text[WF_MEMBER_PATH_WHY]);
	wf_emit_words(emit, "note", record->text[WF_MEMBER_NOTE]);
	wf_emit_f64(emit, "last_share", member->last_share);
	wf_emit_f64(emit, "behind_ms", member->behind_ms);
	emit_split(emit, &member->split);
	wf_emit_close(emit, '}');
}

static void
emit_members(struct wf_emit *emit, const struct wf_summary *summary)
{
	wf_emit_open(emit, "members", '[');
	for (uint32_t i = 0; i < summary->member_count; i++) {
		if (summary->member[i].record != NULL) {
			emit_member(emit, &summary->member[i]);
		}
	}
	wf_emit_close(emit, ']');
}

static void
emit_counters(struct wf_emit *emit, const uint64_t *value)
{
	static const struct {
		const char *key;
		unsigned idx;
	} field[] = {
		{"steps", WF_WLANE_STEPS},
		{"slices_applied", WF_WLANE_SLICES_APPLIED},
		{"slices_discarded", WF_WLANE_SLICES_DISCARDED},
		{"nonfinite", WF_WLANE_NONFINITE},
		{"received_bytes", WF_WLANE_RECEIVED_BYTES},
		{"sent_bytes", WF_WLANE_SENT_BYTES},
		{"slots_used", WF_WLANE_SLOTS_USED},
		{"slots_granted", WF_WLANE_SLOTS_GRANTED},
		{"slot_bytes", WF_WLANE_SLOT_BYTES},
		{"shard_bytes", WF_WLANE_SHARD_BYTES},
		{"park_bytes", WF_WLANE_PARK_BYTES},
		{"slices_parked", WF_WLANE_SLICES_PARKED},
		{"waits_trainer", WF_WLANE_WAITS_TRAINER},
		{"waits_lent", WF_WLANE_WAITS_LENT},
		{"waits_post", WF_WLANE_WAITS_POST},
		{"waits_announce", WF_WLANE_WAITS_ANNOUNCE},
		{"waits_inbox", WF_WLANE_WAITS_INBOX},
		{"waits_snapshot", WF_WLANE_WAITS_SNAPSHOT},
		{"reconnects", WF_WLANE_RECONNECTS},
		{"refused", WF_WLANE_REFUSED},
		{"strangers", WF_WLANE_STRANGERS},
		{"keys_pulled", WF_WLANE_KEYS_PULLED},
		{"keys_pushed", WF_WLANE_KEYS_PUSHED},
		{"rows_updated", WF_WLANE_ROWS_UPDATED},
		{"pulls_held", WF_WLANE_PULLS_HELD},
	};
	wf_emit_open(emit, "counters", '{');
	for (size_t i = 0; i < WF_ARRAY_COUNT(field); i++) {
		wf_emit_u64(emit, field[i].key, value[field[i].idx]);
	}
	wf_emit_close(emit, '}');
}

static void
emit_lane(struct wf_emit *emit, const struct wf_summary_lane *lane)
{
	const uint64_t *value = lane->record->value;
	wf_emit_open(emit, NULL, '{');
	wf_emit_u64(emit, "lane", lane->record->lane);
	wf_emit_text(emit, "kind", value[WF_WLANE_IS_SPARSE] != 0 ? "sparse" : "dense");
	wf_emit_u64(emit, "port", value[WF_WLANE_PORT]);
	wf_emit_text(emit, "state", wf_summary_job_name((enum wf_watch_job)value[WF_WLANE_JOB]));
	wf_emit_u64(emit, "step", value[WF_WLANE_STEP]);
	wf_emit_words(emit, "wait", lane->record->text[WF_WLANE_WAIT]);
	wf_emit_words(emit, "last_stranger", lane->record->text[WF_WLANE_STRANGER]);
	wf_emit_f64(emit, "steps_per_s", lane->steps_per_s);
	wf_emit_f64(emit, "received_bytes_per_s", lane->received_per_s);
	wf_emit_f64(emit, "sent_bytes_per_s", lane->sent_per_s);
	wf_emit_f64(emit, "poll_share", lane->poll);
	wf_emit_f64(emit, "apply_share", lane->apply);
	wf_emit_f64(emit, "park_share", lane->park);
	wf_emit_f64(emit, "idle_share", lane->idle);
	emit_counters(emit, value);
	wf_emit_close(emit, '}');
}

static void
emit_hot(struct wf_emit *emit, const uint64_t *value)
{
	uint64_t count = value[WF_TAB_HOT_COUNT];
	wf_emit_open(emit, "hot", '[');
	for (uint64_t i = 0; i < count && i < WF_WATCH_HOT_KEYS; i++) {
		wf_emit_open(emit, NULL, '{');
		wf_emit_key(emit, "key", value[WF_TAB_HOT_KEY + i]);
		wf_emit_u64(emit, "times", value[WF_TAB_HOT_TIMES + i]);
		wf_emit_close(emit, '}');
	}
	wf_emit_close(emit, ']');
}

static void
emit_table(struct wf_emit *emit, const struct wf_watch_record *record)
{
	static const struct {
		const char *key;
		unsigned idx;
	} field[] = {
		{"rows", WF_TAB_ROWS},           {"bytes", WF_TAB_BYTES},
		{"row_bytes", WF_TAB_ROW_BYTES}, {"born", WF_TAB_BORN},
		{"refused", WF_TAB_REFUSED},     {"evicted", WF_TAB_EVICTED},
		{"looked_up", WF_TAB_LOOKED_UP}, {"missed", WF_TAB_MISSED},
		{"pushed", WF_TAB_PUSHED},       {"updated", WF_TAB_UPDATED},
	};
	const uint64_t *value = record->value;
	double zipf = value[WF_TAB_ZIPF_MILLI] == UINT64_MAX
			      ? __builtin_nan("")
			      : (double)value[WF_TAB_ZIPF_MILLI] / 1000;
	wf_emit_open(emit, NULL, '{');
	wf_emit_text(emit, "table", record->text[WF_TAB_NAME]);
	wf_emit_u64(emit, "lane", record->lane);
	for (size_t i = 0; i < WF_ARRAY_COUNT(field); i++) {
		wf_emit_u64(emit, field[i].key, value[field[i].idx]);
	}
	wf_emit_f64(emit, "zipf", zipf);
	emit_hot(emit, value);
	wf_emit_close(emit, '}');
}

static void
emit_tables(struct wf_emit *emit, const struct wf_picture *picture)
{
	wf_emit_open(emit, "tables", '[');
	for (uint32_t i = 0; i < picture->count; i++) {
		if (picture->record[i].kind == WF_WATCH_TABLE) {
			emit_table(emit, &picture->record[i]);
		}
	}
	wf_emit_close(emit, ']');
}

static void
emit_snapshots(struct wf_emit *emit, const struct wf_watch_record *pserver)
{
	if (pserver == NULL || pserver->value[WF_PSERVER_HAS_SNAPSHOTS] == 0) {
		wf_emit_null(emit, "snapshots");
		return;
	}
	const uint64_t *value = pserver->value;
	uint64_t age_ns = value[WF_PSERVER_AT_NS] - value[WF_PSERVER_SNAPSHOT_AT_NS];
	bool any = value[WF_PSERVER_SNAPSHOT_STEP] > 0;
	wf_emit_open(emit, "snapshots", '{');
	wf_emit_u64(emit, "written", value[WF_PSERVER_SNAPSHOT_COUNT]);
	wf_emit_u64(emit, "failed", value[WF_PSERVER_SNAPSHOT_FAILED_COUNT]);
	wf_emit_u64(emit, "step", value[WF_PSERVER_SNAPSHOT_STEP]);
	wf_emit_f64(emit, "age_s", any ? seconds(age_ns) : __builtin_nan(""));
	wf_emit_close(emit, '}');
}

static bool
is_of_job(uint64_t what)
{
	return what <= WF_NEWS_JOB_FAILED;
}

/* Of lane 0: every trainer of the job comes to each lane. The newest last. */
static void
emit_news(struct wf_emit *emit, const struct wf_picture *picture, uint64_t at_ns)
{
	wf_emit_open(emit, "news", '[');
	for (uint32_t i = 0; i < picture->count; i++) {
		const struct wf_watch_record *record = &picture->record[i];
		const uint64_t *value = record->value;
		if (record->kind != WF_WATCH_NEWS || record->lane != 0) {
			continue;
		}
		uint64_t ago_ns = at_ns > value[WF_NEWS_AT_NS] ? at_ns - value[WF_NEWS_AT_NS] : 0;
		wf_emit_open(emit, NULL, '{');
		wf_emit_u64(emit, "number", value[WF_NEWS_NUMBER]);
		wf_emit_f64(emit, "ago_s", seconds(ago_ns));
		wf_emit_text(emit, "what", wf_summary_news_name(value[WF_NEWS_WHAT]));
		if (is_of_job(value[WF_NEWS_WHAT])) {
			wf_emit_null(emit, "trainer");
		} else {
			wf_emit_u64(emit, "trainer", value[WF_NEWS_TRAINER]);
		}
		wf_emit_words(emit, "host", record->text[WF_NEWS_HOST]);
		wf_emit_words(emit, "why", record->text[WF_NEWS_WHY]);
		wf_emit_close(emit, '}');
	}
	wf_emit_close(emit, ']');
}

void
wf_document_write(const struct wf_picture *picture, const struct wf_summary *summary,
		  const struct wf_history *history, FILE *out)
{
	struct wf_emit emit = {.out = out};
	const struct wf_watch_record *pserver = summary->pserver;
	wf_emit_open(&emit, NULL, '{');
	wf_emit_text(&emit, "schema", WF_DOCUMENT_SCHEMA);
	wf_emit_words(&emit, "version", pserver != NULL ? pserver->text[WF_PSERVER_VERSION] : "");
	emit_pserver(&emit, pserver);
	emit_job(&emit, summary);
	emit_rates(&emit, summary);
	emit_step(&emit, summary);
	emit_members(&emit, summary);
	wf_emit_open(&emit, "lanes", '[');
	for (uint32_t i = 0; i < summary->lane_count; i++) {
		emit_lane(&emit, &summary->lane[i]);
	}
	wf_emit_close(&emit, ']');
	emit_tables(&emit, picture);
	wf_emit_open(&emit, "memory", '{');
	wf_emit_u64(&emit, "parameters_bytes", summary->shard_bytes);
	wf_emit_u64(&emit, "windows_bytes", summary->slot_bytes);
	wf_emit_u64(&emit, "parked_bytes", summary->park_bytes);
	wf_emit_u64(&emit, "tables_bytes", summary->table_bytes);
	wf_emit_close(&emit, '}');
	emit_snapshots(&emit, pserver);
	emit_news(&emit, picture, pserver != NULL ? pserver->value[WF_PSERVER_AT_NS] : 0);
	if (history != NULL) {
		wf_history_emit(history, &emit);
	}
	wf_emit_close(&emit, '}');
	(void)fputc('\n', out);
}
