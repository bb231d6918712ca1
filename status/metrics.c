/* SPDX-License-Identifier: Apache-2.0 */
/* metrics: see metrics.h. One family after the other, each with all its series behind its HELP and
 * TYPE, as the format wants it. */
#include "status/metrics.h"

#include <inttypes.h>
#include <math.h>
#include <sys/resource.h>

#include "base/assert.h"

enum type {
	GAUGE,
	COUNTER,
};

static void
head(FILE *out, const char *name, enum type type, const char *help)
{
	(void)fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name,
		      type == COUNTER ? "counter" : "gauge");
}

/* A value in the escapes of a label. */
static void
put_label(FILE *out, const char *text)
{
	for (; *text != '\0'; text++) {
		if (*text == '"' || *text == '\\') {
			(void)fputc('\\', out);
		}
		(void)fputc(*text >= 0x20 && *text <= 0x7e ? *text : '?', out);
	}
}

/* A family with a series for each lane. */
struct lane_family {
	const char *name, *help;
	enum type type;
	unsigned idx;
	double unit; /* what one of the record's is in the family's */
};

static const struct lane_family lane_family[] = {
	{"weft_step", "Last step that the lane has applied.", GAUGE, WF_WLANE_STEP, 1},
	{"weft_pass", "Pass over the data that the lane is in.", GAUGE, WF_WLANE_PASS, 1},
	{"weft_steps_total", "Steps that the lane has applied.", COUNTER, WF_WLANE_STEPS, 1},
	{"weft_slices_applied_total", "Slices of tensors that were applied.", COUNTER,
	 WF_WLANE_SLICES_APPLIED, 1},
	{"weft_slices_discarded_total", "Pushes of slices that came too late.", COUNTER,
	 WF_WLANE_SLICES_DISCARDED, 1},
	{"weft_gradients_nonfinite_total", "Elements of gradients that were not finite.", COUNTER,
	 WF_WLANE_NONFINITE, 1},
	{"weft_received_bytes_total", "Bytes received, heads of messages included.", COUNTER,
	 WF_WLANE_RECEIVED_BYTES, 1},
	{"weft_sent_bytes_total", "Bytes sent, heads of messages included.", COUNTER,
	 WF_WLANE_SENT_BYTES, 1},
	{"weft_messages_received_total", "Messages received.", COUNTER, WF_WLANE_MESSAGES_RECEIVED,
	 1},
	{"weft_messages_sent_total", "Messages sent.", COUNTER, WF_WLANE_MESSAGES_SENT, 1},
	{"weft_puts_received_total", "One-sided writes received.", COUNTER, WF_WLANE_PUTS_RECEIVED,
	 1},
	{"weft_puts_sent_total", "One-sided writes sent.", COUNTER, WF_WLANE_PUTS_SENT, 1},
	{"weft_slots_used", "Buffers of the trainers' windows that hold gradients.", GAUGE,
	 WF_WLANE_SLOTS_USED, 1},
	{"weft_slots_granted", "Buffers of the trainers' windows.", GAUGE, WF_WLANE_SLOTS_GRANTED,
	 1},
	{"weft_window_bytes", "Memory of the trainers' windows.", GAUGE, WF_WLANE_SLOT_BYTES, 1},
	{"weft_shard_bytes", "Memory of parameters and optimizer state, or of tables.", GAUGE,
	 WF_WLANE_SHARD_BYTES, 1},
	{"weft_parked_bytes", "Gradients that are copied aside until others have come.", GAUGE,
	 WF_WLANE_PARK_BYTES, 1},
	{"weft_slices_parked_total", "Slices that were copied aside.", COUNTER,
	 WF_WLANE_SLICES_PARKED, 1},
	{"weft_reconnects_total", "Trainers that have come back to the lane.", COUNTER,
	 WF_WLANE_RECONNECTS, 1},
	{"weft_hellos_refused_total", "Trainers that were refused.", COUNTER, WF_WLANE_REFUSED, 1},
	{"weft_strangers_closed_total", "Connections closed before a valid hello.", COUNTER,
	 WF_WLANE_STRANGERS, 1},
	{"weft_straggler_wait_seconds_total",
	 "Time that steps have waited for their last trainer alone.", COUNTER,
	 WF_WLANE_STRAGGLER_NS, 1e-9},
	{"weft_keys_pulled_total", "Keys of rows that were read.", COUNTER, WF_WLANE_KEYS_PULLED,
	 1},
	{"weft_keys_pushed_total", "Keys of rows with a gradient.", COUNTER, WF_WLANE_KEYS_PUSHED,
	 1},
	{"weft_rows_updated_total", "Rows that were updated.", COUNTER, WF_WLANE_ROWS_UPDATED, 1},
	{"weft_pulls_held_total", "Pulls of rows that waited for their step.", COUNTER,
	 WF_WLANE_PULLS_HELD, 1},
	{"weft_pushes_discarded_total", "Pushes of rows that came too late.", COUNTER,
	 WF_WLANE_PUSHES_DISCARDED, 1},
	{"weft_pulls_refused_total", "Pulls and pushes of rows that were refused.", COUNTER,
	 WF_WLANE_PULLS_REFUSED, 1},
};

