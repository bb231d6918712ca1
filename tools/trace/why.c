/* SPDX-License-Identifier: Apache-2.0 */
/* why: see why.h. Thread: main.
 *
 * Of each step, trainer and lane six times follow each other: those of the trainer's last slice
 * there (struct wf_why_part). A trainer's own time is what it does not share with others: compute,
 * its longest way out, its longest way back. The others wait for the trainer with the longest one.
 * If it was as fast as the next one, each would wait that much less: the gap. Where lanes differ by
 * more than trainers do, they are compared in the same way, by how long a push takes from the
 * request to its answer, without what it waits for other trainers.
 *
 * A culprit is named when the gap is a fair part of the step, it is the last one in most steps, and
 * one cause explains 80 % of the gap. Otherwise nobody is. */
#include "tools/trace/why.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

#define EXPLAINS 0.8  /* of the wait, so that a culprit is named */
#define FAIR 0.2      /* of a step, that the gap has to be */
#define MOST 0.7      /* of the steps, in which it is the last one */
#define HEAVY 1.5     /* as many bytes as the others: imbalance */
#define FAULTS 20.0   /* of pages from a disk in a step: paging */
#define IDLE_CPU 0.25 /* of its compute time: it waits for something else than a CPU */
#define NONE ((double)NAN)
#define ONE_WAY 4.0 /* as slow as the other direction: it is this one */
#define LISTED 6u   /* members that have a line */

static double
larger(double a, double b)
{
	return a > b ? a : b;
}

static double
smaller(double a, double b)
{
	return a < b ? a : b;
}

/* The six times of one step, trainer and lane, as points. */
struct path {
	uint64_t queued, posted, arrived, complete, applied, answered;
	uint64_t bytes;
};

struct cell {
	struct wf_why_part sum;
	double bytes;
};

struct table {
	struct wf_env *env;
	const struct wf_recording *recording;
	const struct wf_pushes *pushes;
	uint32_t members, steps;
	struct path *path; /* [steps][trainer][lane], by members */
	struct cell *cell; /* [trainer][lane] means */
	double *own;       /* [steps][member] own time of trainers, service of lanes; NONE: none */
	uint32_t timed;    /* steps whose compute is known */
};

static struct path *
path_of(const struct table *table, uint32_t step, uint32_t trainer, uint32_t lane)
{
	return &table->path[((size_t)step * table->members + trainer) * table->members + lane];
}

static struct cell *
cell_of(const struct table *table, uint32_t trainer, uint32_t lane)
{
	return &table->cell[(size_t)trainer * table->members + lane];
}

static bool
is_trainer(const struct table *table, uint32_t member)
{
	return table->recording->member[member].is_trainer;
}

static void
raise_to(uint64_t *to, uint64_t value)
{
	*to = value > *to ? value : *to;
}

static void
fill_paths(struct table *table)
{
	const struct wf_pushes *pushes = table->pushes;
	for (uint32_t i = 0; i < pushes->count; i++) {
		const struct wf_pushed *push = &pushes->all[i];
		if (push->step < pushes->first_step || push->step >= pushes->end_step) {
			continue;
		}
		struct path *path =
			path_of(table, push->step - pushes->first_step, push->trainer, push->lane);
		raise_to(&path->queued, push->queued_ns);
		raise_to(&path->posted, push->posted_ns);
		raise_to(&path->arrived, push->arrived_ns);
		raise_to(&path->applied, push->applied_ns);
		raise_to(&path->answered, push->answered_ns);
		path->bytes += push->bytes;
	}
	for (uint32_t s = 0; s < table->steps; s++) {
		for (uint32_t l = 0; l < table->members; l++) {
			uint64_t complete = 0;
			for (uint32_t t = 0; t < table->members; t++) {
				raise_to(&complete, path_of(table, s, t, l)->arrived);
			}
			for (uint32_t t = 0; t < table->members; t++) {
				path_of(table, s, t, l)->complete = complete;
			}
		}
	}
}

