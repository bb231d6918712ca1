/* SPDX-License-Identifier: Apache-2.0 */
/* A sparse lane that runs out of memory, at every allocation in turn from its creation to the
 * accepted tables: it says so, gives everything back, and does not crash. Over TCP on loopback, for
 * a simulated world does not accept an env around its own. Thread: the test's. */
#include "sparse/server/service.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "kernels/rows.h"
#include "tests/support/failing_env.h"
#include "transport/transport.h"
#include "wire/sparse_messages.h"

#define TABLES 2u
#define NTH_MAX 200u

/* How far a trainer came, and how it ended. */
struct trainer {
	struct wf_env *env;
	struct wf_transport *transport;
	struct wf_conn *conn;
	bool resumed; /* the lane has taken the job */
	bool down;
	enum weft_status told; /* by a refusal or an ABORT; OK: nothing */
	char text[WF_REASON_BYTES];
};

/* A table with unlimited keys, one with a fixed vocabulary: what each takes differs. */
static void
make_tables(struct wf_table_desc *desc, struct wf_tables *out)
{
	for (uint32_t i = 0; i < TABLES; i++) {
		desc[i] = (struct wf_table_desc){
			.dim = 4,
			.vocabulary = i == 1 ? 2048 : 0,
			.row = {.kind = WF_ROW_SPARSE_MOMENTUM,
				.learning_rate = 0.1,
				.momentum = 0.9,
				.epsilon = 1e-6,
				.dense_equivalent = true},
			.admit = {.probability = 1, .count = i == 0 ? 2 : 0},
		};
		(void)snprintf(desc[i].name, sizeof(desc[i].name), "t%u", i);
	}
	*out = (struct wf_tables){.table_count = TABLES, .table = desc};
}

static struct wf_hello
describe(void)
{
	struct wf_table_desc desc[TABLES];
	struct wf_tables tables;
	make_tables(desc, &tables);
	return (struct wf_hello){
		.version_min = WF_WIRE_VERSION_MIN,
		.version_max = WF_WIRE_VERSION,
		.service = WF_SERVICE_SPARSE,
		.pserver_count = 1,
		.lane_count = 1,
		.trainer_count = 2,
		.incarnation = 1,
		.path = 1,
		.tensors_digest = wf_tables_digest(&tables),
		.job_bytes = wf_tables_bytes(&tables),
		.msg_bytes_max = WF_MSG_BODY_MAX,
		.put_bytes_max = 1 << 20,
		.host = "h",
		.pid = 1,
	};
}

static void
send_tables(struct trainer *trainer)
{
	struct wf_table_desc desc[TABLES];
	struct wf_tables tables;
	make_tables(desc, &tables);
	for (uint32_t i = 0; i < TABLES; i++) {
		const struct wf_sparse_table msg = {
			.idx = i, .table_count = TABLES, .table = desc[i]};
		struct wf_msg out;
		unsigned taken = 0;
		wf_sparse_table_encode(&msg, &out);
		const struct wf_op op = {
			.kind = WF_OP_SEND,
			.head = &out.head,
			.body = out.body,
			.body_bytes = out.body_bytes,
		};
		enum weft_status st = wf_transport_post(trainer->conn, &op, 1, &taken);
		assert_true(st == WEFT_OK || st == WEFT_CLOSED); /* the first was too much */
	}
}

static void
hear_msg(struct trainer *trainer, const struct wf_event *event)
{
	const struct wf_head *head = event->msg.head;
	struct wf_msg_abort abort;
	if (head->service == WF_SERVICE_CONTROL && head->type == WF_MSG_ABORT) {
		assert_int_equal(wf_msg_abort_decode(head, event->msg.body, &abort), WEFT_OK);
		trainer->told = (enum weft_status)abort.status;
		memcpy(trainer->text, abort.reason, sizeof(abort.reason));
	}
	if (head->service == WF_SERVICE_SPARSE && head->type == WF_SPARSE_RESUME) {
		trainer->resumed = true;
	}
}

