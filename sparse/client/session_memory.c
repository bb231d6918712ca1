/* SPDX-License-Identifier: Apache-2.0 */
/* session_memory: the two slabs of a session's tables, one that answers land in and one that is
 * sent from, and each batch's share of both. Thread: the owner's; either thread may call
 * wf_client_landing. */
#include "sparse/client/session.h"

#include "base/pin.h"
#include "wire/partition.h"

uint64_t
wf_client_aligned(uint64_t bytes)
{
	return (bytes + WF_BATCH_ALIGN - 1) / WF_BATCH_ALIGN * WF_BATCH_ALIGN;
}

uint64_t
wf_client_rows_bytes(const struct weft_table *table)
{
	const struct wf_table_desc *desc = &table->client->tables.desc[table->idx];
	uint64_t bytes = (uint64_t)table->keys_max * desc->set.dim * sizeof(float);
	bool lands_apart = desc->set.wire != WEFT_VALUES_F32;
	return wf_client_aligned(bytes) + (lands_apart ? WF_BATCH_ALIGN : 0);
}

/* At least wf_batch_send_bytes for any slot of WF_CLIENT_SLOT_MIN bytes or more. Each part may
 * leave a gap after it; parts are long enough for that to be little. */
uint64_t
wf_client_send_bytes(const struct weft_table *table)
{
	const struct wf_table_desc *desc = &table->client->tables.desc[table->idx];
	uint64_t row = wf_table_front_bytes(desc) + WF_KEY_BYTES;
	uint64_t part_rows = WF_CLIENT_SLOT_MIN > row ? WF_CLIENT_SLOT_MIN / row : 1;
	uint64_t lanes = table->client->lane_count;
	lanes = lanes < WF_PARTITION_COUNT ? lanes : WF_PARTITION_COUNT;
	uint64_t parts = table->keys_max / part_rows + lanes;
	return wf_client_aligned(table->keys_max * row + parts * (WF_BATCH_ALIGN - 1));
}

void
wf_client_slabs_release(struct wf_client *client)
{
	struct wf_env *env = client->session->core.end.env;
	/* weft_rows_values points into it; no caller has such a pointer before the seal. */
	bool keep = client->core->opts.keep_arrays != 0 && client->session->sealed;
	wf_slab_release(env, &client->rows, keep);
	wf_slab_release(env, &client->send, false);
}

enum weft_status
wf_client_slabs_alloc(struct wf_client *client)
{
	struct wf_env *env = client->session->core.end.env;
	uint64_t rows = 0;
	uint64_t send = 0;
	for (uint32_t i = 0; i < client->tables.count; i++) {
		rows += WF_CLIENT_BATCHES * wf_client_rows_bytes(client->tables.table[i]);
		send += WF_CLIENT_BATCHES * wf_client_send_bytes(client->tables.table[i]);
	}
	rows += WF_CLIENT_PIECE; /* last in each slab: wf_client_slabs_deal does not assign it */
	send += WF_CLIENT_PIECE;
	int node = wf_pin_place_of(client->session->progress.pin, 0).numa_node;
	enum weft_status st = env->ops->slab_open(env, rows, node, &client->rows);
	return st != WEFT_OK ? st : env->ops->slab_open(env, send, node, &client->send);
}

void
wf_client_slabs_deal(struct wf_client *client)
{
	uint64_t rows_at = 0;
	uint64_t send_at = 0;
	for (uint32_t i = 0; i < client->tables.count * WF_CLIENT_BATCHES; i++) {
		struct weft_rows *rows = wf_client_rows(client, i);
		rows->idx = i;
		rows->table = client->tables.table[i / WF_CLIENT_BATCHES];
		rows->values_at = rows_at;
		rows->values = (float *)((char *)client->rows.base + rows_at);
		rows->send = (uint8_t *)client->send.base + send_at;
		rows_at += wf_client_rows_bytes(rows->table);
		send_at += wf_client_send_bytes(rows->table);
	}
}

uint64_t
wf_client_landing(const struct weft_rows *rows)
{
	if (wf_client_format(rows) == WEFT_VALUES_F32) {
		return 0;
	}
	return wf_client_rows_bytes(rows->table) - wf_client_aligned(wf_client_landed_bytes(rows));
}
