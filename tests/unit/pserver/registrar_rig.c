/* SPDX-License-Identifier: Apache-2.0 */
/* registrar_rig: see the header. Thread: the test's. */
#include "tests/unit/pserver/registrar_rig.h"

/* ---- the env ---- */

static struct rig *
rig_of(struct wf_env *env)
{
	return (struct rig *)env;
}

static uint64_t
rig_now_ns(struct wf_env *env)
{
	return rig_of(env)->now_ns;
}

/* The name of a new record's file is drawn before the file is made. */
static uint64_t
rig_random(struct wf_env *env)
{
	static uint64_t last = 1;
	struct rig *rig = rig_of(env);
	struct wf_snapshot_base base;
	if (rig->watches_base) {
		rig->base_before = wf_snapshots_base(rig->all, 0, &base);
	}
	return last++;
}

static void *
rig_alloc(struct wf_env *env, size_t bytes, size_t align)
{
	struct wf_env *memory = &rig_of(env)->scene->failing.env;
	return memory->ops->alloc(memory, bytes, align);
}

static void
rig_free(struct wf_env *env, void *bytes, size_t count)
{
	struct wf_env *memory = &rig_of(env)->scene->failing.env;
	memory->ops->free(memory, bytes, count);
}

static void
run_task(struct wf_task *task)
{
	task->run(task);
	atomic_store_explicit(&task->done, true, memory_order_release);
}

static enum weft_status
rig_submit(struct wf_env *env, struct wf_task *task)
{
	struct rig *rig = rig_of(env);
	if (rig->holds_tasks) {
		assert_null(rig->held);
		rig->held = task;
	} else {
		run_task(task);
	}
	return WEFT_OK;
}

static void
rig_wait(struct wf_env *env, int fd, uint64_t deadline_ns)
{
	struct rig *rig = rig_of(env);
	struct wf_task *held = rig->held;
	assert_int_equal(fd, -1);
	rig->now_ns = deadline_ns;
	rig->held = NULL;
	assert_non_null(held); /* nothing else is waited for */
	run_task(held);
}

static void
rig_log(struct wf_env *env, enum weft_log_level level, const char *line)
{
	struct rig *rig = rig_of(env);
	size_t used = strlen(rig->log);
	(void)level;
	(void)snprintf(rig->log + used, sizeof(rig->log) - used, "%s\n", line);
}

static const struct wf_env_ops ops = {
	.now_ns = rig_now_ns,
	.random = rig_random,
	.alloc = rig_alloc,
	.free = rig_free,
	.wait = rig_wait,
	.submit = rig_submit,
	.log = rig_log,
};

int
rig_setup(void **state)
{
	void *scene = NULL;
	struct rig *rig = calloc(1, sizeof(*rig));
	if (rig == NULL || scene_open(&scene) != 0) {
		free(rig);
		return -1;
	}
	rig->env.ops = &ops;
	rig->scene = scene;
	rig->now_ns = WF_NS_PER_S;
	*state = rig;
	return 0;
}

int
rig_teardown(void **state)
{
	struct rig *rig = *state;
	void *scene = rig->scene;
	rig_close(rig);
	free(rig);
	return scene_close(&scene);
}

/* ---- the pserver ---- */

void
rig_open(struct rig *rig, const struct rig_opts *opts)
{
	rig->opts = *opts;
	rig->opts.pservers = opts->pservers == 0 ? 1 : opts->pservers;
	rig->opts.dense = opts->dense == 0 ? 1 : opts->dense;
	const struct wf_snapshots_opts set = {
		.dir = rig->scene->dir,
		.steps = opts->steps == 0 && opts->period_ns == 0 ? 10 : opts->steps,
		.period_ns = opts->period_ns,
		.keep = opts->keep == 0 ? 2 : opts->keep,
		.full = opts->full,
		.resume = opts->resume,
	};
	for (uint32_t t = 0; t < RIG_TABLES; t++) {
		struct wf_manifest_table *table = &rig->table[t];
		*table = (struct wf_manifest_table){.dim = 4 + t};
		(void)snprintf(table->name, sizeof(table->name), "table-%u", t);
		(void)snprintf(table->optimizer, sizeof(table->optimizer), "sgd");
	}
	rig->trainer_incarnation = RIG_TRAINER_INCARNATION - 1;
	assert_ok(wf_snapshots_open(&rig->env, &set, rig_lanes(rig), &rig->all));
}

