/* SPDX-License-Identifier: Apache-2.0 */
/* why: see why.h. Thread: main.
 *
 * Trainers are compared with trainers, dense lanes with dense ones, sparse lanes with sparse ones,
 * by their own time (why_table.c). The others wait for the member with the longest one. If it was
 * as fast as the next one, each would wait that much less: the gap.
 *
 * A culprit is named when the gap is a fair part of the step, it is clearly the last one in most
 * steps, and one cause explains 80 % of the gap. Otherwise nobody is. */
#include "tools/trace/why_table.h"

#include "base/assert.h"

#define EXPLAINS 0.8  /* of the wait, so that a culprit is named */
#define FAIR 0.2      /* of a step, that the gap has to be */
#define MOST 0.7      /* of the steps, in which it is the last one */
#define CLEAR 0.25    /* of the gap, by which it is the last one there */
#define HEAVY 1.5     /* as many bytes, or rows, as the others: imbalance, hot keys */
#define FAULTS 20.0   /* of pages from a disk in a step: paging */
#define IDLE_CPU 0.25 /* of its compute time: it waits for something else than a CPU */
#define STARVED 0.5   /* of the gap, in which a CPU was waited for: no network is blamed */
#define ONE_WAY 4.0   /* as slow as the other direction: it is this one */

/* ---- who is last ---- */

struct ranking {
	uint32_t count;    /* of members of the group that have times */
	uint32_t last;     /* the one with the longest mean */
	double mean, next; /* its, and the next one's */
	double gap;        /* between the two */
	double share;      /* of the others' waits that go if the gap does */
	double last_in;    /* of the steps it is the last one */
};

static double
own_mean(const struct wf_why_table *table, uint32_t member, enum wf_why_group group)
{
	return table->group[member] == group ? table->mean[member][WF_WHY_OWN] : WF_WHY_NONE;
}

static bool
is_last_in(const struct wf_why_table *table, uint32_t step, const struct ranking *ranking)
{
	const double *own = &table->own[(size_t)step * table->members];
	uint32_t member = ranking->last;
	for (uint32_t m = 0; m < table->members; m++) {
		if (m != member && table->group[m] == table->group[member] &&
		    own[m] + CLEAR * ranking->gap > own[member]) {
			return false;
		}
	}
	return !isnan(own[member]);
}

static struct ranking
rank(const struct wf_why_table *table, enum wf_why_group group)
{
	struct ranking ranking = {.last = UINT32_MAX};
	double waits = 0;
	for (uint32_t m = 0; m < table->members; m++) {
		double mean = own_mean(table, m, group);
		if (isnan(mean)) {
			continue;
		}
		ranking.count++;
		if (ranking.last == UINT32_MAX || mean > ranking.mean) {
			ranking.next = ranking.last == UINT32_MAX ? 0 : ranking.mean;
			ranking.mean = mean;
			ranking.last = m;
		} else {
			ranking.next = wf_why_larger(ranking.next, mean);
		}
	}
	for (uint32_t m = 0; m < table->members; m++) {
		double mean = own_mean(table, m, group);
		waits += isnan(mean) ? 0 : ranking.mean - mean;
	}
	ranking.gap = ranking.count > 1 ? ranking.mean - ranking.next : 0;
	ranking.share = waits > 0 ? ranking.gap * (ranking.count - 1) / waits : 0;
	uint32_t last_in = 0;
	for (uint32_t s = 1; ranking.count > 1 && s < table->steps; s++) {
		last_in += is_last_in(table, s, &ranking) ? 1 : 0;
	}
	ranking.last_in = (double)last_in / table->timed;
	return ranking;
}

static bool
stands_out(const struct ranking *ranking, double step_ns)
{
	return ranking->gap >= FAIR * step_ns && ranking->share >= EXPLAINS &&
	       ranking->last_in >= MOST;
}

/* ---- the verdict ---- */

/* The mean over the others of the same group. */
static double
of_others(const struct wf_why_table *table, uint32_t member, enum wf_why_mean what)
{
	double sum = 0;
	uint32_t count = 0;
	for (uint32_t m = 0; m < table->members; m++) {
		if (m != member && !isnan(own_mean(table, m, table->group[member]))) {
			sum += table->mean[m][what];
			count++;
		}
	}
	return count > 0 ? sum / count : 0;
}

