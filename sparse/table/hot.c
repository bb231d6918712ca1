/* SPDX-License-Identifier: Apache-2.0 */
/* hot: see hot.h. Thread: the lane's. */
#include "sparse/table/hot.h"

#include <stdlib.h>

#include "base/assert.h"
#include "kernels/kernels.h"
#include "wire/partition.h"

#define SLOTS (WF_HOT_SETS * WF_HOT_WAYS)
#define FIT_LEAST 8u   /* counters, for a slope */
#define FIT_MOST 64u   /* more are hardly ever sure */
#define SURE_SHARE 10u /* a counter is sure if it is too high by one part in ten at most */
#define FIT_COUNT 16u  /* samples that a counter needs to take part */

static void
add_one(struct wf_hot *hot, uint64_t key)
{
	struct wf_hot_key *set = hot->slot[wf_key_mix(key) % WF_HOT_SETS];
	struct wf_hot_key *least = set;

	for (unsigned way = 0; way < WF_HOT_WAYS; way++) {
		if (set[way].count > 0 && set[way].key == key) {
			set[way].count++;
			return;
		}
		if (set[way].count < least->count) {
			least = &set[way];
		}
	}
	*least = (struct wf_hot_key){.key = key, .count = least->count + 1, .over = least->count};
}

void
wf_hot_add(struct wf_hot *hot, const uint64_t *key, size_t count)
{
	size_t at = hot->skip;

	for (; at < count; at += WF_HOT_SAMPLE) {
		add_one(hot, key[at]);
		hot->sample_count++;
	}
	hot->skip = (uint32_t)(at - count);
}

/* By the certain part of the count; then by key, so that the order is unique. */
static int
compare(const void *a, const void *b)
{
	const struct wf_hot_key *x = a;
	const struct wf_hot_key *y = b;
	uint64_t sure_x = x->count - x->over;
	uint64_t sure_y = y->count - y->over;
	if (sure_x != sure_y) {
		return sure_x > sure_y ? -1 : 1;
	}
	return (x->key > y->key) - (x->key < y->key);
}

size_t
wf_hot_top(const struct wf_hot *hot, struct wf_hot_key *out, size_t most)
{
	struct wf_hot_key all[SLOTS];
	size_t found = 0;

	for (unsigned i = 0; i < SLOTS; i++) {
		const struct wf_hot_key *slot = &hot->slot[i / WF_HOT_WAYS][i % WF_HOT_WAYS];
		if (slot->count > 0) {
			all[found++] = *slot;
		}
	}
	qsort(all, found, sizeof(all[0]), compare);
	size_t count = found < most ? found : most;
	for (size_t i = 0; i < count; i++) {
		out[i] = all[i];
	}
	return count;
}

double
wf_hot_zipf(const struct wf_hot *hot)
{
	struct wf_hot_key top[FIT_MOST];
	size_t found = wf_hot_top(hot, top, FIT_MOST);
	size_t count = 0;
	double x_sum = 0.0;
	double y_sum = 0.0;
	double xx_sum = 0.0;
	double xy_sum = 0.0;

	for (; count < found; count++) {
		const struct wf_hot_key *slot = &top[count];
		if (slot->count < FIT_COUNT || slot->over * SURE_SHARE > slot->count) {
			break;
		}
		double x = wf_log_f64((double)(count + 1));
		double y = wf_log_f64((double)slot->count - 0.5 * (double)slot->over);
		x_sum += x;
		y_sum += y;
		xx_sum += x * x;
		xy_sum += x * y;
	}
	if (count < FIT_LEAST) {
		return -1.0;
	}
	double n = (double)count;
	double slope = (n * xy_sum - x_sum * y_sum) / (n * xx_sum - x_sum * x_sum);
	return slope < 0.0 ? -slope : 0.0;
}

double
wf_hot_imbalance(const uint64_t *load, size_t count)
{
	double most = 0.0;
	double sum = 0.0;

	for (size_t i = 0; i < count; i++) {
		double one = (double)load[i];
		sum += one;
		most = one > most ? one : most;
	}
	return sum > 0.0 ? most * (double)count / sum : 0.0;
}
