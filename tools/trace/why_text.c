/* SPDX-License-Identifier: Apache-2.0 */
/* why_text: the lines of the answer. Thread: main. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/assert.h"
#include "tools/trace/why_table.h"

#define EXPLAINS_PERCENT 80 /* as why.c names a culprit */
#define LISTED 6u           /* members that have a line */

const char *
wf_why_kind_name(enum wf_why_kind kind)
{
	static const char *const name[] = {
		[WF_WHY_NOBODY] = "nobody",        [WF_WHY_COMPUTE] = "slow_compute",
		[WF_WHY_DEVICE] = "slow_device",   [WF_WHY_OUT] = "slow_out",
		[WF_WHY_IN] = "slow_in",           [WF_WHY_NO_CPU] = "no_cpu",
		[WF_WHY_NETWORK] = "slow_network", [WF_WHY_PAGING] = "paging",
		[WF_WHY_LANE] = "slow_lane",       [WF_WHY_IMBALANCE] = "imbalance",
		[WF_WHY_HOT_KEYS] = "hot_keys",
	};
	return name[kind];
}

/* What is wrong, and what to do. */
static const char *
remedy(const struct wf_why *why)
{
	switch (why->kind) {
	case WF_WHY_COMPUTE:
		return why->is_idle ? "it computes longer than the others, and uses no CPU "
				      "meanwhile: it sleeps, or waits for its input or a lock"
				    : "it computes longer than the others: give it smaller "
				      "batches, or a faster host";
	case WF_WHY_DEVICE:
		return "it computes longer than the others, and uses no CPU meanwhile, but has an "
		       "accelerator open: look at that device, its clock, its temperature, and who "
		       "else uses it";
	case WF_WHY_OUT:
		return "its gradients take longer to the lanes: look at the link that it sends on";
	case WF_WHY_IN:
		return "its answers take longer to it: look at the link that it receives on";
	case WF_WHY_NETWORK:
		return "its gradients and answers take longer on the way, and the clocks do not "
		       "tell "
		       "in which direction: look at its link";
	case WF_WHY_NO_CPU:
		return why->is_trainer
			       ? "it could run, and gets no CPU: look at what else runs there, "
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
	case WF_WHY_HOT_KEYS:
		return "it is asked for more rows than the other sparse lanes: use more sparse "
		       "lanes, or spread the keys that many batches have";
	case WF_WHY_NOBODY:
		break;
	}
	return "";
}

/* "; its most frequent keys are 8 (12.0 %), 9 (3.1 %)": parts of what their table is asked for. */
static void
list_hot(const struct wf_why *why, char *out, size_t bytes)
{
	size_t used = 0;
	out[0] = '\0';
	for (uint32_t i = 0; i < why->hot_count && used < bytes; i++) {
		const struct wf_why_hot *hot = &why->hot[i];
		int wrote = snprintf(out + used, bytes - used, "%s %" PRIu64 " (%.1f %%)",
				     i == 0 ? "; its most frequent keys are" : ",", hot->key,
				     hot->thousandths / 10.0);
		used += wrote > 0 ? (size_t)wrote : 0;
	}
}

static void
write_head(const struct wf_why_table *table, struct wf_why *out)
{
	char who[64];
	char hot[160];
	char *line = out->line[out->line_count++];
	if (out->kind == WF_WHY_NOBODY) {
		(void)snprintf(line, WF_WHY_LINE_BYTES,
			       "steps %u to %u: %.1f ms each; no culprit: nobody explains %d %% "
			       "of the wait",
			       table->pushes->first_step + 1, table->pushes->end_step - 1,
			       out->step_ns / 1e6, EXPLAINS_PERCENT);
		return;
	}
	wf_recording_name(table->recording, &table->recording->member[out->member], who,
			  sizeof(who));
	const char *host = table->recording->member[out->member].host;
	list_hot(out, hot, sizeof(hot));
	(void)snprintf(line, WF_WHY_LINE_BYTES,
		       "steps %u to %u: %.1f ms each, %.1f of them wait for %s%s%.60s (%s, "
		       "explains %.0f %%): %s%s",
		       table->pushes->first_step + 1, table->pushes->end_step - 1,
		       out->step_ns / 1e6, out->wait_ns / 1e6, who, host[0] != '\0' ? " on " : "",
		       host, wf_why_kind_name(out->kind), out->share * 100, remedy(out), hot);
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
write_row(const struct wf_why_table *table, const struct row *row, struct wf_why *out)
{
	char trainer[64];
	char lane[64];
	const struct wf_why_part *part = &wf_why_cell_of(table, row->trainer, row->lane)->sum;
	wf_recording_name(table->recording, &table->recording->member[row->trainer], trainer,
			  sizeof(trainer));
	wf_recording_name(table->recording, &table->recording->member[row->lane], lane,
			  sizeof(lane));
	(void)snprintf(out->line[out->line_count++], WF_WHY_LINE_BYTES,
		       "  %-11s %-16s %9.2f %9.2f %9.2f %9.2f %9.2f %9.2f %9.2f", trainer, lane,
		       part->compute / 1e6, part->rows / 1e6, part->wait / 1e6, part->way / 1e6,
		       part->parked / 1e6, part->applied / 1e6, part->answered / 1e6);
}

/* Those that take longest; the others are not shown. */
static enum weft_status
write_rows(const struct wf_why_table *table, struct wf_why *out)
{
	uint32_t most = table->members * table->members;
	struct row *row = wf_zalloc_array(table->env, most + 1u, sizeof(*row));
	uint32_t count = 0;
	if (row == NULL) {
		return wf_fail(WEFT_NOMEM, "no memory for %u rows", most);
	}
	for (uint32_t t = 0; t < table->members; t++) {
		for (uint32_t l = 0; l < table->members; l++) {
			const struct wf_why_part *part = &wf_why_cell_of(table, t, l)->sum;
			double own = part->compute + part->rows + part->wait + part->way +
				     part->applied + part->answered;
			if (wf_why_cell_of(table, t, l)->bytes > 0 || part->rows > 0) {
				row[count++] = (struct row){.trainer = t, .lane = l, .own = own};
			}
		}
	}
	qsort(row, count, sizeof(*row), by_own);
	(void)snprintf(out->line[out->line_count++], WF_WHY_LINE_BYTES,
		       "  %-11s %-16s %9s %9s %9s %9s %9s %9s %9s", "ms of a step", "", "compute",
		       "rows", "to send", "way", "parked", "apply", "answer");
	for (uint32_t i = 0; i < count && i < LISTED; i++) {
		write_row(table, &row[i], out);
	}
	wf_free(table->env, row, (most + 1u) * sizeof(*row));
	return WEFT_OK;
}

enum weft_status
wf_why_write(const struct wf_why_table *table, struct wf_why *out)
{
	write_head(table, out);
	return write_rows(table, out);
}
