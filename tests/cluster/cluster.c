/* SPDX-License-Identifier: Apache-2.0 */
/* cluster: see cluster.h. Thread: one. */
#include "cluster.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/rng.h"
#include "sparse/server/service.h"
#include "tests/support/fault_log.h"

#define TRAIN_ARGS_MAX 24
#define ARG_BYTES 512
#define SPARSE_SHARD_BYTES (256u << 20) /* small, for many seeds in little memory */

/* One simulated process, what it is told, and how it ended. */
struct member {
	const struct cluster_opts *opts;
	struct cluster_result *result;
	struct cluster_end *end;
	uint32_t idx;
	struct wf_proc *proc;
};

static void
note_end(struct member *member, struct wf_env *env, enum weft_status status)
{
	member->end->returned = true;
	member->end->status = status;
	member->end->when_ns = wf_now_ns(env);
	(void)snprintf(member->end->text, sizeof(member->end->text), "%s",
		       status == WEFT_OK ? "" : weft_last_error());
}

static int
run_pserver(struct wf_env *env, void *arg)
{
	struct member *member = arg;
	struct wf_server_opts opts;
	wf_server_opts_init(&opts);
	opts.env = env;
	opts.session.transport = member->opts->transport;
	(void)snprintf(opts.listen.name, sizeof(opts.listen.name), "0.0.0.0");
	opts.session.ports_num = member->opts->lanes;
	opts.session.ports_num_for_sparse = member->opts->sparse_lanes;
	opts.sparse = &wf_sparse_service;
	if (member->opts->sparse_lanes > 0) {
		opts.max_shard_bytes = SPARSE_SHARD_BYTES;
	}
	opts.session.num_gradient_servers = member->opts->trainers;
	opts.inline_lanes = true;
	opts.once = true;
	opts.slot_count = member->opts->slot_count;
	if (member->opts->reconnect_ns > 0) {
		opts.session.reconnect_timeout_ns = member->opts->reconnect_ns;
	}
	struct wf_server *server = NULL;
	enum weft_status st = wf_server_create(&opts, &server);
	if (st == WEFT_OK) {
		st = wf_server_run(server);
	}
	note_end(member, env, st);
	wf_server_destroy(server);
	return st == WEFT_OK ? 0 : 1;
}

static enum weft_status
take_line(void *arg, const char *line)
{
	char *out = arg;
	if (strncmp(line, "pass ", 5) == 0) {
		(void)snprintf(out, CLUSTER_LINE_BYTES, "%s", line);
	}
	return WEFT_OK;
}

/* The command line of trainer `idx`, as a user would write it. */
static int
write_args(const struct cluster_opts *opts, uint32_t idx, char (*text)[ARG_BYTES], char **argv)
{
	int n = 0;
#define ARG(...) (void)snprintf(text[n], ARG_BYTES, __VA_ARGS__), argv[n] = text[n], n++
	ARG("weft-train");
	ARG("%s", opts->model);
	ARG("--num_passes=%llu", (unsigned long long)opts->passes);
	ARG("--batch_size=%llu", (unsigned long long)opts->batch_size);
	ARG("--optimizer=%s", opts->optimizer);
	ARG("--learning_rate=0.02");
	ARG("--slice_bytes=%s", opts->slice_bytes);
	ARG("--num_gradient_servers=%u", opts->trainers);
	ARG("--trainer_id=%u", idx);
	ARG("--ports_num=%u", opts->lanes);
	ARG("--ports_num_for_sparse=%u", opts->sparse_lanes);
	ARG("--sparse_wire=%s", opts->sparse_wire != NULL ? opts->sparse_wire : "f32");
	ARG("--dense_wire=%s", opts->dense_wire != NULL ? opts->dense_wire : "f32");
	ARG("--transport=%s",
	    opts->trainer_transport != NULL ? opts->trainer_transport : opts->transport);
	ARG("--progress=caller");
	ARG("--log_period=0");
	if (opts->reconnect_ns > 0) {
		ARG("--reconnect_timeout=%llums",
		    (unsigned long long)(opts->reconnect_ns / WF_NS_PER_MS));
	}
	ARG("--no-baseline");
	for (unsigned i = 0; i < 3 && opts->more_args[i] != NULL; i++) {
		ARG("%s", opts->more_args[i]);
	}
	char *list = text[n];
	size_t used = (size_t)snprintf(list, ARG_BYTES, "--pservers=");
	for (uint32_t i = 0; i < opts->pservers; i++) {
		used += (size_t)snprintf(list + used, ARG_BYTES - used, "%sps%u", i > 0 ? "," : "",
					 i);
	}
	argv[n] = list;
	n++;
#undef ARG
	argv[n] = NULL;
	return n;
}

