/* SPDX-License-Identifier: Apache-2.0 */
/* why_table: see why_table.h. Thread: main.
 *
 * Of each step, trainer and lane seven times follow each other: those of the trainer's last slice
 * there (struct wf_why_part). A trainer's own time is what it does not share with others: compute,
 * the longest wait for rows, its longest way out, its longest way back. A lane's service is how
 * long a push takes from the request to its answer, without what it waits for other trainers, and
 * how long rows take; of the trainer for which that is least. */
#include "tools/trace/why_table.h"

#include "base/assert.h"
#include "wire/head.h"

static void
raise_to(uint64_t *to, uint64_t value)
{
	*to = value > *to ? value : *to;
}

static uint64_t
later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* The difference of two times of different clocks, which may be wrong by a little. */
static double
between(uint64_t from, uint64_t to)
{
	return to > from ? (double)(to - from) : 0;
}

/* ---- points ---- */

static void
fill_pushes(struct wf_why_table *table)
{
	const struct wf_pushes *pushes = table->pushes;
	for (uint32_t i = 0; i < pushes->count; i++) {
		const struct wf_pushed *push = &pushes->all[i];
		if (push->step < pushes->first_step || push->step >= pushes->end_step) {
			continue;
		}
		struct wf_why_path *path = wf_why_path_of(table, push->step - pushes->first_step,
							  push->trainer, push->lane);
		raise_to(&path->queued, push->queued_ns);
		raise_to(&path->posted, push->posted_ns);
		raise_to(&path->arrived, push->arrived_ns);
		raise_to(&path->applied, push->applied_ns);
		raise_to(&path->answered, push->answered_ns);
		path->bytes += push->bytes;
	}
}

static void
fill_complete(struct wf_why_table *table)
{
	for (uint32_t s = 0; s < table->steps; s++) {
		for (uint32_t l = 0; l < table->members; l++) {
			uint64_t complete = 0;
			for (uint32_t t = 0; t < table->members; t++) {
				raise_to(&complete, wf_why_path_of(table, s, t, l)->arrived);
			}
			for (uint32_t t = 0; t < table->members; t++) {
				wf_why_path_of(table, s, t, l)->complete = complete;
			}
		}
	}
}

static uint32_t
find_lane(const struct wf_recording *recording, uint32_t place)
{
	for (uint32_t i = 0; i < recording->count; i++) {
		const struct wf_recording_member *member = &recording->member[i];
		if (!member->is_trainer && wf_trace_lane(member->pserver, member->idx) == place) {
			return i;
		}
	}
	return UINT32_MAX;
}

/* Rows as they are after a step are those of the next one. False: it is not a whole one. */
static bool
is_in_step(const struct wf_why_table *table, uint32_t step, uint32_t *out)
{
	*out = step + 1 - table->pushes->first_step;
	return step + 1 >= table->pushes->first_step && step + 1 < table->pushes->end_step;
}

static void
fill_rows(struct wf_why_table *table)
{
	for (uint32_t t = 0; t < table->members; t++) {
		const struct wf_recording_member *member = &table->recording->member[t];
		for (uint32_t i = 0; member->is_trainer && i < member->count; i++) {
			const struct wf_trace_event *event = &member->event[i];
			bool asks = event->what == WF_TRACE_ROWS_ASKED;
			uint32_t step;
			if ((!asks && event->what != WF_TRACE_ROWS_ANSWERED) ||
			    !is_in_step(table, event->step, &step)) {
				continue;
			}
			uint32_t lane = find_lane(table->recording, event->peer);
			if (lane == UINT32_MAX) {
				continue;
			}
			struct wf_why_path *path = wf_why_path_of(table, step, t, lane);
			if (!asks) {
				raise_to(&path->given, event->at_ns);
			} else if (path->asked == 0 || event->at_ns < path->asked) {
				path->asked = event->at_ns;
			}
		}
	}
}

/* ---- times ---- */

/* The last answer that the trainer got in the step; 0: none. */
static uint64_t
last_answer(const struct wf_why_table *table, uint32_t step, uint32_t trainer)
{
	uint64_t last = 0;
	for (uint32_t l = 0; l < table->members; l++) {
		raise_to(&last, wf_why_path_of(table, step, trainer, l)->answered);
	}
	return last;
}