/* The difference of two times of different clocks, which may be wrong by a little. */
static double
between(uint64_t from, uint64_t to)
{
	return to > from ? (double)(to - from) : 0;
}

/* The last answer that the trainer got in the step; 0: none. */
static uint64_t
last_answer(const struct table *table, uint32_t step, uint32_t trainer)
{
	uint64_t last = 0;
	for (uint32_t l = 0; l < table->members; l++) {
		raise_to(&last, path_of(table, step, trainer, l)->answered);
	}
	return last;
}

static uint64_t
last_push(const struct table *table, uint32_t step, uint32_t trainer)
{
	uint64_t last = 0;
	for (uint32_t l = 0; l < table->members; l++) {
		raise_to(&last, path_of(table, step, trainer, l)->queued);
	}
	return last;
}

/* A push that is posted before a later slice of its tensor is asked for, and so on: the points of a
 * path are each the latest of their kind, so they are in order. */
static struct wf_why_part
split(const struct path *path)
{
	uint64_t complete = path->complete;
	return (struct wf_why_part){
		.wait = between(path->queued, path->posted),
		.way = between(path->posted > path->queued ? path->posted : path->queued,
			       path->arrived),
		.parked = between(path->arrived, complete),
		.applied = between(complete, path->applied),
		.answered = between(path->applied, path->answered),
	};
}

static void
add_part(struct wf_why_part *to, const struct wf_why_part *part, double times)
{
	to->compute += part->compute * times;
	to->wait += part->wait * times;
	to->way += part->way * times;
	to->parked += part->parked * times;
	to->applied += part->applied * times;
	to->answered += part->answered * times;
}

/* What trainer `t` needs in the step by itself; the first step has no beginning. */
static double
own_time(const struct table *table, uint32_t step, uint32_t t)
{
	uint64_t before = step > 0 ? last_answer(table, step - 1, t) : 0;
	double out = 0;
	double in = 0;
	for (uint32_t l = 0; l < table->members; l++) {
		const struct path *path = path_of(table, step, t, l);
		if (path->queued != 0) {
			out = larger(out, between(path->queued, path->arrived));
			in = larger(in, between(path->applied, path->answered));
		}
	}
	return before != 0 ? between(before, last_push(table, step, t)) + out + in : NONE;
}

/* How long lane `l` needs for a push in the step, as the slowest trainer sees it. */
static double
service_time(const struct table *table, uint32_t step, uint32_t l)
{
	double longest = NONE;
	for (uint32_t t = 0; t < table->members; t++) {
		const struct path *path = path_of(table, step, t, l);
		if (path->queued != 0) {
			const struct wf_why_part part = split(path);
			double all = part.wait + part.way + part.applied + part.answered;
			/* Of the trainer for which it is least: a slow trainer is no slow lane. */
			longest = isnan(longest) ? all : smaller(longest, all);
		}
	}
	return longest;
}

static void
fill_times(struct table *table)
{
	for (uint32_t s = 0; s < table->steps; s++) {
		for (uint32_t m = 0; m < table->members; m++) {
			table->own[(size_t)s * table->members + m] =
				s == 0                 ? NONE
				: is_trainer(table, m) ? own_time(table, s, m)
						       : service_time(table, s, m);
		}
	}
	table->timed = table->steps > 0 ? table->steps - 1 : 0;
	for (uint32_t s = 1; s < table->steps; s++) {
		for (uint32_t t = 0; t < table->members; t++) {
			uint64_t before = last_answer(table, s - 1, t);
			double compute = between(before, last_push(table, s, t));
			for (uint32_t l = 0; l < table->members; l++) {
				const struct path *path = path_of(table, s, t, l);
				if (path->queued == 0) {
					continue;
				}
				struct wf_why_part part = split(path);
				part.compute = compute;
				add_part(&cell_of(table, t, l)->sum, &part, 1.0 / table->timed);
				cell_of(table, t, l)->bytes += (double)path->bytes / table->timed;
			}
		}
	}
}

/* ---- who is last ---- */