static enum weft_status
train(const struct cluster_opts *opts, uint32_t idx, struct wf_env *env, bool sequential,
      char *line)
{
	char text[TRAIN_ARGS_MAX][ARG_BYTES];
	char *argv[TRAIN_ARGS_MAX + 1];
	int argc = write_args(opts, idx, text, argv);
	if (sequential) {
		(void)snprintf(text[argc], ARG_BYTES, "--sequential");
		argv[argc] = text[argc];
		argc++;
		argv[argc] = NULL;
	}
	struct wf_train_command *command = wf_zalloc(env, sizeof(*command));
	if (command == NULL) {
		return wf_fail(WEFT_NOMEM, "no memory for a command");
	}
	enum weft_status st = wf_train_command_parse(command, argc, argv);
	if (st == WEFT_OK) {
		const struct wf_train_sink sink = {.line = take_line, .arg = line};
		st = wf_train_run(&command->opts, env, &sink);
	}
	wf_free(env, command, sizeof(*command));
	return st;
}

static int
run_trainer(struct wf_env *env, void *arg)
{
	struct member *member = arg;
	char unused[CLUSTER_LINE_BYTES] = "";
	char *line = member->idx == 0 ? member->result->last_line : unused;
	enum weft_status st = train(member->opts, member->idx, env, false, line);
	note_end(member, env, st);
	return st == WEFT_OK ? 0 : 1;
}

static enum weft_status
spawn(struct wf_world *world, struct member *member, bool is_trainer)
{
	char host[16];
	struct wf_rng rng;
	wf_rng_init(&rng, member->opts->world.seed, 1000 + member->idx * 2 + (is_trainer ? 1 : 0));
	(void)snprintf(host, sizeof(host), "%s%u", is_trainer ? "tr" : "ps", member->idx);
	uint64_t start_ns = wf_rng_below(&rng, 200 * WF_NS_PER_MS); /* in any order */
	return wf_world_spawn(world, host, start_ns, is_trainer ? run_trainer : run_pserver, member,
			      &member->proc);
}

static enum weft_status
spawn_all(struct wf_world *world, const struct cluster_opts *opts, struct cluster_result *result,
	  struct member *member)
{
	uint32_t count = opts->pservers + opts->trainers;
	enum weft_status st = WEFT_OK;
	for (uint32_t i = 0; i < count && st == WEFT_OK; i++) {
		bool is_trainer = i >= opts->pservers;
		uint32_t idx = is_trainer ? i - opts->pservers : i;
		member[i] = (struct member){
			.opts = opts,
			.result = result,
			.end = is_trainer ? &result->trainer[idx] : &result->pserver[idx],
			.idx = idx,
		};
		st = spawn(world, &member[i], is_trainer);
		if (st == WEFT_OK &&
		    idx == (is_trainer ? opts->kill_trainer : opts->kill_pserver)) {
			wf_world_kill_at(world, member[i].proc, opts->kill_ns);
		}
	}
	return st;
}

