/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions with tables and progress threads of their own, against pservers whose lanes have
 * theirs, over loopback: the same bits as plain tables, over tcp and over shared memory. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/env.h"
#include "pserver/server.h"
#include "sparse/client/session.h"
#include "sparse/server/service.h"
#include "tests/unit/sparse_client/sparse_job.h"

#define PSERVERS 2u
#define SPARSE_LANES 2u
#define PORT_TRIES 100

struct server {
	struct wf_server *server;
	pthread_t thread;
	enum weft_status status;
};

struct trainer {
	const struct sparse_job *job;
	uint32_t id;
	pthread_t thread;
	struct sparse_seen seen;
};

static void
open_server(struct wf_env *env, const char *transport, struct server *out)
{
	struct wf_server_opts opts;
	wf_server_opts_init(&opts);
	opts.env = env;
	opts.session.transport = transport;
	opts.sparse = &wf_sparse_service;
	for (int i = 0; i < PORT_TRIES; i++) {
		opts.session.ports_num_for_sparse = 0;
		opts.listen.port = 0;
		assert_int_equal(wf_server_create(&opts, &out->server), WEFT_OK);
		opts.listen.port = wf_server_port(out->server, 0); /* one that was free */
		wf_server_destroy(out->server);
		opts.session.ports_num_for_sparse = SPARSE_LANES;
		if (opts.listen.port < 65000 && wf_server_create(&opts, &out->server) == WEFT_OK) {
			return;
		}
	}
	fail_msg("no neighbouring ports are free");
}

static void *
serve(void *arg)
{
	struct server *self = arg;
	self->status = wf_server_run(self->server);
	return NULL;
}

static void *
train(void *arg)
{
	struct trainer *self = arg;
	sparse_job_train(self->job, NULL, self->id, &self->seen);
	return NULL;
}

static void
train_all(const struct sparse_job *job, struct wf_env *env)
{
	struct trainer trainer[SPARSE_TRAINERS_MAX];
	uint64_t digest[SPARSE_TRAINERS_MAX];
	assert_int_equal(sparse_job_sequential(job, env, digest), WEFT_OK);
	for (uint32_t t = 0; t < job->trainers; t++) {
		trainer[t] = (struct trainer){.job = job, .id = t};
		assert_int_equal(pthread_create(&trainer[t].thread, NULL, train, &trainer[t]), 0);
	}
	for (uint32_t t = 0; t < job->trainers; t++) {
		(void)pthread_join(trainer[t].thread, NULL);
	}
	for (uint32_t t = 0; t < job->trainers; t++) {
		if (trainer[t].seen.status != WEFT_OK) {
			print_error("trainer %u: %s\n", t, trainer[t].seen.why);
		}
		assert_int_equal(trainer[t].seen.status, WEFT_OK);
		assert_true(trainer[t].seen.digest == digest[t]);
	}
}

/* All pservers, and the list that trainers are told. */
struct servers {
	struct wf_env *env;
	struct server server[PSERVERS];
	char list[64];
};

static void
start_servers(struct servers *all, const char *transport)
{
	*all = (struct servers){0};
	assert_int_equal(wf_env_system_create(WF_LOG_WARN, 2, &all->env), WEFT_OK);
	for (uint32_t i = 0; i < PSERVERS; i++) {
		struct server *server = &all->server[i];
		open_server(all->env, transport, server);
		assert_int_equal(pthread_create(&server->thread, NULL, serve, server), 0);
	}
	(void)snprintf(all->list, sizeof(all->list), "127.0.0.1:%u,127.0.0.1:%u",
		       wf_server_port(all->server[0].server, 0),
		       wf_server_port(all->server[1].server, 0));
}

static void
stop_servers(struct servers *all)
{
	for (uint32_t i = 0; i < PSERVERS; i++) {
		struct server *server = &all->server[i];
		wf_server_stop(server->server);
		(void)pthread_join(server->thread, NULL);
		wf_server_destroy(server->server);
		assert_int_equal(server->status, WEFT_OK);
	}
	wf_env_system_destroy(all->env);
}

static void
train_over(const char *transport, bool threaded, bool tensors)
{
	static struct sparse_kept kept;
	struct servers all;
	start_servers(&all, "auto");
	for (uint64_t seed = 3; seed < 7; seed++) { /* one job after another */
		struct sparse_job job;
		sparse_job_draw(seed, &job);
		sparse_job_draw_wire(&job);
		job.prefetch = seed % 2 == 0;
		job.in_order = seed > 4;
		job.threaded = threaded;
		job.tensors = tensors;
		job.transport = transport;
		job.pservers = all.list;
		job.to = seed == 3 && tensors ? &kept : NULL; /* all rows are read, too */
		job.ports_num = 1;
		job.ports_num_for_sparse = SPARSE_LANES;
		train_all(&job, all.env);
	}
	stop_servers(&all);
}

#define KEYS 16u
#define PULLS 50
#define READS 3u

/* Whoever sees that rows have come, and has not waited, may gather them. Returns how many are as
 * they were drawn. */
