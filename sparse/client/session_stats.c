/* SPDX-License-Identifier: Apache-2.0 */
/* session_stats: what a session's tables have sent and received, by lane, and what follows from it:
 * how unequal the lanes' shares are, and which keys are hot. Thread: the owner's; that of the stats
 * line is the core's. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "sparse/client/session.h"
#include "trainer/session/gate.h"

#define LOOK_BATCHES 256u     /* between two checks, after the first few */
#define WARN_ROWS_LEAST 4096u /* per lane: fewer are not significant */
#define WARN_IMBALANCE 2.0    /* of the busiest lane by the mean */

static void
count(struct weft_table *table, uint32_t lane, enum wf_share what, uint64_t amount)
{
	wf_count(&table->share[lane].count[what], amount);
}

static uint64_t
counted(const struct weft_table *table, uint32_t lane, enum wf_share what)
{
	return wf_counted(&table->share[lane].count[what]);
}

static uint64_t
rows_of(const struct weft_table *table, uint32_t lane)
{
	return counted(table, lane, WF_SHARE_ROWS_PULLED) +
	       counted(table, lane, WF_SHARE_ROWS_PUSHED);
}

/* Rows of the busiest lane divided by the mean of all lanes, for one table, or all if it is NULL;
 * 0: nothing was counted. */
static double
imbalance(const struct wf_client *client, const struct weft_table *one, uint64_t *sum)
{
	uint64_t most = 0;
	*sum = 0;
	for (uint32_t l = 0; l < client->lane_count; l++) {
		uint64_t load = 0;
		for (uint32_t t = 0; t < client->tables.count; t++) {
			bool is_meant = one == NULL || one == client->tables.table[t];
			load += is_meant ? rows_of(client->tables.table[t], l) : 0;
		}
		most = load > most ? load : most;
		*sum += load;
	}
	return *sum == 0 ? 0 : (double)most * client->lane_count / (double)*sum;
}

/* Warns, once, that some lanes have much more to do than others. */
static void
warn(struct wf_client *client)
{
	uint64_t sum;
	double times = imbalance(client, NULL, &sum);
	if (client->step.warned || times < WARN_IMBALANCE ||
	    sum < (uint64_t)WARN_ROWS_LEAST * client->lane_count) {
		return;
	}
	client->step.warned = true;
	wf_core_log(client->core, WEFT_LOG_WARN,
		    "trainer %u: the busiest of %u sparse lanes has %.1f times the mean number of "
		    "rows: some keys are much more frequent than others, or there are few keys",
		    client->core->opts.trainer_id, client->lane_count, times);
}

/* Stores the hottest key and the exponent for stats lines, which another thread may write. */
static void
log_hot_keys(struct weft_table *table)
{
	struct wf_hot_key top;
	double zipf = wf_hot_zipf(&table->hot);
	atomic_store_explicit(&table->zipf_milli, (int64_t)(zipf * 1000), memory_order_relaxed);
	if (wf_hot_top(&table->hot, &top, 1) > 0) {
		atomic_store_explicit(&table->hottest_key, top.key, memory_order_relaxed);
		atomic_store_explicit(&table->hottest_times, top.count * WF_HOT_SAMPLE,
				      memory_order_relaxed);
	}
}

void
wf_client_count_pull(struct weft_rows *rows, const uint64_t *key)
{
	struct weft_table *table = rows->table;
	struct wf_client *client = table->client;
	const struct wf_batch_view *view = &rows->view;
	size_t row_bytes = wf_table_row_bytes(&client->tables.desc[table->idx]);
	table->batches_pulled++;
	table->keys_pulled += view->key_count;
	wf_hot_add(&table->hot, key, view->key_count);
	for (uint32_t l = 0; l < client->lane_count; l++) {
		uint64_t row_count = view->lane_first[l + 1] - view->lane_first[l];
		count(table, l, WF_SHARE_ROWS_PULLED, row_count);
		count(table, l, WF_SHARE_ROW_BYTES, row_count * row_bytes);
		for (uint32_t i = view->lane_part[l]; i < view->lane_part[l + 1]; i++) {
			count(table, l, WF_SHARE_KEY_BYTES, view->part[i].key_bytes);
		}
	}
	if (table->batches_pulled % LOOK_BATCHES == 0 ||
	    (table->batches_pulled & (table->batches_pulled - 1)) == 0) {
		log_hot_keys(table);
		warn(client);
	}
}