struct ranking {
	uint32_t count;    /* of members of the kind that have times */
	uint32_t last;     /* the one with the longest mean */
	double mean, next; /* its, and the next one's */
	double gap;        /* between the two */
	double share;      /* of the others' waits that go if the gap does */
	double last_in;    /* of the steps it is the last one */
};

static double
mean_of(const struct table *table, uint32_t member)
{
	double sum = 0;
	uint32_t count = 0;
	for (uint32_t s = 0; s < table->steps; s++) {
		double own = table->own[(size_t)s * table->members + member];
		sum += isnan(own) ? 0 : own;
		count += isnan(own) ? 0 : 1;
	}
	return count > 0 ? sum / count : NONE;
}

static bool
is_last_in(const struct table *table, uint32_t step, uint32_t member, bool trainers)
{
	const double *own = &table->own[(size_t)step * table->members];
	for (uint32_t m = 0; m < table->members; m++) {
		if (m != member && is_trainer(table, m) == trainers && own[m] > own[member]) {
			return false;
		}
	}
	return !isnan(own[member]);
}

static struct ranking
rank(const struct table *table, bool trainers)
{
	struct ranking ranking = {.last = UINT32_MAX};
	double waits = 0;
	for (uint32_t m = 0; m < table->members; m++) {
		double mean = is_trainer(table, m) == trainers ? mean_of(table, m) : NONE;
		if (isnan(mean)) {
			continue;
		}
		ranking.count++;
		if (ranking.last == UINT32_MAX || mean > ranking.mean) {
			ranking.next = ranking.last == UINT32_MAX ? 0 : ranking.mean;
			ranking.mean = mean;
			ranking.last = m;
		} else {
			ranking.next = larger(ranking.next, mean);
		}
	}
	for (uint32_t m = 0; m < table->members; m++) {
		double mean = is_trainer(table, m) == trainers ? mean_of(table, m) : NONE;
		waits += isnan(mean) ? 0 : ranking.mean - mean;
	}
	ranking.gap = ranking.count > 1 ? ranking.mean - ranking.next : 0;
	ranking.share = waits > 0 ? ranking.gap * (ranking.count - 1) / waits : 0;
	uint32_t last_in = 0;
	for (uint32_t s = 1; ranking.count > 1 && s < table->steps; s++) {
		last_in += is_last_in(table, s, ranking.last, trainers) ? 1 : 0;
	}
	ranking.last_in = table->timed > 0 ? (double)last_in / table->timed : 0;
	return ranking;
}

/* ---- what the system says ---- */

struct usage {
	double cpu, run_queue, faults; /* of a step; NONE: not known */
};

static double
per_step(const struct table *table, uint32_t member, enum wf_trace_what what, double span_steps)
{
	const struct wf_recording_member *of = &table->recording->member[member];
	uint64_t first = UINT64_MAX;
	uint64_t last = 0;
	for (uint32_t i = 0; i < of->count; i++) {
		if (of->event[i].what == what) {
			first = first == UINT64_MAX ? of->event[i].value : first;
			last = of->event[i].value;
		}
	}
	return first != UINT64_MAX && last >= first && span_steps > 0
		       ? (double)(last - first) / span_steps
		       : NONE;
}

/* Between its first and its last look at the system there may be more steps than those that are
 * whole: time tells how many. */
static struct usage
usage_of(const struct table *table, uint32_t member, double step_ns)
{
	const struct wf_recording_member *of = &table->recording->member[member];
	uint64_t first = 0;
	uint64_t last = 0;
	for (uint32_t i = 0; i < of->count; i++) {
		if (of->event[i].what == WF_TRACE_CPU_NS) {
			first = first == 0 ? of->event[i].at_ns : first;
			last = of->event[i].at_ns;
		}
	}
	double steps = step_ns > 0 ? between(first, last) / step_ns : 0;
	return (struct usage){
		.cpu = per_step(table, member, WF_TRACE_CPU_NS, steps),
		.run_queue = per_step(table, member, WF_TRACE_RUN_QUEUE_NS, steps),
		.faults = per_step(table, member, WF_TRACE_MAJOR_FAULTS, steps),
	};
}