static uint32_t
gather_without_a_wait(struct weft_session *session, struct weft_table *table)
{
	uint64_t key[KEYS];
	float out[KEYS];
	uint32_t good = 0;
	for (uint64_t pull = 0; pull < PULLS; pull++) {
		struct weft_rows *rows = NULL;
		for (uint64_t i = 0; i < KEYS; i++) {
			key[i] = pull * KEYS + i;
		}
		assert_int_equal(weft_rows_pull(table, key, KEYS, WEFT_ROWS_CREATE, &rows),
				 WEFT_OK);
		/* Without an order, so that the library's look is all there is. */
		while (atomic_load_explicit(&rows->busy, memory_order_relaxed) != 0) {
			(void)sched_yield();
		}
		assert_int_equal(weft_rows_gather(rows, out), WEFT_OK);
		for (uint32_t i = 0; i < KEYS; i++) {
			good += out[i] >= 1 && out[i] <= 2 ? 1 : 0;
		}
		assert_int_equal(weft_rows_wait(rows), WEFT_OK);
		weft_rows_free(rows);
	}
	return good;
}

/* A session of one trainer, with a table of its own, and `use` of them. `transport`: the
 * pservers'. */
static void
use_one_table(const char *transport, int (*interrupted)(void *arg),
	      void (*use)(struct weft_session *session, struct weft_table *table))
{
	struct servers all;
	struct weft_session_opts opts;
	struct weft_table_opts words;
	struct weft_session *session = NULL;
	struct weft_table *table = NULL;
	start_servers(&all, transport);
	weft_session_opts_init(&opts);
	opts.pservers = all.list;
	opts.ports_num_for_sparse = SPARSE_LANES;
	opts.progress = WEFT_PROGRESS_THREAD;
	opts.interrupted = interrupted;
	weft_table_opts_init(&words);
	words.name = "words";
	words.dim = 1;
	words.batch_keys_max = KEYS;
	words.init = "uniform";
	words.init_a = 1;
	words.init_b = 2;
	assert_int_equal(weft_session_open(&opts, &session), WEFT_OK);
	assert_int_equal(weft_table_add(session, &words, &table), WEFT_OK);
	assert_int_equal(weft_session_seal(session), WEFT_OK);
	assert_int_equal(weft_session_start(session), WEFT_OK);
	use(session, table);
	assert_int_equal(weft_session_close(session), WEFT_OK);
	stop_servers(&all);
}

static void
gather_all(struct weft_session *session, struct weft_table *table)
{
	assert_int_equal(gather_without_a_wait(session, table), PULLS * KEYS);
}

static void
rows_are_there_before_the_word_that_says_so(void **state)
{
	(void)state;
	use_one_table("auto", NULL, gather_all);
}

static bool leaves; /* the owner's calls; its thread alone */

static int
ask(void *arg)
{
	(void)arg;
	return leaves ? 1 : 0;
}

static enum weft_status
no_partition(void *arg, const struct weft_table_partition *partition)
{
	(void)arg;
	return partition->record_count == 0 ? WEFT_OK : WEFT_DATA;
}

static enum weft_status
no_record(void *arg, const struct weft_table_record *record)
{
	(void)arg;
	(void)record;
	return WEFT_DATA;
}

/* Whoever sees that a read that was left is answered, and has not waited, may ask for the next. */
static void
read_after_one_that_was_left(struct weft_session *session, struct weft_table *table)
{
	const struct weft_table_reader reader = {.partition = no_partition, .record = no_record};
	struct wf_client *client = table->client;
	unsigned left = 0;
	(void)session;
	for (unsigned i = 0; i < READS; i++) {
		leaves = true;
		enum weft_status st = weft_table_read(table, &reader);
		leaves = false;
		assert_true(st == WEFT_OK || st == WEFT_AGAIN);
		left += st == WEFT_AGAIN ? 1 : 0;
		while (atomic_load_explicit(&client->call.busy, memory_order_relaxed) != 0) {
			(void)sched_yield();
		}
		assert_int_equal(weft_table_read(table, &reader), WEFT_OK);
	}
	assert_true(left > 0); /* lanes answer later than a caller is asked */
}

static void
a_read_comes_behind_the_answer_to_one_that_was_left(void **state)
{
	(void)state;
	use_one_table("fault(seed=1,delay=100%:250ms)+tcp", ask, read_after_one_that_was_left);
}

static void
progress_threads_over_tcp(void **state)
{
	(void)state;
	train_over("tcp", true, true);
}

static void
progress_threads_over_shared_memory(void **state)
{
	(void)state;
	train_over("shm", true, false);
}

static void
callers_that_drive_themselves(void **state)
{
	(void)state;
	train_over("auto", false, true);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(progress_threads_over_tcp),
		cmocka_unit_test(progress_threads_over_shared_memory),
		cmocka_unit_test(rows_are_there_before_the_word_that_says_so),
		cmocka_unit_test(a_read_comes_behind_the_answer_to_one_that_was_left),
		cmocka_unit_test(callers_that_drive_themselves),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