/* "    1.234 I tr0: trainer 0: regained pserver 1 lane 2 (ps1:7166) over sim: sim2 broke ..." */
static void
take_log_line(const char *line, bool *fallen, struct cluster_result *out)
{
	unsigned trainer = 0;
	unsigned pserver = 0;
	unsigned lane = 0;
	const char *text = strstr(line, ": trainer ");
	out->verbs_ups += text != NULL && strstr(line, " over verbs: ") != NULL ? 1 : 0;
	out->verbs_breaks += text != NULL && strstr(line, ": verbs broke") != NULL ? 1 : 0;
	const char *over = strstr(line, " over sim");
	if (text == NULL || over == NULL ||
	    sscanf(text, ": trainer %u: %*s pserver %u lane %u", &trainer, &pserver, &lane) != 3 ||
	    trainer >= CLUSTER_TRAINERS_MAX || pserver >= CLUSTER_PSERVERS_MAX ||
	    lane >= CLUSTER_LANES_MAX) {
		return;
	}
	bool *now = &fallen[(trainer * CLUSTER_PSERVERS_MAX + pserver) * CLUSTER_LANES_MAX + lane];
	if (strncmp(over, " over sim2: ", 12) == 0) {
		out->returns += *now ? 1 : 0;
		*now = false;
	} else if (strncmp(over, " over sim: sim2 broke", 21) == 0) {
		out->breaks++;
		*now = true;
	} else if (strncmp(over, " over sim: sim2: ", 17) == 0) {
		out->refusals++;
		*now = true;
	}
}

/* What the trainers said about the paths they took. */
static void
read_log(int fd, struct cluster_result *out)
{
	static bool fallen[CLUSTER_TRAINERS_MAX * CLUSTER_PSERVERS_MAX * CLUSTER_LANES_MAX];
	char line[1200];
	memset(fallen, 0, sizeof(fallen));
	FILE *log = lseek(fd, 0, SEEK_SET) == 0 ? fdopen(fd, "r") : NULL;
	while (log != NULL && fgets(line, sizeof(line), log) != NULL) {
		if (getenv("WEFT_CLUSTER_LOG") != NULL) {
			(void)fputs(line, stderr);
		}
		take_log_line(line, fallen, out);
		wf_fault_log_add(line, &out->faults);
	}
	if (log != NULL) {
		(void)fclose(log);
	} else {
		(void)close(fd);
	}
}

bool
cluster_run(const struct cluster_opts *opts, struct cluster_result *out)
{
	struct wf_world *world = NULL;
	struct member member[CLUSTER_PSERVERS_MAX + CLUSTER_TRAINERS_MAX];
	struct wf_world_opts with_log = opts->world;
	*out = (struct cluster_result){0};
	with_log.log_fd = memfd_create("log", MFD_CLOEXEC);
	enum weft_status st = wf_world_create(&with_log, &world);
	if (st == WEFT_OK && opts->enter != NULL) {
		opts->enter(world);
	}
	if (st == WEFT_OK) {
		st = spawn_all(world, opts, out, member);
	}
	if (st == WEFT_OK) {
		st = wf_world_run(world, opts->until_ns);
		out->timed_out = st == WEFT_TIMEOUT;
		(void)snprintf(out->stuck, sizeof(out->stuck), "%s",
			       out->timed_out ? weft_last_error() : "");
	}
	if (world != NULL) {
		wf_world_stats(world, &out->stats);
	}
	wf_world_destroy(world);
	if (with_log.log_fd >= 0) {
		read_log(with_log.log_fd, out);
	}
	return st == WEFT_OK || st == WEFT_TIMEOUT;
}

const char *
cluster_what_is_wrong(const struct cluster_opts *opts, const struct cluster_result *result,
		      const char *expected, char *out, size_t bytes)
{
	if (result->timed_out) {
		(void)snprintf(out, bytes, "did not end: %.300s", result->stuck);
		return out;
	}
	for (uint32_t i = 0; i < opts->trainers; i++) {
		if (result->trainer[i].status != WEFT_OK) {
			(void)snprintf(out, bytes, "trainer %u: %.300s", i,
				       result->trainer[i].text);
			return out;
		}
	}
	for (uint32_t i = 0; i < opts->pservers; i++) {
		if (result->pserver[i].status != WEFT_OK) {
			(void)snprintf(out, bytes, "pserver %u: %.300s", i,
				       result->pserver[i].text);
			return out;
		}
	}
	if (strcmp(result->last_line, expected) != 0) {
		(void)snprintf(out, bytes, "ended with '%s', sequential with '%s'",
			       result->last_line, expected);
		return out;
	}
	return NULL;
}