static uint64_t
last_push(const struct wf_why_table *table, uint32_t step, uint32_t trainer)
{
	uint64_t last = 0;
	for (uint32_t l = 0; l < table->members; l++) {
		raise_to(&last, wf_why_path_of(table, step, trainer, l)->queued);
	}
	return last;
}

/* How long rows of the step took, from the later of the request for them and the apply that they
 * wait for. */
static double
rows_time(const struct wf_why_table *table, uint32_t step, uint32_t t, uint32_t l)
{
	const struct wf_why_path *path = wf_why_path_of(table, step, t, l);
	uint64_t applied = step > 0 ? wf_why_path_of(table, step - 1, t, l)->applied : 0;
	return path->asked != 0 ? between(later(path->asked, applied), path->given) : 0;
}

/* For how long the trainer waits for rows between two times. */
static double
rows_wait(const struct wf_why_table *table, uint32_t step, uint32_t t, uint64_t from, uint64_t to)
{
	double longest = 0;
	for (uint32_t l = 0; l < table->members; l++) {
		const struct wf_why_path *path = wf_why_path_of(table, step, t, l);
		uint64_t end = path->given < to ? path->given : to;
		longest = wf_why_larger(
			longest, path->asked != 0 ? between(later(path->asked, from), end) : 0);
	}
	return longest;
}

/* A push that is posted before a later slice of its tensor is asked for, and so on: the points of a
 * path are each the latest of their kind, so they are in order. */
static struct wf_why_part
split(const struct wf_why_table *table, uint32_t step, uint32_t t, uint32_t l)
{
	const struct wf_why_path *path = wf_why_path_of(table, step, t, l);
	return (struct wf_why_part){
		.rows = rows_time(table, step, t, l),
		.wait = between(path->queued, path->posted),
		.way = between(later(path->posted, path->queued), path->arrived),
		.parked = between(path->arrived, path->complete),
		.applied = between(path->complete, path->applied),
		.answered = between(path->applied, path->answered),
	};
}

static void
add_part(struct wf_why_part *to, const struct wf_why_part *part, double times)
{
	to->compute += part->compute * times;
	to->rows += part->rows * times;
	to->wait += part->wait * times;
	to->way += part->way * times;
	to->parked += part->parked * times;
	to->applied += part->applied * times;
	to->answered += part->answered * times;
}

/* What trainer `t` needs in the step by itself; the first step has no beginning. */
static double
own_time(const struct wf_why_table *table, uint32_t step, uint32_t t)
{
	uint64_t before = step > 0 ? last_answer(table, step - 1, t) : 0;
	double out = 0;
	double in = 0;
	for (uint32_t l = 0; l < table->members; l++) {
		const struct wf_why_path *path = wf_why_path_of(table, step, t, l);
		if (path->queued != 0) {
			out = wf_why_larger(out, between(path->queued, path->arrived));
			in = wf_why_larger(in, between(path->applied, path->answered));
		}
	}
	return before != 0 ? between(before, last_push(table, step, t)) + out + in : WF_WHY_NONE;
}

/* How long lane `l` needs in the step. */
static double
service_time(const struct wf_why_table *table, uint32_t step, uint32_t l)
{
	double least = WF_WHY_NONE;
	for (uint32_t t = 0; t < table->members; t++) {
		if (wf_why_path_of(table, step, t, l)->queued != 0) {
			const struct wf_why_part part = split(table, step, t, l);
			double all =
				part.rows + part.wait + part.way + part.applied + part.answered;
			/* A slow trainer is no slow lane. */
			least = isnan(least) ? all : wf_why_smaller(least, all);
		}
	}
	return least;
}

static void
fill_own(struct wf_why_table *table)
{
	for (uint32_t s = 0; s < table->steps; s++) {
		for (uint32_t m = 0; m < table->members; m++) {
			table->own[(size_t)s * table->members + m] =
				s == 0                        ? WF_WHY_NONE
				: wf_why_is_trainer(table, m) ? own_time(table, s, m)
							      : service_time(table, s, m);
		}
	}
}