void
wf_client_count_push(struct weft_rows *rows)
{
	struct weft_table *table = rows->table;
	struct wf_client *client = table->client;
	const struct wf_batch_view *view = &rows->view;
	table->batches_pushed++;
	table->keys_pushed += view->key_count;
	for (uint32_t l = 0; l < client->lane_count; l++) {
		uint64_t row_count = view->lane_first[l + 1] - view->lane_first[l];
		count(table, l, WF_SHARE_ROWS_PUSHED, row_count);
		count(table, l, WF_SHARE_GRAD_BYTES,
		      row_count * wf_table_front_bytes(&client->tables.desc[table->idx]));
		for (uint32_t i = view->lane_part[l]; i < view->lane_part[l + 1]; i++) {
			count(table, l, WF_SHARE_KEY_BYTES, view->part[i].key_bytes);
		}
	}
}

static enum weft_status
check_bytes(const char *what, size_t given, size_t own)
{
	if (given == own) {
		return WEFT_OK;
	}
	return wf_fail(
		WEFT_INVALID,
		"%s: struct_bytes is %zu, but the library has %zu: set struct_bytes, and build "
		"against this version's headers",
		what, given, own);
}

enum weft_status
weft_table_lane_stats(struct weft_table *table, uint32_t lane, struct weft_table_lane_stats *out)
{
	WF_ENTER(table->client->session);
	enum weft_status st = check_bytes("weft_table_lane_stats", out->struct_bytes, sizeof(*out));
	if (st != WEFT_OK) {
		return st;
	}
	if (lane >= table->client->lane_count) {
		return wf_fail(WEFT_INVALID, "sparse lane %u of %u", lane,
			       table->client->lane_count);
	}
	*out = (struct weft_table_lane_stats){
		.struct_bytes = sizeof(*out),
		.rows_pulled = counted(table, lane, WF_SHARE_ROWS_PULLED),
		.rows_pushed = counted(table, lane, WF_SHARE_ROWS_PUSHED),
		.key_bytes = counted(table, lane, WF_SHARE_KEY_BYTES),
		.row_bytes = counted(table, lane, WF_SHARE_ROW_BYTES),
		.grad_bytes = counted(table, lane, WF_SHARE_GRAD_BYTES),
	};
	return WEFT_OK;
}

enum weft_status
weft_table_stats(struct weft_table *table, struct weft_table_stats *out)
{
	WF_ENTER(table->client->session);
	const struct wf_client *client = table->client;
	struct wf_hot_key top[WEFT_TABLE_HOT_KEYS];
	uint64_t sum;
	enum weft_status st = check_bytes("weft_table_stats", out->struct_bytes, sizeof(*out));
	if (st != WEFT_OK) {
		return st;
	}
	*out = (struct weft_table_stats){
		.struct_bytes = sizeof(*out),
		.batches_pulled = table->batches_pulled,
		.batches_pushed = table->batches_pushed,
		.keys_pulled = table->keys_pulled,
		.keys_pushed = table->keys_pushed,
		.copied_bytes = table->copied_bytes,
		.imbalance = imbalance(client, table, &sum),
		.lane_count = client->lane_count,
		.zipf = wf_hot_zipf(&table->hot),
	};
	for (uint32_t l = 0; l < client->lane_count; l++) {
		out->rows_pulled += counted(table, l, WF_SHARE_ROWS_PULLED);
		out->rows_pushed += counted(table, l, WF_SHARE_ROWS_PUSHED);
		out->key_bytes += counted(table, l, WF_SHARE_KEY_BYTES);
		out->row_bytes += counted(table, l, WF_SHARE_ROW_BYTES);
		out->grad_bytes += counted(table, l, WF_SHARE_GRAD_BYTES);
	}
	out->hot_count = (uint32_t)wf_hot_top(&table->hot, top, WEFT_TABLE_HOT_KEYS);
	for (uint32_t i = 0; i < out->hot_count; i++) {
		out->hot_key[i] = top[i].key;
		out->hot_times[i] = top[i].count * WF_HOT_SAMPLE;
	}
	return WEFT_OK;
}

