/* SPDX-License-Identifier: Apache-2.0 */
/* A trainer with a table: learns one number for each of some words, keys of 64 bits.
 *
 *     cc -std=c17 -o first_table first_table.c $(pkg-config --cflags --libs weft)
 *     weft pserver --ports_num_for_sparse=1 --once &
 *     ./first_table [HOST:PORT]               (127.0.0.1:7164 if none is named) */
#include <stdio.h>
#include <stdlib.h>

#include <weft/sparse.h>

#define WORDS 4

static const uint64_t word[WORDS] = {7, 1ull << 40, 7, 1234567891011}; /* one comes twice */
static const float target[WORDS] = {0.5f, -2, 0.5f, 3};
static struct weft_session *session;

static void
check(enum weft_status status)
{
	if (status != WEFT_OK) {
		fprintf(stderr, "%s: %s\n", weft_status_name(status), weft_last_error());
		weft_session_abort(session, status, weft_last_error());
		exit(1);
	}
}

int
main(int argc, char **argv)
{
	struct weft_session_opts opts;
	struct weft_table_opts declared;
	struct weft_table *table;
	weft_session_opts_init(&opts);
	weft_table_opts_init(&declared);
	opts.pservers = argc > 1 ? argv[1] : "127.0.0.1:7164";
	opts.ports_num_for_sparse = 1;
	declared.name = "words";
	declared.dim = 1;
	declared.optimizer.learning_rate = 0.2;
	check(weft_session_open(&opts, &session));
	check(weft_table_add(session, &declared, &table));
	check(weft_session_seal(session));
	check(weft_session_start(session));
	struct weft_rows *rows;
	struct weft_rows *next = NULL;
	check(weft_rows_pull(table, word, WORDS, WEFT_ROWS_CREATE, &rows));
	for (int step = 0; step <= 100; step++) {
		float grad[WORDS];
		check(weft_rows_wait(rows));
		check(weft_step(session, WORDS, 0));
		/* The next batch, as it is after this step, travels while this one computes. */
		check(weft_rows_pull(table, word, WORDS, WEFT_ROWS_CREATE, &next));
		for (int i = 0; i < WORDS; i++) { /* each word's row is there once */
			float value = weft_rows_values(rows)[weft_rows_place(rows)[i]];
			grad[i] = value - target[i];
			printf("%.3f%s", (double)value, i + 1 < WORDS ? " " : "\n");
		}
		check(weft_rows_push(rows, grad, NULL, NULL)); /* those of 7 are added up */
		check(weft_wait_all(session));                 /* applied, and rows is gone */
		rows = next;
	}
	weft_rows_free(rows); /* pulled, and not needed */
	struct weft_session *done = session;
	session = NULL; /* close frees it in any case */
	check(weft_session_close(done));
	return 0;
}