void
rig_close(struct rig *rig)
{
	if (rig->registrar != NULL) {
		rig_end(rig, false);
	}
	wf_snapshots_close(rig->all);
	rig->all = NULL;
}

uint32_t
rig_lanes(const struct rig *rig)
{
	return rig->opts.dense + rig->opts.sparse;
}

void
rig_join_lane(struct rig *rig, uint32_t lane, uint64_t incarnation)
{
	const struct wf_hello first = {.incarnation = incarnation};
	const struct wf_snapshot_tables tables = {
		.table = rig->table, .rows = rig->rows[lane], .count = RIG_TABLES};
	for (uint32_t t = 0; t < RIG_TABLES; t++) {
		rig->rows[lane][t] = rig_rows(0, lane, t);
	}
	rig->seat[lane] =
		wf_snapshots_join(rig->all, lane, &first, lane < rig->opts.dense ? NULL : &tables);
}

static bool
is_trainer_here(const void *arg, uint32_t trainer, uint64_t incarnation)
{
	const struct rig *rig = arg;
	return trainer == 0 && incarnation == rig->trainer_incarnation;
}

uint32_t
rig_match(struct rig *rig)
{
	return wf_snapshots_match(rig->all, is_trainer_here, rig);
}

static void
describe(struct rig *rig, struct wf_manifest *out)
{
	struct wf_manifest_parts *parts = &out->parts;
	*out = (struct wf_manifest){.about = about_pass(0, 0)};
	parts->pserver_count = rig->opts.pservers;
	parts->dense_lanes = rig->opts.dense;
	parts->sparse_lanes = rig->opts.sparse;
	parts->is_vector = rig->opts.is_vector;
	parts->trainer_count = 1;
	parts->position_count = 1;
	parts->part_count = rig_lanes(rig) * parts->pserver_count;
	parts->part = wf_zalloc_array(&rig->env, parts->part_count, sizeof(*parts->part));
	parts->position = wf_zalloc_array(&rig->env, 1, sizeof(*parts->position));
	out->tensor_count = 1;
	out->tensor = wf_zalloc_array(&rig->env, 1, sizeof(*out->tensor));
	assert_true(parts->part != NULL && parts->position != NULL && out->tensor != NULL);
	*out->tensor = (struct wf_manifest_tensor){.name = "w", .rows = 2, .cols = 2};
	for (uint32_t i = 0; i < parts->part_count; i++) {
		wf_manifest_part_at(parts, i, &parts->part[i]);
	}
}

enum weft_status
rig_open_registrar(struct rig *rig)
{
	struct wf_manifest about;
	const struct wf_registrar_opts opts = {
		.env = &rig->env,
		.snapshots = rig->all,
		.deadline_ns = rig->now_ns + RIG_DEADLINE_NS,
	};
	describe(rig, &about);
	rig->trainer_incarnation++;
	rig_join_lane(rig, 0, rig->trainer_incarnation);
	wf_snapshots_begin(rig->all);
	enum weft_status st = wf_registrar_open(&opts, &about, &rig->registrar);
	if (st != WEFT_OK) {
		wf_snapshots_leave(rig->all, rig->seat[0]);
	}
	return st;
}

void
rig_begin(struct rig *rig)
{
	assert_ok(rig_open_registrar(rig));
	for (uint32_t i = 1; i < rig_lanes(rig); i++) {
		rig_join_lane(rig, i, rig->trainer_incarnation);
	}
	assert_int_equal(rig_match(rig), rig_lanes(rig));
}

void
rig_end(struct rig *rig, bool well)
{
	wf_snapshots_end(rig->all);
	if (well) {
		wf_registrar_end(rig->registrar);
	}
	wf_registrar_close(rig->registrar);
	rig->registrar = NULL;
	for (uint32_t i = 0; i < rig_lanes(rig); i++) {
		if (rig->seat[i] != NULL) {
			wf_snapshots_leave(rig->all, rig->seat[i]);
			rig->seat[i] = NULL;
		}
	}
}

uint64_t
rig_look(struct rig *rig)
{
	return wf_registrar_look(rig->registrar, rig->now_ns);
}