enum weft_status
weft_sparse_stats(struct weft_session *session, struct weft_sparse_stats *out)
{
	WF_ENTER(session);
	const struct wf_client *client = wf_client_of(session);
	enum weft_status st = check_bytes("weft_sparse_stats", out->struct_bytes, sizeof(*out));
	if (st != WEFT_OK) {
		return st;
	}
	*out = (struct weft_sparse_stats){.struct_bytes = sizeof(*out)};
	if (client == NULL) {
		return WEFT_OK;
	}
	const struct wf_client_counts *counts = &client->counts;
	out->steps_applied = wf_counted(&counts->steps_applied);
	out->rows_updated = wf_counted(&counts->rows_updated);
	out->pushes_lost = wf_counted(&counts->pushes_lost);
	out->grads_nonfinite = wf_counted(&counts->grads_nonfinite);
	out->waits_slot = wf_counted(&counts->waits_slot);
	out->pulls_repeated = wf_counted(&counts->pulls_repeated);
	out->pushes_repeated = wf_counted(&counts->pushes_repeated);
	return WEFT_OK;
}

/* The table whose hottest key is requested most. */
static const struct weft_table *
hottest(const struct wf_client *client)
{
	const struct weft_table *best = client->tables.table[0];
	for (uint32_t t = 1; t < client->tables.count; t++) {
		const struct weft_table *table = client->tables.table[t];
		best = wf_counted(&table->hottest_times) > wf_counted(&best->hottest_times) ? table
											    : best;
	}
	return best;
}

void
wf_client_report(struct wf_core *core, bool whole, char *out, size_t bytes)
{
	struct wf_client *client = core->service.state;
	const struct weft_table *hot = hottest(client);
	uint64_t total[WF_SHARE_COUNT] = {0};
	uint64_t rows;
	double times = imbalance(client, NULL, &rows);
	for (uint32_t t = 0; t < client->tables.count; t++) {
		for (uint32_t l = 0; l < client->lane_count; l++) {
			for (int i = 0; i < WF_SHARE_COUNT; i++) {
				total[i] += counted(client->tables.table[t], l, (enum wf_share)i);
			}
		}
	}
	const uint64_t *then = client->reported;
	uint64_t since[WF_SHARE_COUNT];
	for (int i = 0; i < WF_SHARE_COUNT; i++) {
		since[i] = total[i] - (whole ? 0 : then[i]);
		client->reported[i] = total[i];
	}
	(void)snprintf(
		out, bytes,
		" rows_pulled %" PRIu64 " rows_pushed %" PRIu64 " key_bytes %" PRIu64
		" row_bytes %" PRIu64 " grad_bytes %" PRIu64 " imbalance %.2f hottest_key %" PRIu64
		" hottest_times %" PRIu64 " zipf %.2f pushes_lost %" PRIu64 " waits_slot %" PRIu64
		" parts_ahead %" PRIu64,
		since[WF_SHARE_ROWS_PULLED], since[WF_SHARE_ROWS_PUSHED], since[WF_SHARE_KEY_BYTES],
		since[WF_SHARE_ROW_BYTES], since[WF_SHARE_GRAD_BYTES], times,
		wf_counted(&hot->hottest_key), wf_counted(&hot->hottest_times),
		(double)atomic_load_explicit(&hot->zipf_milli, memory_order_relaxed) / 1000,
		wf_counted(&client->counts.pushes_lost), wf_counted(&client->counts.waits_slot),
		wf_counted(&client->counts.parts_ahead));
}
