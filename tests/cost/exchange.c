/* SPDX-License-Identifier: Apache-2.0 */
/* exchange: a trainer that pushes and pulls 64 bytes COUNT times over TCP, and does nothing else:
 * what cost.py measures. usage: exchange PORT COUNT. Thread: one; it drives its own progress. */
#include <stdio.h>
#include <stdlib.h>

#include <weft/weft.h>

#define VALUES 16 /* 64 bytes */

static enum weft_status
run(struct weft_session *session, unsigned long count)
{
	const struct weft_tensor_opts opts = {.name = "w", .rows = VALUES};
	struct weft_tensor *tensor;
	enum weft_status st = weft_tensor_add(session, &opts, &tensor);
	if (st == WEFT_OK) {
		st = weft_session_seal(session);
	}
	if (st == WEFT_OK) {
		st = weft_session_start(session);
	}
	for (unsigned long i = 0; i < count && st == WEFT_OK; i++) {
		st = weft_exchange(session, 1, 0);
	}
	return st;
}

int
main(int argc, char **argv)
{
	if (argc != 3) {
		(void)fprintf(stderr, "usage: exchange PORT COUNT\n");
		return 64;
	}
	struct weft_session_opts opts;
	weft_session_opts_init(&opts);
	opts.port = (uint16_t)strtoul(argv[1], NULL, 10);
	opts.transport = "tcp";
	opts.progress = WEFT_PROGRESS_CALLER;
	opts.spin_ns = 0;
	struct weft_session *session;
	enum weft_status st = weft_session_open(&opts, &session);
	if (st != WEFT_OK) {
		(void)fprintf(stderr, "exchange: %s\n", weft_last_error());
		return 1;
	}
	st = run(session, strtoul(argv[2], NULL, 10));
	if (st == WEFT_OK) {
		st = weft_session_close(session);
	}
	if (st != WEFT_OK) {
		(void)fprintf(stderr, "exchange: %s\n", weft_last_error());
		return 1;
	}
	return 0;
}