/* The mean over the others of the same kind. */
static double
of_others(const struct table *table, uint32_t member, double step_ns,
	  double (*value)(const struct table *table, uint32_t member, double step_ns))
{
	double sum = 0;
	uint32_t count = 0;
	for (uint32_t m = 0; m < table->members; m++) {
		if (m != member && is_trainer(table, m) == is_trainer(table, member) &&
		    !isnan(mean_of(table, m))) {
			sum += value(table, m, step_ns);
			count++;
		}
	}
	return count > 0 ? sum / count : 0;
}

static double
run_queue_of(const struct table *table, uint32_t member, double step_ns)
{
	double ns = usage_of(table, member, step_ns).run_queue;
	return isnan(ns) ? 0 : ns;
}

static double
faults_of(const struct table *table, uint32_t member, double step_ns)
{
	double count = usage_of(table, member, step_ns).faults;
	return isnan(count) ? 0 : count;
}

static double
compute_of(const struct table *table, uint32_t member, double step_ns)
{
	double longest = 0;
	(void)step_ns;
	for (uint32_t l = 0; l < table->members; l++) {
		longest = larger(longest, cell_of(table, member, l)->sum.compute);
	}
	return longest;
}

static double
out_of(const struct table *table, uint32_t member, double step_ns)
{
	double longest = 0;
	(void)step_ns;
	for (uint32_t l = 0; l < table->members; l++) {
		const struct wf_why_part *part = &cell_of(table, member, l)->sum;
		longest = larger(longest, part->wait + part->way);
	}
	return longest;
}

static double
way_of(const struct table *table, uint32_t member, double step_ns)
{
	double longest = 0;
	(void)step_ns;
	for (uint32_t l = 0; l < table->members; l++) {
		longest = larger(longest, cell_of(table, member, l)->sum.way);
	}
	return longest;
}

static double
in_of(const struct table *table, uint32_t member, double step_ns)
{
	double longest = 0;
	(void)step_ns;
	for (uint32_t l = 0; l < table->members; l++) {
		longest = larger(longest, cell_of(table, member, l)->sum.answered);
	}
	return longest;
}

static double
bytes_of(const struct table *table, uint32_t lane, double step_ns)
{
	double bytes = 0;
	(void)step_ns;
	for (uint32_t t = 0; t < table->members; t++) {
		bytes += cell_of(table, t, lane)->bytes;
	}
	return bytes;
}

/* ---- the verdict ---- */

static double
step_time(const struct table *table)
{
	double longest = 0;
	for (uint32_t t = 0; t < table->members; t++) {
		uint64_t first = table->steps > 0 ? last_answer(table, 0, t) : 0;
		uint64_t last = table->steps > 0 ? last_answer(table, table->steps - 1, t) : 0;
		if (first != 0 && table->timed > 0) {
			longest = larger(longest, between(first, last) / table->timed);
		}
	}
	return longest;
}

static void
name_it(struct wf_why *out, enum wf_why_kind kind, uint32_t member, double share, double wait)
{
	out->kind = kind;
	out->member = member;
	out->share = smaller(share, 1);
	out->wait_ns = wait;
}

/* Pushes wait to be sent for the link that they leave on, or for slots, which answers free: the
 * times on the way tell which. A clock that is wrong makes one direction longer and the other one
 * shorter by as much, so a direction is named only if it is the slow one for any such error. */
static void
judge_network(const struct table *table, const struct ranking *ranking, struct wf_why *out,
	      double share)
{
	uint32_t who = ranking->last;
	double step = out->step_ns;
	double way = way_of(table, who, step) - of_others(table, who, step, way_of);
	double back = in_of(table, who, step) - of_others(table, who, step, in_of);
	double error = (double)table->recording->member[who].error_ns;
	if (way - error >= ONE_WAY * (back + error)) {
		name_it(out, WF_WHY_OUT, who, smaller(ranking->share, share), ranking->gap);
	} else if (back - error >= ONE_WAY * (way + error)) {
		name_it(out, WF_WHY_IN, who, smaller(ranking->share, share), ranking->gap);
	} else {
		name_it(out, WF_WHY_NETWORK, who, smaller(ranking->share, share), ranking->gap);
	}
}