static void
fill_cells_of(struct wf_why_table *table, uint32_t step, uint32_t t)
{
	uint64_t before = last_answer(table, step - 1, t);
	uint64_t pushed = last_push(table, step, t);
	double rows = rows_wait(table, step, t, before, pushed);
	double compute = wf_why_larger(between(before, pushed) - rows, 0);
	for (uint32_t l = 0; l < table->members; l++) {
		const struct wf_why_path *path = wf_why_path_of(table, step, t, l);
		if (path->queued == 0) {
			continue;
		}
		struct wf_why_cell *cell = wf_why_cell_of(table, t, l);
		struct wf_why_part part = split(table, step, t, l);
		part.compute = compute;
		add_part(&cell->sum, &part, 1.0 / table->timed);
		cell->bytes += (double)path->bytes / table->timed;
	}
}

static void
fill_cells(struct wf_why_table *table)
{
	for (uint32_t s = 1; s < table->steps; s++) {
		for (uint32_t t = 0; t < table->members; t++) {
			fill_cells_of(table, s, t);
		}
	}
}

static double
step_time(const struct wf_why_table *table)
{
	double longest = 0;
	for (uint32_t t = 0; t < table->members; t++) {
		uint64_t first = last_answer(table, 0, t);
		uint64_t last = last_answer(table, table->steps - 1, t);
		if (first != 0) {
			longest = wf_why_larger(longest, between(first, last) / table->timed);
		}
	}
	return longest;
}

/* ---- means ---- */

static double
mean_own(const struct wf_why_table *table, uint32_t member)
{
	double sum = 0;
	uint32_t count = 0;
	for (uint32_t s = 0; s < table->steps; s++) {
		double own = table->own[(size_t)s * table->members + member];
		sum += isnan(own) ? 0 : own;
		count += isnan(own) ? 0 : 1;
	}
	return count > 0 ? sum / count : WF_WHY_NONE;
}

/* By how much a counter of the system has grown in a step. Between its first and its last look at
 * the system there may be more steps than those that are whole: time tells how many. */
static double
growth(const struct wf_why_table *table, uint32_t member, enum wf_trace_what what)
{
	const struct wf_recording_member *of = &table->recording->member[member];
	const struct wf_trace_event *first = NULL;
	const struct wf_trace_event *last = NULL;
	for (uint32_t i = 0; i < of->count; i++) {
		if (of->event[i].what == what) {
			first = first == NULL ? &of->event[i] : first;
			last = &of->event[i];
		}
	}
	double steps = first != NULL && table->step_ns > 0
			       ? between(first->at_ns, last->at_ns) / table->step_ns
			       : 0;
	return steps > 0 && last->value >= first->value
		       ? (double)(last->value - first->value) / steps
		       : WF_WHY_NONE;
}

static double
or_zero(double value)
{
	return isnan(value) ? 0 : value;
}

/* Rows that the lane was asked for, and that were pushed to it. */
static double
load_of_rows(const struct wf_why_table *table, uint32_t lane)
{
	const struct wf_recording_member *member = &table->recording->member[lane];
	double rows = 0;
	for (uint32_t i = 0; i < member->count; i++) {
		const struct wf_trace_event *event = &member->event[i];
		uint32_t step;
		bool is_pulled = event->what == WF_TRACE_ROWS_PULLED;
		bool is_pushed = event->what == WF_TRACE_ARRIVED;
		if ((is_pulled && is_in_step(table, event->step, &step)) ||
		    (is_pushed && is_in_step(table, event->step - 1, &step))) {
			rows += (double)event->value / table->steps;
		}
	}
	return rows;
}

static double
load_of(const struct wf_why_table *table, uint32_t member)
{
	double bytes = 0;
	for (uint32_t t = 0; t < table->members; t++) {
		bytes += wf_why_cell_of(table, t, member)->bytes;
	}
	return table->group[member] == WF_WHY_SPARSE_LANES ? load_of_rows(table, member) : bytes;
}

