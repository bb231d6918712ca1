/* SPDX-License-Identifier: Apache-2.0 */
/* A whole trainer: learns y = 2 x + 1 from eight samples, with its parameters on a pserver.
 *
 *     cc -std=c17 -o first_step first_step.c $(pkg-config --cflags --libs weft)
 *     weft pserver --once &
 *     ./first_step [HOST:PORT]                (127.0.0.1:7164 if none is named) */
#include <stdio.h>
#include <stdlib.h>

#include <weft/weft.h>

#define SAMPLES 8

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
	struct weft_tensor *line; /* slope and offset */
	weft_session_opts_init(&opts);
	opts.pservers = argc > 1 ? argv[1] : "127.0.0.1:7164";
	opts.grad_reduce = WEFT_REDUCE_MEAN;
	opts.optimizer.learning_rate = 0.5;
	check(weft_session_open(&opts, &session));
	struct weft_tensor_opts declared = {.name = "line", .rows = 2};
	check(weft_tensor_add(session, &declared, &line));
	check(weft_session_seal(session));
	check(weft_session_start(session));

	float *param = weft_tensor_param(line), *grad = weft_tensor_grad(line);
	for (int step = 0; step < 200; step++) {
		double cost = 0;
		grad[0] = grad[1] = 0;
		for (int i = 0; i < SAMPLES; i++) {
			float x = (float)i / SAMPLES, y = 2 * x + 1;
			float error = param[0] * x + param[1] - y;
			grad[0] += error * x; /* sums over the samples of half the squared error */
			grad[1] += error;
			cost += 0.5 * (double)(error * error);
		}
		check(weft_exchange(session, SAMPLES, cost)); /* push all, wait for fresh values */
	}
	printf("y = %.3f x + %.3f\n", (double)param[0], (double)param[1]);
	struct weft_session *done = session;
	session = NULL; /* close frees it in any case */
	check(weft_session_close(done));
	return 0;
}