static void
put_lane(FILE *out, const struct wf_watch_record *record)
{
	(void)fprintf(out, "lane=\"%" PRIu64 "\",kind=\"%s\"", record->lane,
		      record->value[WF_WLANE_IS_SPARSE] != 0 ? "sparse" : "dense");
}

static void
put_lane_value(FILE *out, const struct wf_summary_lane *lane, const struct lane_family *family)
{
	uint64_t value = lane->record->value[family->idx];
	(void)fprintf(out, "%s{", family->name);
	put_lane(out, lane->record);
	if (family->unit < 1) {
		(void)fprintf(out, "} %.9f\n", (double)value * family->unit);
	} else {
		(void)fprintf(out, "} %" PRIu64 "\n", value);
	}
}

static void
write_lanes(const struct wf_summary *summary, FILE *out)
{
	for (size_t i = 0; i < WF_ARRAY_COUNT(lane_family); i++) {
		const struct lane_family *family = &lane_family[i];
		head(out, family->name, family->type, family->help);
		for (uint32_t l = 0; l < summary->lane_count; l++) {
			put_lane_value(out, &summary->lane[l], family);
		}
	}
}

/* Families whose series differ in one more label. */
struct labelled {
	const char *label;
	unsigned idx;
};

static void
write_labelled(const struct wf_summary *summary, FILE *out, const char *name, const char *key,
	       const struct labelled *label, size_t count, double unit)
{
	for (uint32_t l = 0; l < summary->lane_count; l++) {
		const struct wf_watch_record *record = summary->lane[l].record;
		for (size_t i = 0; i < count; i++) {
			double value = (double)record->value[label[i].idx] * unit;
			(void)fprintf(out, "%s{", name);
			put_lane(out, record);
			(void)fprintf(out, ",%s=\"%s\"} %.*f\n", key, label[i].label,
				      unit < 1 ? 9 : 0, value);
		}
	}
}

static void
write_waits(const struct wf_summary *summary, FILE *out)
{
	static const struct labelled now[] = {
		{"start", WF_WLANE_WAIT_START_NS},
		{"answers", WF_WLANE_WAIT_HOLDS_NS},
		{"step", WF_WLANE_WAIT_STEP_NS},
		{"reduce", WF_WLANE_WAIT_REDUCE_NS},
	};
	static const struct labelled ever[] = {
		{"trainer", WF_WLANE_WAITS_TRAINER}, {"lent", WF_WLANE_WAITS_LENT},
		{"post", WF_WLANE_WAITS_POST},       {"announce", WF_WLANE_WAITS_ANNOUNCE},
		{"inbox", WF_WLANE_WAITS_INBOX},     {"snapshot", WF_WLANE_WAITS_SNAPSHOT},
	};
	static const struct labelled busy[] = {
		{"poll", WF_WLANE_POLL_NS},
		{"apply", WF_WLANE_APPLY_NS},
		{"park", WF_WLANE_PARK_NS},
		{"idle", WF_WLANE_IDLE_NS},
	};
	head(out, "weft_wait_seconds", GAUGE,
	     "How long the lane has waited for trainers by now; 0: it does not.");
	write_labelled(summary, out, "weft_wait_seconds", "reason", now, WF_ARRAY_COUNT(now), 1e-9);
	head(out, "weft_waits_total", COUNTER, "Gradients, or posts, that had to wait.");
	write_labelled(summary, out, "weft_waits_total", "reason", ever, WF_ARRAY_COUNT(ever), 1);
	head(out, "weft_lane_seconds_total", COUNTER, "Where the time of the lane's thread went.");
	write_labelled(summary, out, "weft_lane_seconds_total", "activity", busy,
		       WF_ARRAY_COUNT(busy), 1e-9);
}