static void
judge_trainer(const struct table *table, const struct ranking *ranking, struct wf_why *out)
{
	uint32_t who = ranking->last;
	double step = out->step_ns;
	double gap = ranking->gap;
	double compute = compute_of(table, who, step) - of_others(table, who, step, compute_of);
	double away = out_of(table, who, step) - of_others(table, who, step, out_of);
	double back = in_of(table, who, step) - of_others(table, who, step, in_of);
	double queue = run_queue_of(table, who, step) - of_others(table, who, step, run_queue_of);
	double faults = faults_of(table, who, step);
	double others_faults = of_others(table, who, step, faults_of);
	double cpu = usage_of(table, who, step).cpu;
	if (faults >= FAULTS && faults >= 4 * others_faults &&
	    compute + away + back >= EXPLAINS * gap) {
		name_it(out, WF_WHY_PAGING, who, ranking->share, gap);
	} else if (queue >= EXPLAINS * gap) {
		name_it(out, WF_WHY_NO_CPU, who, smaller(ranking->share, queue / gap), gap);
	} else if (compute >= EXPLAINS * gap) {
		bool idle = !isnan(cpu) && cpu < IDLE_CPU * compute_of(table, who, step);
		name_it(out, idle ? WF_WHY_DEVICE : WF_WHY_COMPUTE, who,
			smaller(ranking->share, compute / gap), gap);
	} else if (away + back >= EXPLAINS * gap) {
		judge_network(table, ranking, out, (away + back) / gap);
	}
}

static void
judge_lane(const struct table *table, const struct ranking *ranking, struct wf_why *out)
{
	uint32_t who = ranking->last;
	double step = out->step_ns;
	double gap = ranking->gap;
	double queue = run_queue_of(table, who, step) - of_others(table, who, step, run_queue_of);
	double heavy =
		bytes_of(table, who, step) / larger(of_others(table, who, step, bytes_of), 1);
	enum wf_why_kind kind = queue >= EXPLAINS * gap ? WF_WHY_NO_CPU
				: heavy >= HEAVY        ? WF_WHY_IMBALANCE
							: WF_WHY_LANE;
	name_it(out, kind, who, ranking->share, gap);
}

/* Nobody stands out against its like: is one of them, though, without a CPU? */
static void
judge_alone(const struct table *table, struct wf_why *out)
{
	for (uint32_t m = 0; m < table->members; m++) {
		double queue = run_queue_of(table, m, out->step_ns);
		double mean = mean_of(table, m);
		if (!isnan(mean) && queue >= 2 * FAIR * out->step_ns && queue >= EXPLAINS * mean &&
		    queue > out->wait_ns) {
			name_it(out, WF_WHY_NO_CPU, m, queue / mean, queue);
		}
	}
}

static bool
stands_out(const struct ranking *ranking, double step_ns)
{
	return ranking->gap >= FAIR * step_ns && ranking->share >= EXPLAINS &&
	       ranking->last_in >= MOST;
}

static void
judge(const struct table *table, struct wf_why *out)
{
	struct ranking trainers = rank(table, true);
	struct ranking lanes = rank(table, false);
	bool of_trainers = stands_out(&trainers, out->step_ns);
	bool of_lanes = stands_out(&lanes, out->step_ns);
	if (of_lanes && (!of_trainers || lanes.gap > trainers.gap)) {
		judge_lane(table, &lanes, out);
	} else if (of_trainers) {
		judge_trainer(table, &trainers, out);
	} else {
		judge_alone(table, out);
	}
	out->is_trainer = out->kind != WF_WHY_NOBODY && is_trainer(table, out->member);
}

