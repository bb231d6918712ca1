/* SPDX-License-Identifier: Apache-2.0 */
/* table: checks the settings of a table, and adds it to a session. Thread: the owner's. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/settings.h"
#include "kernels/rows.h"
#include "sparse/client/session.h"
#include "sparse/table/admit.h"
#include "sparse/table/init.h"
#include "sparse/table/rules.h"
#include "sparse/table/table.h"
#include "trainer/session/gate.h"
#include "wire/partition.h"

void
weft_table_opts_init_sized(struct weft_table_opts *opts, size_t struct_bytes)
{
	struct weft_table_opts defaults;
	wf_table_defaults(&defaults);
	wf_opts_give(opts, struct_bytes, &defaults, sizeof(defaults));
}

#undef weft_table_opts_init /* also a function, for languages without macros */

void
weft_table_opts_init(struct weft_table_opts *opts)
{
	weft_table_opts_init_sized(opts, sizeof(*opts));
}

/* Parses the names of the optimizer and the schedule, and replaces them by constant strings. */
static enum weft_status
read_row(struct wf_table_desc *desc)
{
	struct weft_row_optimizer_opts *set = &desc->set.optimizer;
	struct wf_row_opts row = {0};
	enum weft_status st =
		wf_row_optimizer_parse(set->method != NULL ? set->method : "", &row.kind);
	if (st == WEFT_OK) {
		st = wf_schedule_parse(set->schedule != NULL ? set->schedule : "", &row.schedule);
	}
	if (st != WEFT_OK) {
		return st;
	}
	set->method = wf_row_optimizer_name(row.kind);
	set->schedule = wf_schedule_name(row.schedule);
	desc->optimizer = (uint32_t)row.kind;
	desc->schedule = (uint32_t)row.schedule;
	row = wf_table_row(desc);
	return wf_row_check(&row);
}

static enum weft_status
read_init(struct wf_table_desc *desc)
{
	static const char *const names[WF_INIT_COUNT] = {
		[WF_INIT_ZERO] = "zero",
		[WF_INIT_UNIFORM] = "uniform",
		[WF_INIT_NORMAL] = "normal",
	};
	const char *name = desc->set.init != NULL ? desc->set.init : "";
	uint32_t kind = 0;
	while (kind < WF_INIT_COUNT && strcmp(names[kind], name) != 0) {
		kind++;
	}
	if (kind == WF_INIT_COUNT) {
		return wf_fail(WEFT_INVALID, "init \"%.40s\": give zero, uniform or normal", name);
	}
	desc->init = kind;
	desc->set.init = names[kind];
	const struct wf_init init = {.kind = (enum wf_init_kind)kind,
				     .a = desc->set.init_a,
				     .b = desc->set.init_b,
				     .seed = desc->set.init_seed};
	return wf_init_check(&init);
}

/* Checks the rules of admission and eviction, as the lanes will again. */
static enum weft_status
check_life(const struct weft_table_opts *in)
{
	const struct wf_admit_opts admit = wf_admit_of(in);
	const struct wf_evict_opts evict = wf_evict_of(in);
	return wf_table_rules_check(&admit, &evict, in->vocabulary, in->memory_cap_bytes);
}

/* Describes a table by its settings, without its name. */
static enum weft_status
describe(const struct weft_table_opts *in, struct wf_table_desc *desc)
{
	enum weft_status st = wf_settings_check(WEFT_SETTINGS_TABLE, in);
	if (st != WEFT_OK) {
		return st;
	}
	*desc = (struct wf_table_desc){.set = *in};
	desc->set.struct_bytes = 0;
	desc->set.name = NULL;
	desc->set.settings = NULL;
	desc->set.batch_keys_max = 0; /* this and the next concern this trainer alone */
	desc->set.raw_keys = 0;
	st = read_row(desc);
	if (st == WEFT_OK) {
		st = read_init(desc);
	}
	return st == WEFT_OK ? check_life(in) : st;
}

static enum weft_status
check_session(const struct weft_session *session, const char *name)
{
	const struct wf_client *client = wf_client_of(session);
	if (session->sealed) {
		return wf_fail(WEFT_INVALID, "table %.40s is added after weft_session_seal", name);
	}
	if (strlen(name) >= WF_TENSOR_NAME_BYTES) {
		return wf_fail(WEFT_INVALID,
			       "table %.40s...: its name has %zu characters, 1 to %d are allowed",
			       name, strlen(name), WF_TENSOR_NAME_BYTES - 1);
	}
	if (session->core.opts.ports_num_for_sparse == 0) {
		return wf_fail(WEFT_INVALID,
			       "table %.40s: the session has no sparse ports: set "
			       "ports_num_for_sparse, here and at the pservers",
			       name);
	}
	for (uint32_t i = 0; client != NULL && i < client->tables.count; i++) {
		if (strcmp(client->tables.desc[i].name, name) == 0) {
			return wf_fail(WEFT_INVALID, "table %s is declared twice", name);
		}
	}
	if (client != NULL && client->tables.count == WF_TABLE_COUNT_MAX) {
		return wf_fail(WEFT_INVALID, "table %.40s: more than %u tables", name,
			       WF_TABLE_COUNT_MAX);
	}
	return WEFT_OK;
}

