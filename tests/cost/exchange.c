/* SPDX-License-Identifier: Apache-2.0 */
/* exchange: a trainer that exchanges little COUNT times, and does nothing else: what cost.py
 * measures. Nobody polls, and all that a row of cost.py compares shares one CPU.
 * usage: exchange PORT COUNT TRANSPORT PROGRESS tensors|varied|recorded|rows NUMBER TRAINERS ID
 * `tensors`: NUMBER tensors of 64 bytes are pushed and pulled; `varied`: the same with other
 * samples in each step; `recorded`: as tensors, but first some exchanges, a line "started", and a
 * pause until a line comes in; `rows`: NUMBER rows of 64 bytes, by sorted keys, are pulled, and
 * pushed with AdaGrad. Thread: one. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weft/sparse.h>
#include <weft/weft.h>

#define VALUES 16 /* 64 bytes */
#define NUMBER_MAX 64
#define ROWS 4096 /* of the table */
#define EARLY 20  /* exchanges before the pause of `recorded` */

static enum weft_status
exchange_early(struct weft_session *session)
{
	enum weft_status st = WEFT_OK;
	for (unsigned i = 0; i < EARLY && st == WEFT_OK; i++) {
		st = weft_exchange(session, 1, 0);
	}
	(void)puts("started");
	(void)fflush(stdout);
	(void)getchar();
	return st;
}

static enum weft_status
exchange_tensors(struct weft_session *session, unsigned number, unsigned long count,
		 const char *what)
{
	const bool varied = strcmp(what, "varied") == 0;
	enum weft_status st = WEFT_OK;
	for (unsigned i = 0; i < number && st == WEFT_OK; i++) {
		char name[16];
		struct weft_tensor *tensor;
		(void)snprintf(name, sizeof(name), "w%u", i);
		const struct weft_tensor_opts opts = {.name = name, .rows = VALUES};
		st = weft_tensor_add(session, &opts, &tensor);
	}
	if (st == WEFT_OK) {
		st = weft_session_seal(session);
	}
	if (st == WEFT_OK) {
		st = weft_session_start(session);
	}
	if (st == WEFT_OK && strcmp(what, "recorded") == 0) {
		st = exchange_early(session);
	}
	for (unsigned long i = 0; i < count && st == WEFT_OK; i++) {
		st = weft_exchange(session, varied ? 1 + i % 2 : 1, 0);
	}
	return st;
}

/* One batch: pull, step, push, wait. */
static enum weft_status
step_rows(struct weft_session *session, struct weft_table *table, const uint64_t *key,
	  unsigned number)
{
	static const float grad[NUMBER_MAX * VALUES];
	struct weft_rows *rows;
	enum weft_status st = weft_rows_pull(table, key, number, WEFT_ROWS_CREATE, &rows);
	if (st == WEFT_OK) {
		st = weft_rows_wait(rows);
	}
	if (st == WEFT_OK) {
		st = weft_step(session, 1, 0);
	}
	if (st == WEFT_OK) {
		st = weft_rows_push(rows, grad, NULL, NULL);
	}
	return st == WEFT_OK ? weft_wait_all(session) : st;
}

static enum weft_status
exchange_rows(struct weft_session *session, unsigned number, unsigned long count)
{
	struct weft_table_opts opts;
	struct weft_table *table;
	weft_table_opts_init(&opts);
	opts.name = "rows";
	opts.dim = VALUES;
	opts.optimizer.method = "adagrad";
	opts.batch_keys_max = NUMBER_MAX;
	enum weft_status st = weft_table_add(session, &opts, &table);
	if (st == WEFT_OK) {
		st = weft_session_seal(session);
	}
	if (st == WEFT_OK) {
		st = weft_session_start(session);
	}
	for (unsigned long i = 0; i < count && st == WEFT_OK; i++) {
		uint64_t key[NUMBER_MAX];
		for (unsigned k = 0; k < number; k++) {
			key[k] = (i * number + k) % ROWS;
		}
		st = step_rows(session, table, key, number);
	}
	return st;
}

int
main(int argc, char **argv)
{
	if (argc != 9 || strtoul(argv[6], NULL, 10) > NUMBER_MAX) {
		(void)fprintf(stderr, "usage: exchange PORT COUNT TRANSPORT PROGRESS "
				      "tensors|varied|recorded|rows NUMBER TRAINERS ID\n");
		return 64;
	}
	const bool rows = strcmp(argv[5], "rows") == 0;
	const unsigned number = (unsigned)strtoul(argv[6], NULL, 10);
	const unsigned long count = strtoul(argv[2], NULL, 10);
	struct weft_session_opts opts;
	weft_session_opts_init(&opts);
	opts.port = (uint16_t)strtoul(argv[1], NULL, 10);
	opts.ports_num_for_sparse = rows ? 1 : 0;
	opts.transport = argv[3];
	opts.progress =
		strcmp(argv[4], "thread") == 0 ? WEFT_PROGRESS_THREAD : WEFT_PROGRESS_CALLER;
	opts.spin_ns = 0;
	opts.num_gradient_servers = (uint32_t)strtoul(argv[7], NULL, 10);
	opts.trainer_id = (uint32_t)strtoul(argv[8], NULL, 10);
	struct weft_session *session;
	enum weft_status st = weft_session_open(&opts, &session);
	if (st != WEFT_OK) {
		(void)fprintf(stderr, "exchange: %s\n", weft_last_error());
		return 1;
	}
	st = rows ? exchange_rows(session, number, count)
		  : exchange_tensors(session, number, count, argv[5]);
	if (st == WEFT_OK) {
		st = weft_session_close(session);
	}
	if (st != WEFT_OK) {
		(void)fprintf(stderr, "exchange: %s\n", weft_last_error());
		return 1;
	}
	return 0;
}