/* By how much more than the others. */
static double
excess(const struct wf_why_table *table, uint32_t member, enum wf_why_mean what)
{
	return table->mean[member][what] - of_others(table, member, what);
}

static void
name_it(struct wf_why *out, enum wf_why_kind kind, uint32_t member, double share, double wait)
{
	out->kind = kind;
	out->member = member;
	out->share = wf_why_smaller(share, 1);
	out->wait_ns = wait;
}

/* For how long the lane with the least CPU could run in a step, and did not. */
static double
lanes_queue(const struct wf_why_table *table)
{
	double longest = 0;
	for (uint32_t m = 0; m < table->members; m++) {
		double queue = table->mean[m][WF_WHY_RUN_QUEUE];
		longest = wf_why_is_trainer(table, m) ? longest : wf_why_larger(longest, queue);
	}
	return longest;
}

/* Pushes wait to be sent for the link that they leave on, or for slots, which answers free: the
 * times on the way tell which. A clock that is wrong makes one direction longer and the other one
 * shorter by as much, so a direction is named only if it is the slow one for any such error. */
static void
judge_network(const struct wf_why_table *table, const struct ranking *ranking, struct wf_why *out,
	      double share)
{
	uint32_t who = ranking->last;
	double way = excess(table, who, WF_WHY_ON_WAY);
	double back = excess(table, who, WF_WHY_RECEIVED);
	double error = (double)table->recording->member[who].error_ns;
	enum wf_why_kind kind = way - error >= ONE_WAY * (back + error)   ? WF_WHY_OUT
				: back - error >= ONE_WAY * (way + error) ? WF_WHY_IN
									  : WF_WHY_NETWORK;
	name_it(out, kind, who, wf_why_smaller(ranking->share, share), ranking->gap);
}

/* Whether the trainer has an accelerator: a file of one is open. */
static bool
has_device(const struct wf_recording_member *member)
{
	bool has = false;
	for (uint32_t i = 0; i < member->count; i++) {
		has = has ||
		      (member->event[i].what == WF_TRACE_DEVICES && member->event[i].value > 0);
	}
	return has;
}

/* Who computes for long without a CPU waits for its device if it has one; otherwise it sleeps, or
 * waits for its input, which is its own program's. */
static void
judge_compute(const struct wf_why_table *table, const struct ranking *ranking, struct wf_why *out,
	      double compute)
{
	uint32_t who = ranking->last;
	const double *mean = table->mean[who];
	out->is_idle =
		!isnan(mean[WF_WHY_CPU]) && mean[WF_WHY_CPU] < IDLE_CPU * mean[WF_WHY_COMPUTED];
	bool is_device = out->is_idle && has_device(&table->recording->member[who]);
	name_it(out, is_device ? WF_WHY_DEVICE : WF_WHY_COMPUTE, who,
		wf_why_smaller(ranking->share, compute / ranking->gap), ranking->gap);
}

static void
judge_trainer(const struct wf_why_table *table, const struct ranking *ranking, struct wf_why *out)
{
	uint32_t who = ranking->last;
	double gap = ranking->gap;
	double compute = excess(table, who, WF_WHY_COMPUTED);
	double away = excess(table, who, WF_WHY_SENT) + excess(table, who, WF_WHY_RECEIVED);
	double queue = excess(table, who, WF_WHY_RUN_QUEUE);
	double faults = table->mean[who][WF_WHY_FAULTS];
	/* Who gets no CPU is late to send and to receive, and blames no link. How much of these
	 * waits delayed a push is not known: on a slow link most of them do not. */
	bool is_starved = wf_why_larger(queue, 0) + lanes_queue(table) > STARVED * gap;
	if (faults >= FAULTS && faults >= 4 * of_others(table, who, WF_WHY_FAULTS) &&
	    compute + away >= EXPLAINS * gap) {
		name_it(out, WF_WHY_PAGING, who, ranking->share, gap);
	} else if (queue >= EXPLAINS * gap) {
		name_it(out, WF_WHY_NO_CPU, who, wf_why_smaller(ranking->share, queue / gap), gap);
	} else if (compute >= EXPLAINS * gap) {
		judge_compute(table, ranking, out, compute);
	} else if (away >= EXPLAINS * gap && !is_starved) {
		judge_network(table, ranking, out, away / gap);
	}
}