enum weft_status
rig_base(struct rig *rig, uint32_t lane, struct wf_snapshot_base *out)
{
	*out = (struct wf_snapshot_base){0};
	return wf_snapshots_base(rig->all, lane, out);
}

void
rig_run(struct rig *rig)
{
	struct wf_snapshot_base base;
	for (uint32_t i = 1; i < rig->opts.pservers; i++) {
		assert_ok(rig_join(rig, i, 900 + i, 0));
	}
	(void)rig_look(rig);
	for (uint32_t i = 1; i < rig->opts.pservers; i++) {
		assert_ok(rig_loaded(rig, i));
	}
	if (rig->opts.pservers > 1) {
		(void)rig_look(rig);
	}
	assert_ok(rig_base(rig, 0, &base));
	for (uint32_t i = 0; i < rig_lanes(rig); i++) {
		wf_snapshots_begin_at(rig->all, i, base.id.step);
	}
}

/* ---- the other pservers ---- */

enum weft_status
rig_join(struct rig *rig, uint32_t idx, uint64_t incarnation, uint64_t serves)
{
	const struct wf_registry_join join = {
		.serves = serves, .dense_lanes = rig->opts.dense, .sparse_lanes = rig->opts.sparse};
	return wf_registrar_join(rig->registrar, idx, incarnation, &join);
}

enum weft_status
rig_loaded(struct rig *rig, uint32_t idx)
{
	const struct wf_registrar_orders orders = wf_registrar_orders(rig->registrar, idx);
	const struct wf_registry_loaded msg = {
		.epoch = orders.base.epoch,
		.base = {.epoch = orders.base.id.epoch, .step = orders.base.id.step}};
	return wf_registrar_on_loaded(rig->registrar, idx, &msg);
}

uint64_t
rig_rows(uint32_t idx, uint32_t lane, uint32_t table)
{
	return 1000 * (idx + 1) + 100 * lane + table;
}

/* One block, whose bytes follow from the lane's number and the step. */
static void
write_part(struct rig *rig, const struct wf_part_head *head, struct wf_part_sum *sum)
{
	const struct wf_snapshot_id id = {.epoch = head->epoch, .step = head->step};
	const struct wf_part_block block = {
		.kind = WF_PART_SLICE, .count = head->lane + 1, .bytes = 4 * (head->lane + 1)};
	const uint32_t values[RIG_LANES_MAX * RIG_PSERVERS_MAX] = {head->lane,
								   (uint32_t)head->step};
	static struct wf_snapshot_file file;
	struct wf_part_writer *writer = NULL;
	char leaf[WF_MANIFEST_PART_NAME_BYTES];
	wf_manifest_part_name((enum wf_service)head->service, head->lane, leaf);
	assert_ok(wf_snapshot_part_begin(wf_snapshots_folder(rig->all), id, leaf, &file));
	assert_ok(wf_part_create(&rig->env, &file.spot, head, &writer));
	enum weft_status st = wf_part_put(writer, &block, values);
	st = wf_part_finish(writer, st, sum);
	assert_ok(wf_snapshot_part_end(&file, st));
}

/* Of lane `lane` of pserver `idx`. */
static void
write_part_of(struct rig *rig, uint32_t idx, uint32_t lane, uint64_t border,
	      struct wf_part_sum *sum)
{
	const struct rig_opts *opts = &rig->opts;
	bool is_dense = lane < opts->dense;
	const struct wf_part_head head = {
		.service = is_dense ? WF_SERVICE_DENSE : WF_SERVICE_SPARSE,
		.lane = is_dense ? idx * opts->dense + lane
				 : idx * opts->sparse + lane - opts->dense,
		.lane_count = opts->pservers * (is_dense ? opts->dense : opts->sparse),
		.epoch = wf_snapshots_id(rig->all, border).epoch,
		.step = border,
	};
	write_part(rig, &head, sum);
}