static void
write_histogram(const struct wf_summary *summary, FILE *out)
{
	(void)fprintf(out, "# HELP weft_step_seconds Time of a step, from the first STEP to the "
			   "end.\n# TYPE weft_step_seconds histogram\n");
	for (uint32_t l = 0; l < summary->lane_count; l++) {
		const struct wf_watch_record *record = summary->lane[l].record;
		for (unsigned i = 0; i < WF_WATCH_BUCKETS; i++) {
			uint64_t upper_ns = wf_watch_bucket_ns(i);
			(void)fputs("weft_step_seconds_bucket{", out);
			put_lane(out, record);
			if (upper_ns == UINT64_MAX) {
				(void)fputs(",le=\"+Inf\"} ", out);
			} else {
				(void)fprintf(out, ",le=\"%g\"} ", (double)upper_ns / 1e9);
			}
			(void)fprintf(out, "%" PRIu64 "\n", record->value[WF_WLANE_BUCKET + i]);
		}
		(void)fputs("weft_step_seconds_sum{", out);
		put_lane(out, record);
		(void)fprintf(out, "} %.9f\n", (double)record->value[WF_WLANE_STEP_SUM_NS] / 1e9);
		(void)fputs("weft_step_seconds_count{", out);
		put_lane(out, record);
		(void)fprintf(out, "} %" PRIu64 "\n", record->value[WF_WLANE_BUCKET_LAST]);
	}
}

/* A family with a series for each trainer. */
static void
write_member_family(const struct wf_summary *summary, FILE *out, const char *name, enum type type,
		    const char *help, double (*value)(const struct wf_summary_member *member))
{
	head(out, name, type, help);
	for (uint32_t i = 0; i < summary->member_count; i++) {
		const struct wf_summary_member *member = &summary->member[i];
		if (member->record != NULL) {
			(void)fprintf(out, "%s{trainer=\"%u\"} %.*f\n", name, member->trainer,
				      type == COUNTER ? 9 : 3, value(member));
		}
	}
}

static double
member_up(const struct wf_summary_member *member)
{
	return member->record->value[WF_MEMBER_STATE] == WF_WATCH_UP ? 1 : 0;
}

static double
member_step(const struct wf_summary_member *member)
{
	return (double)member->step;
}

static double
member_lag(const struct wf_summary_member *member)
{
	return (double)member->lag;
}

static double
member_silent(const struct wf_summary_member *member)
{
	return (double)member->silent_ns / 1e9;
}

static double
member_compute(const struct wf_summary_member *member)
{
	return (double)member->sums.compute_ns / 1e9;
}

static double
member_network(const struct wf_summary_member *member)
{
	return (double)member->sums.network_ns / 1e9;
}

static double
member_own(const struct wf_summary_member *member)
{
	return (double)member->sums.arrive_ns / 1e9;
}

static double
member_ahead(const struct wf_summary_member *member)
{
	return (double)member->sums.ahead_ns / 1e9;
}

static double
member_behind(const struct wf_summary_member *member)
{
	return (double)member->sums.next_ns / 1e9;
}

static double
member_last(const struct wf_summary_member *member)
{
	return (double)member->sums.last;
}