/* What a trainer's own time of a step is made of: the longest of its lanes, as there. */
static void
add_times_of(const struct wf_why_table *table, uint32_t step, uint32_t t, double *mean)
{
	struct wf_why_part longest = {0};
	double out = 0;
	uint64_t before = last_answer(table, step - 1, t);
	uint64_t pushed = last_push(table, step, t);
	double rows = rows_wait(table, step, t, before, pushed);
	for (uint32_t l = 0; l < table->members; l++) {
		if (wf_why_path_of(table, step, t, l)->queued != 0) {
			const struct wf_why_part part = split(table, step, t, l);
			out = wf_why_larger(out, part.wait + part.way);
			longest.way = wf_why_larger(longest.way, part.way);
			longest.answered = wf_why_larger(longest.answered, part.answered);
		}
	}
	mean[WF_WHY_COMPUTED] += wf_why_larger(between(before, pushed) - rows, 0) / table->timed;
	mean[WF_WHY_SENT] += out / table->timed;
	mean[WF_WHY_ON_WAY] += longest.way / table->timed;
	mean[WF_WHY_RECEIVED] += (longest.answered + rows) / table->timed;
}

static void
fill_means_of(struct wf_why_table *table, uint32_t m)
{
	double *mean = table->mean[m];
	for (uint32_t s = 1; wf_why_is_trainer(table, m) && s < table->steps; s++) {
		add_times_of(table, s, m, mean);
	}
	mean[WF_WHY_OWN] = mean_own(table, m);
	mean[WF_WHY_LOAD] = load_of(table, m);
	mean[WF_WHY_CPU] = growth(table, m, WF_TRACE_CPU_NS);
	mean[WF_WHY_RUN_QUEUE] = or_zero(growth(table, m, WF_TRACE_RUN_QUEUE_NS));
	mean[WF_WHY_FAULTS] = or_zero(growth(table, m, WF_TRACE_MAJOR_FAULTS));
}

static enum wf_why_group
group_of(const struct wf_recording_member *member)
{
	if (member->is_trainer) {
		return WF_WHY_TRAINERS;
	}
	for (uint32_t i = member->count; i-- > 0;) { /* it is among the last ones */
		if (member->event[i].what == WF_TRACE_SERVICE) {
			return member->event[i].value == WF_SERVICE_SPARSE ? WF_WHY_SPARSE_LANES
									   : WF_WHY_DENSE_LANES;
		}
	}
	return WF_WHY_DENSE_LANES;
}

enum weft_status
wf_why_table_open(const struct wf_recording *recording, const struct wf_pushes *pushes,
		  struct wf_why_table *out)
{
	struct wf_why_table table = {
		.env = recording->env,
		.recording = recording,
		.pushes = pushes,
		.members = recording->count,
		.steps = pushes->end_step - pushes->first_step,
	};
	WF_ASSERT(table.steps >= 2);
	size_t cells = (size_t)table.members * table.members;
	table.timed = table.steps - 1;
	table.path = wf_zalloc_array(table.env, cells * table.steps, sizeof(*table.path));
	table.cell = wf_zalloc_array(table.env, cells, sizeof(*table.cell));
	table.own =
		wf_zalloc_array(table.env, (size_t)table.steps * table.members, sizeof(*table.own));
	table.mean = wf_zalloc_array(table.env, table.members, sizeof(*table.mean));
	table.group = wf_zalloc_array(table.env, table.members, sizeof(*table.group));
	if (table.path == NULL || table.cell == NULL || table.own == NULL || table.mean == NULL ||
	    table.group == NULL) {
		wf_why_table_close(&table);
		return wf_fail(WEFT_NOMEM, "no memory for %u members in %u steps", table.members,
			       table.steps);
	}
	for (uint32_t m = 0; m < table.members; m++) {
		table.group[m] = group_of(&recording->member[m]);
	}
	fill_pushes(&table);
	fill_complete(&table);
	fill_rows(&table);
	fill_own(&table);
	fill_cells(&table);
	table.step_ns = step_time(&table);
	for (uint32_t m = 0; m < table.members; m++) {
		fill_means_of(&table, m);
	}
	*out = table;
	return WEFT_OK;
}

void
wf_why_table_close(struct wf_why_table *table)
{
	size_t cells = (size_t)table->members * table->members;
	wf_free(table->env, table->path, cells * table->steps * sizeof(*table->path));
	wf_free(table->env, table->cell, cells * sizeof(*table->cell));
	wf_free(table->env, table->own,
		(size_t)table->steps * table->members * sizeof(*table->own));
	wf_free(table->env, table->mean, table->members * sizeof(*table->mean));
	wf_free(table->env, table->group, table->members * sizeof(*table->group));
}