struct wf_registry_part
rig_part_of(struct rig *rig, uint32_t idx, uint32_t lane, uint64_t border)
{
	const struct rig_opts *opts = &rig->opts;
	bool is_dense = lane < opts->dense;
	struct wf_part_sum sum;
	write_part_of(rig, idx, lane, border, &sum);
	struct wf_registry_part part = {
		.epoch = wf_snapshots_id(rig->all, border).epoch,
		.border = border,
		.bytes = sum.bytes,
		.crc = sum.crc,
		.service = is_dense ? WF_SERVICE_DENSE : WF_SERVICE_SPARSE,
		.lane = is_dense ? idx * opts->dense + lane
				 : idx * opts->sparse + lane - opts->dense,
		.table_count = is_dense ? 0 : RIG_TABLES,
		.count = is_dense ? 0 : RIG_TABLES,
	};
	for (uint32_t t = 0; t < part.count; t++) {
		part.rows[t] = rig_rows(idx, lane, t);
	}
	return part;
}

enum weft_status
rig_part(struct rig *rig, uint32_t idx, uint32_t lane, uint64_t border)
{
	const struct wf_registry_part part = rig_part_of(rig, idx, lane, border);
	return wf_registrar_on_part(rig->registrar, idx, &part);
}

enum weft_status
rig_failed(struct rig *rig, uint32_t idx, uint64_t border, const char *reason)
{
	struct wf_registry_failed msg = {.epoch = wf_snapshots_id(rig->all, border).epoch,
					 .border = border};
	(void)snprintf(msg.reason, sizeof(msg.reason), "%s", reason);
	return wf_registrar_on_failed(rig->registrar, idx, &msg);
}

/* ---- snapshots ---- */

uint64_t
rig_name_border(struct rig *rig)
{
	(void)rig_look(rig);
	uint64_t highest;
	assert_true(wf_snapshots_highest(rig->all, &highest));
	uint64_t border = wf_snapshot_seat_applied(rig->seat[0], highest);
	assert_true(border > highest);
	return border;
}

void
rig_write_own(struct rig *rig, uint64_t border)
{
	const struct wf_snapshot_moment moment = {.samples = 10 * border, .pass = 1};
	struct wf_part_sum sum;
	for (uint32_t i = 0; i < rig_lanes(rig); i++) {
		assert_int_equal(wf_snapshot_seat_applied(rig->seat[i], border), border);
		if (i == 0) {
			struct wf_manifest_position *position =
				wf_registrar_note(rig->registrar, border, &moment);
			*position = (struct wf_manifest_position){.bytes = 2, .position = "at"};
		}
		write_part_of(rig, 0, i, border, &sum);
		wf_snapshots_report(rig->all, rig->seat[i], border, &sum);
	}
}

uint64_t
rig_snapshot(struct rig *rig)
{
	uint64_t border = rig_name_border(rig);
	rig_write_own(rig, border);
	for (uint32_t i = 1; i < rig->opts.pservers; i++) {
		for (uint32_t lane = 0; lane < rig_lanes(rig); lane++) {
			assert_ok(rig_part(rig, i, lane, border));
		}
	}
	(void)rig_look(rig);
	assert_true(rig_has_snapshot(rig, wf_snapshots_id(rig->all, border)));
	return border;
}

bool
rig_has_snapshot(struct rig *rig, struct wf_snapshot_id id)
{
	struct wf_snapshot *snapshot = NULL;
	enum weft_status st =
		wf_snapshot_open(&rig->env, wf_saved_posix(), rig->scene->dir, id, &snapshot);
	st = st == WEFT_OK ? wf_snapshot_verify(snapshot) : st;
	wf_snapshot_close(snapshot);
	return st == WEFT_OK;
}

bool
rig_has_directory(const struct rig *rig, struct wf_snapshot_id id)
{
	char name[WF_SNAPSHOT_LEAF_BYTES];
	wf_snapshot_name(id, name);
	return access(at(rig->scene, name, ""), F_OK) == 0;
}

bool
rig_has_record(const struct rig *rig, uint64_t epoch)
{
	char name[WF_SNAPSHOT_LEAF_BYTES];
	(void)snprintf(name, sizeof(name), "record-%05u", (unsigned)epoch);
	return access(at(rig->scene, name, ""), F_OK) == 0;
}

const char *
rig_newest_record(struct rig *rig)
{
	struct wf_epochs epochs = {0};
	assert_ok(wf_epochs_read(&rig->env, wf_snapshots_folder(rig->all), &epochs));
	const char *what = epochs.count == 0                        ? "none"
			   : epochs.record[epochs.count - 1].is_end ? "end"
								    : "job";
	wf_epochs_fini(&rig->env, &epochs);
	return what;
}