static void
write_members(const struct wf_summary *summary, FILE *out)
{
	static const struct {
		const char *name;
		enum type type;
		const char *help;
		double (*value)(const struct wf_summary_member *member);
	} family[] = {
		{"weft_trainer_up", GAUGE, "Whether the trainer is connected.", member_up},
		{"weft_trainer_step", GAUGE, "Last step that the trainer has announced.",
		 member_step},
		{"weft_trainer_lag_steps", GAUGE, "Steps behind the foremost trainer.", member_lag},
		{"weft_trainer_silent_seconds", GAUGE,
		 "How long the trainer has not answered a heartbeat; 0: it has.", member_silent},
		{"weft_trainer_own_seconds_total", COUNTER,
		 "From the end of a step to the trainer's last gradient of the next one.",
		 member_own},
		{"weft_trainer_compute_seconds_total", COUNTER,
		 "The part of it that the trainer computed, as it says.", member_compute},
		{"weft_trainer_network_seconds_total", COUNTER,
		 "The rest: answers and gradients on their way.", member_network},
		{"weft_trainer_ahead_seconds_total", COUNTER,
		 "From the trainer's last gradient of a step to that of the last trainer.",
		 member_ahead},
		{"weft_trainer_behind_seconds_total", COUNTER,
		 "By how much the trainer was the last of a step.", member_behind},
		{"weft_trainer_last_steps_total", COUNTER,
		 "Steps in which the trainer was the last.", member_last},
	};
	for (size_t i = 0; i < WF_ARRAY_COUNT(family); i++) {
		write_member_family(summary, out, family[i].name, family[i].type, family[i].help,
				    family[i].value);
	}
}

static void
write_tables(const struct wf_picture *picture, FILE *out)
{
	static const struct {
		const char *name;
		enum type type;
		const char *help;
		unsigned idx;
	} family[] = {
		{"weft_table_rows", GAUGE, "Rows of the table.", WF_TAB_ROWS},
		{"weft_table_bytes", GAUGE, "Memory of the table.", WF_TAB_BYTES},
		{"weft_table_rows_born_total", COUNTER, "Rows that were created.", WF_TAB_BORN},
		{"weft_table_rows_refused_total", COUNTER,
		 "Rows that were not created, for lack of memory.", WF_TAB_REFUSED},
		{"weft_table_rows_evicted_total", COUNTER, "Rows that were evicted.",
		 WF_TAB_EVICTED},
		{"weft_table_keys_looked_up_total", COUNTER, "Keys of look-ups.", WF_TAB_LOOKED_UP},
		{"weft_table_keys_missed_total", COUNTER, "Of these, keys without a row.",
		 WF_TAB_MISSED},
	};
	for (size_t f = 0; f < WF_ARRAY_COUNT(family); f++) {
		head(out, family[f].name, family[f].type, family[f].help);
		for (uint32_t i = 0; i < picture->count; i++) {
			const struct wf_watch_record *record = &picture->record[i];
			if (record->kind != WF_WATCH_TABLE) {
				continue;
			}
			(void)fprintf(out, "%s{lane=\"%" PRIu64 "\",table=\"", family[f].name,
				      record->lane);
			put_label(out, record->text[WF_TAB_NAME]);
			(void)fprintf(out, "\"} %" PRIu64 "\n", record->value[family[f].idx]);
		}
	}
}