/* Gives the session the sparse service, with its first table. */
static enum weft_status
attach_client(struct weft_session *session)
{
	struct wf_core *core = &session->core;
	if (core->service.ops != NULL) {
		return WEFT_OK;
	}
	struct wf_client *client = wf_zalloc(session->core.end.env, sizeof(*client));
	if (client == NULL) {
		return wf_fail(WEFT_NOMEM, "session: %zu bytes", sizeof(*client));
	}
	client->session = session;
	client->core = core;
	client->lane_count = core->job.pserver_count * core->opts.ports_num_for_sparse;
	core->service.lane_count = core->opts.ports_num_for_sparse;
	core->service.state = client;
	core->service.ops = &wf_client_service;
	return WEFT_OK;
}

/* Makes room for one more table in all arrays. */
static enum weft_status
grow(struct wf_client *client)
{
	struct wf_env *env = client->session->core.end.env;
	uint32_t old = client->tables.capacity;
	if (client->tables.count < old) {
		return WEFT_OK;
	}
	uint32_t capacity = old == 0 ? 8 : old * 2;
	struct weft_table **table = wf_zalloc_array(env, capacity, sizeof(struct weft_table *));
	struct wf_table_desc *desc = wf_zalloc_array(env, capacity, sizeof(*desc));
	struct weft_rows **pushed = wf_zalloc_array(env, capacity, sizeof(struct weft_rows *));
	if (table == NULL || desc == NULL || pushed == NULL) {
		wf_free(env, table, capacity * sizeof(struct weft_table *));
		wf_free(env, desc, capacity * sizeof(*desc));
		wf_free(env, pushed, capacity * sizeof(struct weft_rows *));
		return wf_fail(WEFT_NOMEM, "session: no memory for %u tables", capacity);
	}
	if (old > 0) {
		memcpy(table, client->tables.table, old * sizeof(struct weft_table *));
		memcpy(desc, client->tables.desc, old * sizeof(*desc));
	}
	wf_free(env, client->tables.table, old * sizeof(struct weft_table *));
	wf_free(env, client->tables.desc, old * sizeof(*desc));
	wf_free(env, client->step.pushed, old * sizeof(struct weft_rows *));
	client->tables.table = table;
	client->tables.desc = desc;
	client->step.pushed = pushed;
	client->tables.capacity = capacity;
	return WEFT_OK;
}

static enum weft_status
make_table(struct wf_client *client, const struct weft_table_opts *opts, struct weft_table **out)
{
	struct wf_env *env = client->session->core.end.env;
	struct weft_table *table = wf_zalloc(env, sizeof(*table));
	struct wf_lane_share *share =
		wf_zalloc_array(env, client->lane_count, sizeof(struct wf_lane_share));
	if (table == NULL || share == NULL) {
		wf_free(env, table, sizeof(*table));
		wf_free(env, share, client->lane_count * sizeof(struct wf_lane_share));
		return wf_fail(WEFT_NOMEM, "table: %zu bytes", sizeof(*table));
	}
	table->client = client;
	table->idx = client->tables.count;
	table->keys_max = opts->batch_keys_max;
	table->may_delta = opts->raw_keys == 0;
	table->share = share;
	atomic_store_explicit(&table->zipf_milli, -1000, memory_order_relaxed);
	*out = table;
	return WEFT_OK;
}

enum weft_status
weft_table_add(struct weft_session *session, const struct weft_table_opts *given,
	       struct weft_table **out)
{
	WF_ENTER(session);
	struct wf_table_desc desc;
	struct weft_table *table = NULL;
	struct weft_table_opts opts;
	wf_table_defaults(&opts);
	enum weft_status st =
		wf_opts_read("weft_table_opts", given, offsetof(struct weft_table_opts, dim), &opts,
			     sizeof(opts));
	if (st == WEFT_OK) {
		st = wf_settings_apply(opts.settings, WEFT_SETTINGS_TABLE, &opts);
	}
	const char *name = st == WEFT_OK && opts.name != NULL ? opts.name : "";
	if (st == WEFT_OK) {
		st = check_session(session, name);
	}
	if (st != WEFT_OK) {
		return st;
	}
	st = describe(&opts, &desc);
	if (st != WEFT_OK) {
		return wf_fail(st, "table %.40s: %s", name, weft_last_error());
	}
	(void)snprintf(desc.name, sizeof(desc.name), "%s", name);
	st = wf_table_desc_check(&desc);
	if (st == WEFT_OK) {
		st = attach_client(session);
	}
	if (st == WEFT_OK) {
		st = grow(wf_client_of(session));
	}
	if (st == WEFT_OK) {
		st = make_table(wf_client_of(session), &opts, &table);
	}
	if (st != WEFT_OK) {
		return st;
	}
	struct wf_client *client = wf_client_of(session);
	client->tables.desc[client->tables.count] = desc;
	client->tables.table[client->tables.count++] = table;
	*out = table;
	return WEFT_OK;
}

const char *
weft_table_name(const struct weft_table *table)
{
	return table->client->tables.desc[table->idx].name;
}

uint32_t
weft_table_counter_count(const struct weft_table *table)
{
	const struct wf_admit_opts admit = wf_admit_of(&table->client->tables.desc[table->idx].set);
	return wf_admit_slots(&admit);
}

uint32_t
weft_table_dim(const struct weft_table *table)
{
	return table->client->tables.desc[table->idx].set.dim;
}

uint32_t
weft_table_key_lane(const struct weft_table *table, uint64_t key)
{
	bool fixed = table->client->tables.desc[table->idx].set.vocabulary > 0;
	uint32_t partition = fixed ? wf_partition_of_fixed(key) : wf_partition_of(key);
	return wf_partition_lane(partition, table->client->lane_count);
}