bool
cluster_sequential(const struct cluster_opts *opts, char line[CLUSTER_LINE_BYTES])
{
	struct wf_env *env = NULL;
	line[0] = '\0';
	enum weft_status st = wf_env_system_create(WF_LOG_WARN, 2, &env);
	if (st == WEFT_OK) {
		st = train(opts, 0, env, true, line);
	}
	if (st != WEFT_OK) {
		(void)fprintf(stderr, "cluster: sequential run: %s\n", weft_last_error());
	}
	wf_env_system_destroy(env);
	return st == WEFT_OK;
}

const char *
cluster_digest(const char *line)
{
	const char *at = strstr(line, "digest ");
	return at == NULL ? "" : at + strlen("digest ");
}

/* Half of the seeds have a second network, on which the data goes as long as it holds. */
static void
draw_second_network(uint64_t seed, bool calm, struct cluster_opts *out)
{
	struct wf_rng rng;
	wf_rng_init(&rng, seed, 8);
	if (wf_rng_below(&rng, 2) == 0) {
		return;
	}
	out->transport = "sim-auto";
	if (!calm) {
		out->world.second_cut_per_million = (uint32_t)wf_rng_below(&rng, 8000);
		out->world.second_cut_max = 1 + (uint32_t)wf_rng_below(&rng, 40);
		out->world.second_refuse_per_mille = (uint32_t)wf_rng_below(&rng, 300);
	}
}

void
cluster_draw(uint64_t seed, struct cluster_opts *out)
{
	static const uint32_t lanes[] = {1, 2, 5};
	static const uint32_t slots[] = {1, 2, 8};
	struct wf_rng rng;
	wf_rng_init(&rng, seed, 7);
	bool calm = wf_rng_below(&rng, 4) == 0; /* a quarter of the runs without faults */
	*out = (struct cluster_opts){
		.world =
			{
				.seed = seed,
				.delay_min_ns = 1 * WF_NS_PER_US,
				.delay_max_ns = (1 + wf_rng_below(&rng, 2000)) * WF_NS_PER_US,
				.split_per_mille = calm ? 0 : (uint32_t)wf_rng_below(&rng, 500),
				.cut_per_million = calm ? 0 : (uint32_t)wf_rng_below(&rng, 4000),
				.cut_max = calm ? 1 : 1 + (uint32_t)wf_rng_below(&rng, 40),
				.refuse_per_mille = calm ? 0 : (uint32_t)wf_rng_below(&rng, 200),
				.down_delay_max_ns = wf_rng_below(&rng, 50) * WF_NS_PER_MS,
				.stall_max_ns = calm ? 0 : wf_rng_below(&rng, 20) * WF_NS_PER_MS,
				.stall_per_mille = calm ? 0 : (uint32_t)wf_rng_below(&rng, 20),
				.log_level = getenv("WEFT_CLUSTER_LOG") != NULL ? WF_LOG_DEBUG
										: WF_LOG_INFO,
			},
		.pservers = seed % 6 == 0 ? 1 : 3, /* of 600 seeds, 500 have three */
		.trainers = 4,
		.lanes = lanes[wf_rng_below(&rng, 3)],
		.slot_count = slots[wf_rng_below(&rng, 3)],
		.model = "mlp",
		/* 1,437 rows over 4 trainers: 360, 359, 359, 359. With 359, trainer 0 alone has a
		 * second batch, of one row; the others are out of data. */
		.batch_size = 359,
		.passes = 2,
		.optimizer = "momentum",
		.slice_bytes = "256",
		.until_ns = 600 * WF_NS_PER_S,
		.kill_pserver = UINT32_MAX,
		.kill_trainer = UINT32_MAX,
		.transport = "sim",
	};
	draw_second_network(seed, calm, out);
}

void
cluster_draw_tables(uint64_t seed, struct cluster_opts *opts)
{
	static const uint32_t lanes[] = {1, 2, 3};
	struct wf_rng rng;
	wf_rng_init(&rng, seed, 9);
	opts->model = "ctr";
	opts->sparse_lanes = lanes[wf_rng_below(&rng, 3)];
	opts->lanes = lanes[wf_rng_below(&rng, 2)];
	opts->optimizer = "adagrad";
	opts->trainers = 3;
	/* 8,000 rows over 3 trainers: 2,667, 2,667, 2,666. With 1,333, trainers 0 and 1 have a
	 * third batch, of one row; trainer 2 is out of data. */
	opts->batch_size = 1333;
}