static void
hear(struct trainer *trainer, const struct wf_event *event)
{
	struct wf_welcome verdict;
	if (event->kind == WF_EVENT_UP) {
		send_tables(trainer);
	} else if (event->kind == WF_EVENT_MSG) {
		hear_msg(trainer, event);
	} else if (event->kind == WF_EVENT_DOWN) {
		trainer->down = true;
		if (event->down.status == WEFT_REFUSED &&
		    wf_welcome_decode(event->down.blob, event->down.blob_bytes, &verdict) ==
			    WEFT_OK) {
			trainer->told = (enum weft_status)verdict.refusal;
			memcpy(trainer->text, verdict.reason, sizeof(verdict.reason));
		}
	}
}

/* Until the trainer has RESUME, or is down. */
static void
meet(struct trainer *trainer, struct wf_lane *lane)
{
	const struct wf_transport_opts opts = {.env = trainer->env, .paths = "tcp"};
	struct wf_host to = {.name = "127.0.0.1", .port = wf_lane_port(lane)};
	struct wf_hello hello = describe();
	uint8_t bytes[WF_HELLO_MAX];
	size_t used = wf_hello_encode(&hello, bytes);
	assert_int_equal(wf_transport_open("mux", &opts, &trainer->transport), WEFT_OK);
	assert_int_equal(
		wf_transport_connect(trainer->transport, &to, bytes, used, NULL, &trainer->conn),
		WEFT_OK);
	while (!trainer->resumed && !trainer->down) {
		struct wf_event events[8];
		unsigned count = 0;
		bool busy = wf_lane_poll(lane);
		assert_int_equal(wf_transport_poll(trainer->transport, events, 8, &count), WEFT_OK);
		for (unsigned i = 0; i < count; i++) {
			hear(trainer, &events[i]);
		}
		if (!busy && count == 0) { /* let the kernel carry it */
			uint64_t soon = wf_now_ns(trainer->env) + WF_NS_PER_MS;
			wf_wait(trainer->env, wf_transport_wait_fd(trainer->transport), soon);
		}
	}
	wf_transport_close(trainer->transport);
}

static enum weft_status
open_lane(struct wf_env *env, struct wf_lane **out)
{
	const struct wf_lane_opts opts = {
		.env = env,
		.service = &wf_sparse_service,
		.transport = "tcp",
		.listen = {.name = "127.0.0.1"},
		.lane_count = 1,
		.numa_node = -1,
		.incarnation = 7,
		.slot_count = 4,
		.slot_bytes_max = 65536,
		.max_shard_bytes = 64 << 20,
		.reconnect_timeout_ns = 3 * WF_NS_PER_S,
		.peer_timeout_ns = 10 * WF_NS_PER_S,
		.connect_timeout_ns = 300 * WF_NS_PER_S,
	};
	return wf_lane_create(&opts, out);
}

/* What became of a trainer with the nth allocation refused; false: fewer than nth were made. */
static bool
play(struct wf_env *system, struct wf_failing_env *failing, uint64_t nth, bool *told)
{
	struct wf_lane *lane = NULL;
	struct trainer trainer = {.env = system};
	wf_failing_env_fail(failing, nth, false);
	enum weft_status st = open_lane(&failing->env, &lane);
	if (st != WEFT_OK) {
		assert_int_equal(st, WEFT_NOMEM);
		assert_null(lane);
	} else {
		meet(&trainer, lane);
		if (trainer.told != WEFT_OK) {
			if (trainer.told != WEFT_NOMEM) {
				fail_msg("told %d: %s", (int)trainer.told, trainer.text);
			}
			assert_true(trainer.text[0] != '\0');
			*told = true;
		}
		wf_lane_destroy(lane);
	}
	assert_true(wf_failing_env_is_clean(failing));
	if (failing->failed == 0) {
		assert_true(trainer.resumed && trainer.told == WEFT_OK);
		return false;
	}
	return true;
}

static void
each_allocation_of_a_sparse_lane_that_fails_is_told_and_leaks_nothing(void **state)
{
	(void)state;
	struct wf_env *system = NULL;
	struct wf_failing_env failing;
	uint64_t nth = 1;
	bool told = false;
	assert_int_equal(wf_env_system_create(WF_LOG_ERROR, -1, &system), WEFT_OK);
	wf_failing_env_init(&failing, system);
	while (nth < NTH_MAX && play(system, &failing, nth, &told)) {
		nth++;
	}
	assert_in_range(nth, 15, NTH_MAX - 1);
	assert_true(told);
	wf_env_system_destroy(system);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			each_allocation_of_a_sparse_lane_that_fails_is_told_and_leaks_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
