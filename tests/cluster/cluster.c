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

/* What the processes of a cluster work with. */
struct run {
	const struct cluster_opts *opts;
	struct cluster_result *result;
};

static int
run_pserver(struct wf_env *env, void *arg)
{
	struct fleet_seat *seat = arg;
	const struct run *run = seat->fleet->run;
	const struct cluster_opts *job = run->opts;
	struct wf_server_opts opts;
	fleet_server_opts(env, job->transport, &opts);
	opts.session.ports_num = job->lanes;
	opts.session.ports_num_for_sparse = job->sparse_lanes;
	opts.sparse = &wf_sparse_service;
	if (job->sparse_lanes > 0) {
		opts.max_shard_bytes = SPARSE_SHARD_BYTES;
	}
	opts.session.num_gradient_servers = job->trainers;
	opts.slot_count = job->slot_count;
	opts.source = job->source;
	if (job->reconnect_ns > 0) {
		opts.session.reconnect_timeout_ns = job->reconnect_ns;
	}
	fleet_serve(seat, &opts, NULL);
	return 0;
}

/* What a trainer's sink is called with. */
struct trainer {
	const struct cluster_opts *opts;
	char *line; /* [CLUSTER_LINE_BYTES] the last one of a pass */
};

static void
call_dot(void *arg)
{
	const struct trainer *own = arg;
	own->opts->dot(own->opts->arg);
}

static enum weft_status
take_line(void *arg, const char *line)
{
	const struct trainer *own = arg;
	if (strncmp(line, "pass ", 5) == 0) {
		(void)snprintf(own->line, CLUSTER_LINE_BYTES, "%s", line);
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
	enum weft_status st = wf_train_command_parse(command, NULL, argc, argv);
	if (st == WEFT_OK) {
		struct trainer own = {.opts = opts, .line = line};
		struct wf_train_sink sink = {.line = take_line, .arg = &own};
		const bool dots = opts->dot != NULL && idx == 0 && !sequential;
		command->opts.dot_period = dots ? 1 : command->opts.dot_period;
		sink.dot = dots ? call_dot : NULL;
		st = wf_train_run(&command->opts, env, &sink);
	}
	wf_free(env, command, sizeof(*command));
	return st;
}

static int
run_trainer(struct wf_env *env, void *arg)
{
	struct fleet_seat *seat = arg;
	const struct run *run = seat->fleet->run;
	char unused[CLUSTER_LINE_BYTES] = "";
	char *line = seat->idx == 0 ? run->result->last_line : unused;
	fleet_note(seat, env, train(run->opts, seat->idx, env, false, line));
	return 0;
}

/* In any order. */
static uint64_t
draw_start(struct fleet *fleet, uint32_t i)
{
	uint64_t stream = i < fleet->pservers ? i * 2 : (i - fleet->pservers) * 2 + 1;
	struct wf_rng rng;
	wf_rng_init(&rng, fleet->world.seed, 1000 + stream);
	return wf_rng_below(&rng, 200 * WF_NS_PER_MS);
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
	    trainer >= FLEET_TRAINERS_MAX || pserver >= FLEET_PSERVERS_MAX ||
	    lane >= CLUSTER_LANES_MAX) {
		return;
	}
	bool *now = &fallen[(trainer * FLEET_PSERVERS_MAX + pserver) * CLUSTER_LANES_MAX + lane];
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
	static bool fallen[FLEET_TRAINERS_MAX * FLEET_PSERVERS_MAX * CLUSTER_LANES_MAX];
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
	struct run run = {.opts = opts, .result = out};
	*out = (struct cluster_result){
		.fleet =
			{
				.world = opts->world,
				.pservers = opts->pservers,
				.trainers = opts->trainers,
				.run_pserver = run_pserver,
				.run_trainer = run_trainer,
				.run = &run,
				.start_ns = draw_start,
				.enter = opts->enter,
				.until_ns = opts->until_ns,
				.kill_pserver = opts->kill_pserver,
				.kill_trainer = opts->kill_trainer,
				.kill_ns = opts->kill_ns,
			},
	};
	int log_fd = memfd_create("log", MFD_CLOEXEC);
	out->fleet.world.log_fd = log_fd;
	enum weft_status st = fleet_run(&out->fleet);
	if (log_fd >= 0) {
		read_log(log_fd, out);
	}
	return st == WEFT_OK || st == WEFT_TIMEOUT;
}

const char *
cluster_what_is_wrong(const struct cluster_opts *opts, const struct cluster_result *result,
		      const char *expected, char *out, size_t bytes)
{
	if (result->fleet.timed_out) {
		(void)snprintf(out, bytes, "did not end: %.300s", result->fleet.stuck);
		return out;
	}
	for (uint32_t i = 0; i < opts->trainers; i++) {
		if (result->fleet.trainer[i].status != WEFT_OK) {
			(void)snprintf(out, bytes, "trainer %u: %.300s", i,
				       result->fleet.trainer[i].text);
			return out;
		}
	}
	for (uint32_t i = 0; i < opts->pservers; i++) {
		if (result->fleet.pserver[i].status != WEFT_OK) {
			(void)snprintf(out, bytes, "pserver %u: %.300s", i,
				       result->fleet.pserver[i].text);
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
				.refuse_per_mille =
					calm ? 0
					     : (uint32_t)wf_rng_below(
						       &rng, WF_WORLD_REFUSE_PER_MILLE_MAX),
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