/* ---- lines ---- */

const char *
wf_why_kind_name(enum wf_why_kind kind)
{
	static const char *const name[] = {
		[WF_WHY_NOBODY] = "nobody",        [WF_WHY_COMPUTE] = "slow_compute",
		[WF_WHY_DEVICE] = "slow_device",   [WF_WHY_OUT] = "slow_out",
		[WF_WHY_IN] = "slow_in",           [WF_WHY_NO_CPU] = "no_cpu",
		[WF_WHY_NETWORK] = "slow_network", [WF_WHY_PAGING] = "paging",
		[WF_WHY_LANE] = "slow_lane",       [WF_WHY_IMBALANCE] = "imbalance",
	};
	return name[kind];
}

/* What is wrong, and what to do. */
static const char *
remedy(enum wf_why_kind kind, bool of_trainer)
{
	switch (kind) {
	case WF_WHY_COMPUTE:
		return "it computes longer than the others: give it smaller batches, or a faster "
		       "host";
	case WF_WHY_DEVICE:
		return "it computes longer than the others, and uses no CPU meanwhile: look at "
		       "what "
		       "it waits for: its input, a disk, a device";
	case WF_WHY_OUT:
		return "its gradients take longer to the lanes: look at the link that it sends on";
	case WF_WHY_IN:
		return "its answers take longer to it: look at the link that it receives on";
	case WF_WHY_NETWORK:
		return "its gradients and answers take longer on the way, and the clocks do not "
		       "tell "
		       "in which direction: look at its link";
	case WF_WHY_NO_CPU:
		return of_trainer ? "it could run, and gets no CPU: look at what else runs there, "
				    "and at its cgroup's limit (cpu.max)"
				  : "its thread could run, and gets no CPU: look at what else runs "
				    "there, at --pin, and at its cgroup's limit (cpu.max)";
	case WF_WHY_PAGING:
		return "its pages come from a disk: give it more memory, or use less of it "
		       "(memory.max, swap)";
	case WF_WHY_LANE:
		return "it takes longer than the other lanes: look at its host, and at --pin";
	case WF_WHY_IMBALANCE:
		return "it has more bytes than the other lanes: use a smaller slice_bytes";
	case WF_WHY_NOBODY:
		break;
	}
	return "";
}

static void
write_head(const struct table *table, struct wf_why *out)
{
	char who[64];
	char *line = out->line[out->line_count++];
	if (out->kind == WF_WHY_NOBODY) {
		(void)snprintf(line, WF_WHY_LINE_BYTES,
			       "steps %u to %u: %.1f ms each; no culprit: nobody explains %.0f %% "
			       "of the wait",
			       table->pushes->first_step + 1, table->pushes->end_step - 1,
			       out->step_ns / 1e6, EXPLAINS * 100);
		return;
	}
	wf_recording_name(table->recording, &table->recording->member[out->member], who,
			  sizeof(who));
	const char *host = table->recording->member[out->member].host;
	(void)snprintf(line, WF_WHY_LINE_BYTES,
		       "steps %u to %u: %.1f ms each, %.1f of them wait for %s%s%.60s%s (%s, "
		       "explains %.0f %%): %s",
		       table->pushes->first_step + 1, table->pushes->end_step - 1,
		       out->step_ns / 1e6, out->wait_ns / 1e6, who, host[0] != '\0' ? " on " : "",
		       host, "", wf_why_kind_name(out->kind), out->share * 100,
		       remedy(out->kind, out->is_trainer));
}

struct row {
	uint32_t trainer, lane;
	double own; /* by which they are listed */
};

static int
by_own(const void *a_arg, const void *b_arg)
{
	const struct row *a = a_arg;
	const struct row *b = b_arg;
	return a->own > b->own ? -1 : a->own < b->own;
}

