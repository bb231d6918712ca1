/* SPDX-License-Identifier: Apache-2.0 */
/* stage: see the header. Thread: the one that runs the test. */
#include "stage.h"

#include <stdio.h>
#include <string.h>

#include "base/settings.h"

#define SEED 5u

void
stage_check_fails(struct stage *stage, enum weft_status got, enum weft_status want,
		  const char *text, const char *file, int line)
{
	char what[400];
	(void)snprintf(what, sizeof(what), "status %d, wanted %d, '%.200s', wanted '%.100s'",
		       (int)got, (int)want, weft_last_error(), text);
	script_check(&stage->script, got == want && strstr(weft_last_error(), text) != NULL, what,
		     file, line);
}

static void
session_opts(struct weft_session_opts *opts)
{
	weft_session_opts_init(opts);
	opts->pservers = "ps";
	opts->ports_num_for_sparse = 2;
	opts->transport = "sim";
	opts->progress = WEFT_PROGRESS_CALLER;
	opts->reconnect_timeout_ns = WF_NS_PER_S;
}

/* As weft_session_opts.interrupted. */
static int
ask(void *arg)
{
	const int *interrupted = arg;
	return *interrupted;
}

void
stage_table_opts(const char *name, struct weft_table_opts *opts)
{
	weft_table_opts_init(opts);
	opts->name = name;
	opts->dim = DIM;
	opts->batch_keys_max = KEYS_MAX;
	opts->optimizer.learning_rate = 0.5;
}

static int
run_pserver(struct wf_env *env, void *arg)
{
	struct stage *stage = arg;
	fake_pserver(env, &stage->fake, &stage->stop, &stage->seen);
	return 0;
}

static enum weft_status
open_session(struct stage *stage)
{
	struct weft_session_opts opts;
	struct weft_table_opts table;
	session_opts(&opts);
	opts.interrupted = ask;
	opts.interrupted_arg = &stage->interrupted;
	struct weft_settings *settings = NULL;
	enum weft_status st = weft_settings_create(WEFT_SETTINGS_SESSION, &settings);
	if (st == WEFT_OK) {
		wf_settings_set_env(settings, stage->script.env);
		st = weft_settings_set(settings, "sparse_look_ahead",
				       stage->asks_none_ahead ? "false" : "true");
		opts.settings = settings;
	}
	st = st == WEFT_OK ? weft_session_open(&opts, &stage->session) : st;
	weft_settings_destroy(settings);
	stage_table_opts("fixed", &table);
	table.vocabulary = VOCABULARY;
	table.wire = stage->wire;
	if (st == WEFT_OK) {
		st = weft_table_add(stage->session, &table, &stage->table);
	}
	stage_table_opts("any", &table);
	table.wire = stage->wire;
	table.admit_count = stage->admit_slots > 0 ? 2 : table.admit_count;
	table.admit_slots = stage->admit_slots;
	if (st == WEFT_OK) {
		st = weft_table_add(stage->session, &table, &stage->other);
	}
	if (st == WEFT_OK) {
		st = weft_session_seal(stage->session);
	}
	if (st == WEFT_OK && stage->restores) {
		st = weft_session_restore(stage->session, 7, 21);
	}
	return st == WEFT_OK ? weft_session_start(stage->session) : st;
}

static void
run_trainer(struct script *script)
{
	struct stage *stage = (struct stage *)script;
	stage->start = open_session(stage);
	(void)snprintf(stage->start_text, sizeof(stage->start_text), "%.500s", weft_last_error());
	if (stage->start == WEFT_OK) {
		stage->run(stage);
	}
	weft_session_abort(stage->session, WEFT_ABORTED, "the test is over");
	stage->stop = true;
}

void
stage_set(struct stage *stage, void (*run)(struct stage *stage))
{
	*stage = (struct stage){
		.script = {.body = run_trainer, .beside = run_pserver},
		.fake = {.trainers = 1,
			 .lanes = 2,
			 .slot_count = 4,
			 .slot_bytes = 1024,
			 .held_bytes = 1 << 20},
		.run = run,
	};
}

void
stage_play(struct stage *stage)
{
	assert_true(script_play(&stage->script, SEED));
}

void
stage_play_well(struct stage *stage)
{
	stage_play(stage);
	if (stage->start != WEFT_OK) {
		print_error("%s\n", stage->start_text);
	}
	assert_int_equal(stage->start, WEFT_OK);
}

static enum weft_status
two_steps(struct stage *stage)
{
	const uint64_t key[] = {1, 2, 3, 4, 13};
	const float grad[5 * DIM] = {0};
	struct weft_rows *rows = NULL;
	enum weft_status st = WEFT_OK;
	for (int n = 0; n < 2 && st == WEFT_OK; n++) {
		st = weft_rows_pull(stage->table, key, 5, 1, &rows);
		st = st == WEFT_OK ? weft_rows_wait(rows) : st;
		st = st == WEFT_OK ? weft_step(stage->session, 1, 0) : st;
		st = st == WEFT_OK ? weft_rows_push(rows, grad, NULL, NULL) : st;
		st = st == WEFT_OK ? weft_wait_all(stage->session) : st;
	}
	st = st == WEFT_OK ? weft_rows_pull(stage->table, key, 5, 1, &rows) : st;
	return st == WEFT_OK ? weft_rows_wait(rows) : st;
}

void
stage_keep_the_failure(struct stage *stage)
{
	stage->start = two_steps(stage);
	(void)snprintf(stage->start_text, sizeof(stage->start_text), "%.500s", weft_last_error());
}