/* The keys that a sparse lane is asked for most. */
static void
list_hot(const struct wf_why_table *table, struct wf_why *out)
{
	const struct wf_recording_member *member = &table->recording->member[out->member];
	for (uint32_t i = 0; i < member->count; i++) {
		const struct wf_trace_event *event = &member->event[i];
		const struct wf_why_hot hot = {event->peer, event->slice, event->value};
		uint32_t at = out->hot_count < WF_WHY_HOT ? out->hot_count : WF_WHY_HOT - 1;
		bool is_more = at == out->hot_count || hot.thousandths > out->hot[at].thousandths;
		if (event->what != WF_TRACE_HOT_KEY || hot.thousandths == 0 ||
		    hot.thousandths > 1000 || !is_more) {
			continue;
		}
		out->hot_count = at + 1;
		for (; at > 0 && out->hot[at - 1].thousandths < hot.thousandths; at--) {
			out->hot[at] = out->hot[at - 1];
		}
		out->hot[at] = hot;
	}
}

/* What a lane has more of than the others explains as much as its others take for theirs. */
static void
judge_lane(const struct wf_why_table *table, const struct ranking *ranking, struct wf_why *out)
{
	uint32_t who = ranking->last;
	double gap = ranking->gap;
	double queue = excess(table, who, WF_WHY_RUN_QUEUE);
	double heavy = table->mean[who][WF_WHY_LOAD] /
		       wf_why_larger(of_others(table, who, WF_WHY_LOAD), 1);
	double by_load = of_others(table, who, WF_WHY_OWN) * (heavy - 1);
	bool is_load = heavy >= HEAVY && by_load >= EXPLAINS * gap;
	bool is_sparse = table->group[who] == WF_WHY_SPARSE_LANES;
	/* Who has more to do waits for a CPU more often, too. */
	enum wf_why_kind kind = is_load && is_sparse      ? WF_WHY_HOT_KEYS
				: is_load                 ? WF_WHY_IMBALANCE
				: queue >= EXPLAINS * gap ? WF_WHY_NO_CPU
							  : WF_WHY_LANE;
	name_it(out, kind, who, ranking->share, gap);
	if (kind == WF_WHY_HOT_KEYS) {
		list_hot(table, out);
	}
}

/* Nobody stands out against its like: is one of them, though, without a CPU? */
static void
judge_alone(const struct wf_why_table *table, struct wf_why *out)
{
	for (uint32_t m = 0; m < table->members; m++) {
		double queue = table->mean[m][WF_WHY_RUN_QUEUE];
		double own = table->mean[m][WF_WHY_OWN];
		if (!isnan(own) && queue >= 2 * FAIR * out->step_ns && queue >= EXPLAINS * own &&
		    queue > out->wait_ns) {
			name_it(out, WF_WHY_NO_CPU, m, queue / own, queue);
		}
	}
}

static void
judge(const struct wf_why_table *table, struct wf_why *out)
{
	struct ranking longest = {0};
	for (enum wf_why_group group = WF_WHY_TRAINERS; group <= WF_WHY_SPARSE_LANES; group++) {
		struct ranking ranking = rank(table, group);
		if (stands_out(&ranking, out->step_ns) && ranking.gap > longest.gap) {
			longest = ranking;
		}
	}
	if (longest.gap == 0) {
		judge_alone(table, out);
	} else if (wf_why_is_trainer(table, longest.last)) {
		judge_trainer(table, &longest, out);
	} else {
		judge_lane(table, &longest, out);
	}
	out->is_trainer = out->kind != WF_WHY_NOBODY && wf_why_is_trainer(table, out->member);
}

enum weft_status
wf_why_find(const struct wf_recording *recording, const struct wf_pushes *pushes,
	    struct wf_why *out)
{
	struct wf_why_table table;
	*out = (struct wf_why){0};
	if (pushes->end_step - pushes->first_step < 2) {
		return wf_fail(
			WEFT_DATA,
			"no two steps in a row were recorded from their pushes to their "
			"answers: does the job make steps? Are they too many for the rings of "
			"%u events? Ask for fewer",
			WF_TRACE_EVENTS);
	}
	enum weft_status st = wf_why_table_open(recording, pushes, &table);
	if (st != WEFT_OK) {
		return st;
	}
	out->steps = table.timed;
	out->step_ns = table.step_ns;
	judge(&table, out);
	st = wf_why_write(&table, out);
	wf_why_table_close(&table);
	return st;
}