static void
write_row(const struct table *table, const struct row *row, struct wf_why *out)
{
	char trainer[64];
	char lane[64];
	const struct wf_why_part *part = &cell_of(table, row->trainer, row->lane)->sum;
	wf_recording_name(table->recording, &table->recording->member[row->trainer], trainer,
			  sizeof(trainer));
	wf_recording_name(table->recording, &table->recording->member[row->lane], lane,
			  sizeof(lane));
	(void)snprintf(out->line[out->line_count++], WF_WHY_LINE_BYTES,
		       "  %-11s %-16s %9.2f %9.2f %9.2f %9.2f %9.2f %9.2f", trainer, lane,
		       part->compute / 1e6, part->wait / 1e6, part->way / 1e6, part->parked / 1e6,
		       part->applied / 1e6, part->answered / 1e6);
}

/* Those that take longest; the others are not shown. */
static enum weft_status
write_rows(const struct table *table, struct wf_why *out)
{
	uint32_t most = table->members * table->members;
	struct row *row = wf_zalloc_array(table->env, most + 1u, sizeof(*row));
	uint32_t count = 0;
	if (row == NULL) {
		return wf_fail(WEFT_NOMEM, "no memory for %u rows", most);
	}
	for (uint32_t t = 0; t < table->members; t++) {
		for (uint32_t l = 0; l < table->members; l++) {
			const struct wf_why_part *part = &cell_of(table, t, l)->sum;
			double own = part->compute + part->wait + part->way + part->applied +
				     part->answered;
			if (cell_of(table, t, l)->bytes > 0) {
				row[count++] = (struct row){.trainer = t, .lane = l, .own = own};
			}
		}
	}
	qsort(row, count, sizeof(*row), by_own);
	(void)snprintf(out->line[out->line_count++], WF_WHY_LINE_BYTES,
		       "  %-11s %-16s %9s %9s %9s %9s %9s %9s", "ms of a step", "", "compute",
		       "to send", "way", "parked", "apply", "answer");
	for (uint32_t i = 0; i < count && i < LISTED; i++) {
		write_row(table, &row[i], out);
	}
	wf_free(table->env, row, (most + 1u) * sizeof(*row));
	return WEFT_OK;
}

static enum weft_status
open_table(struct table *table)
{
	uint64_t cells = (uint64_t)table->members * table->members;
	table->path = wf_zalloc_array(table->env, cells * table->steps, sizeof(*table->path));
	table->cell = wf_zalloc_array(table->env, cells, sizeof(*table->cell));
	table->own = wf_zalloc_array(table->env, (size_t)table->steps * table->members,
				     sizeof(*table->own));
	return table->path != NULL && table->cell != NULL && table->own != NULL
		       ? WEFT_OK
		       : wf_fail(WEFT_NOMEM, "no memory for %u members in %u steps", table->members,
				 table->steps);
}

static void
close_table(struct table *table)
{
	uint64_t cells = (uint64_t)table->members * table->members;
	wf_free(table->env, table->path, cells * table->steps * sizeof(*table->path));
	wf_free(table->env, table->cell, cells * sizeof(*table->cell));
	wf_free(table->env, table->own,
		(size_t)table->steps * table->members * sizeof(*table->own));
}

enum weft_status
wf_why_find(const struct wf_recording *recording, const struct wf_pushes *pushes,
	    struct wf_why *out)
{
	*out = (struct wf_why){0};
	struct table table = {
		.env = recording->env,
		.recording = recording,
		.pushes = pushes,
		.members = recording->count,
		.steps = pushes->end_step - pushes->first_step,
	};
	if (table.steps < 2) {
		return wf_fail(
			WEFT_DATA,
			"no two steps in a row were recorded from their pushes to their "
			"answers: does the job make steps? Are they too many for the rings of "
			"%u events? Ask for fewer",
			WF_TRACE_EVENTS);
	}
	enum weft_status st = open_table(&table);
	if (st == WEFT_OK) {
		fill_paths(&table);
		fill_times(&table);
		out->steps = table.timed;
		out->step_ns = step_time(&table);
		judge(&table, out);
		write_head(&table, out);
		st = write_rows(&table, out);
	}
	close_table(&table);
	return st;
}