static void
write_job(const struct wf_summary *summary, FILE *out)
{
	const struct wf_watch_record *first = summary->first;
	head(out, "weft_job_state", GAUGE, "1 for the state that the job is in.");
	for (enum wf_watch_job job = WF_WATCH_JOB_NONE; job <= WF_WATCH_JOB_FAILED; job++) {
		(void)fprintf(out, "weft_job_state{state=\"%s\"} %d\n", wf_summary_job_name(job),
			      summary->job == job ? 1 : 0);
	}
	if (first == NULL) {
		return;
	}
	head(out, "weft_job_age_seconds", GAUGE, "Time since the first trainer came; 0: no job.");
	(void)fprintf(out, "weft_job_age_seconds %.3f\n",
		      (double)first->value[WF_WLANE_JOB_NS] / 1e9);
	head(out, "weft_trainers", GAUGE, "Trainers of the job.");
	(void)fprintf(out, "weft_trainers %" PRIu64 "\n", first->value[WF_WLANE_TRAINERS]);
	head(out, "weft_trainers_by_state", GAUGE, "Trainers in each state, on lane 0.");
	(void)fprintf(out, "weft_trainers_by_state{state=\"up\"} %" PRIu64 "\n",
		      first->value[WF_WLANE_TRAINERS_UP]);
	(void)fprintf(out, "weft_trainers_by_state{state=\"lost\"} %" PRIu64 "\n",
		      first->value[WF_WLANE_TRAINERS_LOST]);
	(void)fprintf(out, "weft_trainers_by_state{state=\"left\"} %" PRIu64 "\n",
		      first->value[WF_WLANE_TRAINERS_GONE]);
}

static void
write_snapshots(const struct wf_watch_record *pserver, FILE *out)
{
	const uint64_t *value = pserver->value;
	if (value[WF_PSERVER_HAS_SNAPSHOTS] == 0) {
		return;
	}
	uint64_t age_ns = value[WF_PSERVER_AT_NS] - value[WF_PSERVER_SNAPSHOT_AT_NS];
	head(out, "weft_snapshots_total", COUNTER, "Snapshots that were written.");
	(void)fprintf(out, "weft_snapshots_total %" PRIu64 "\n", value[WF_PSERVER_SNAPSHOT_COUNT]);
	head(out, "weft_snapshots_failed_total", COUNTER, "Snapshots that were not.");
	(void)fprintf(out, "weft_snapshots_failed_total %" PRIu64 "\n",
		      value[WF_PSERVER_SNAPSHOT_FAILED_COUNT]);
	head(out, "weft_snapshot_step", GAUGE, "Step of the newest snapshot; 0: there is none.");
	(void)fprintf(out, "weft_snapshot_step %" PRIu64 "\n", value[WF_PSERVER_SNAPSHOT_STEP]);
	if (value[WF_PSERVER_SNAPSHOT_STEP] > 0) {
		head(out, "weft_snapshot_age_seconds", GAUGE,
		     "Time since the newest snapshot was complete.");
		(void)fprintf(out, "weft_snapshot_age_seconds %.3f\n", (double)age_ns / 1e9);
	}
}

static void
write_process(const struct wf_summary *summary, FILE *out)
{
	struct rusage use;
	const struct wf_watch_record *pserver = summary->pserver;
	head(out, "weft_build_info", GAUGE, "1, with the version of weft.");
	(void)fputs("weft_build_info{version=\"", out);
	put_label(out, pserver->text[WF_PSERVER_VERSION]);
	(void)fputs("\"} 1\n", out);
	head(out, "weft_uptime_seconds", GAUGE, "Time since the pserver began.");
	(void)fprintf(out, "weft_uptime_seconds %.3f\n",
		      (double)(pserver->value[WF_PSERVER_AT_NS] -
			       pserver->value[WF_PSERVER_START_AT_NS]) /
			      1e9);
	if (getrusage(RUSAGE_SELF, &use) == 0) {
		double cpu_s = (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
			       (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) / 1e6;
		head(out, "process_cpu_seconds_total", COUNTER, "CPU time of the process.");
		(void)fprintf(out, "process_cpu_seconds_total %.3f\n", cpu_s);
		head(out, "weft_process_resident_max_bytes", GAUGE,
		     "The most memory that the process has had.");
		(void)fprintf(out, "weft_process_resident_max_bytes %" PRIu64 "\n",
			      (uint64_t)use.ru_maxrss * 1024);
	}
}

void
wf_metrics_write(const struct wf_picture *picture, const struct wf_summary *summary, FILE *out)
{
	if (summary->pserver == NULL) {
		return;
	}
	write_process(summary, out);
	write_job(summary, out);
	write_lanes(summary, out);
	write_waits(summary, out);
	write_histogram(summary, out);
	write_members(summary, out);
	write_tables(picture, out);
	write_snapshots(summary->pserver, out);
}
