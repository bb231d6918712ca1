/* SPDX-License-Identifier: Apache-2.0 */
/* starved: see the header. Thread: the test's. */
#include "tests/unit/pserver/starved.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/failing_env.h"
#include "tests/support/hello.h"

#define NTH_MAX 200u

/* How far a trainer came, and how it ended. */
struct trainer {
	const struct starved_job *job;
	struct wf_env *env;
	struct wf_transport *transport;
	struct wf_conn *conn;
	uint8_t service;
	bool resumed; /* the lane has taken the job */
	bool down;
	enum weft_status told; /* by a refusal or an ABORT; OK: nothing */
	char text[WF_REASON_BYTES];
};

void
starved_send(struct wf_conn *conn, const struct wf_msg *msg)
{
	unsigned taken = 0;
	const struct wf_op op = {
		.kind = WF_OP_SEND,
		.head = &msg->head,
		.body = msg->body,
		.body_bytes = msg->body_bytes,
	};
	enum weft_status st = wf_transport_post(conn, &op, 1, &taken);
	assert_true(st == WEFT_OK || st == WEFT_CLOSED);
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
	if (head->service == trainer->service && head->type == trainer->job->resume) {
		trainer->resumed = true;
	}
}

static void
hear(struct trainer *trainer, const struct wf_event *event)
{
	struct wf_welcome verdict;
	if (event->kind == WF_EVENT_UP) {
		trainer->job->send(trainer->job, trainer->conn);
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

static size_t
encode_hello(struct trainer *trainer, uint8_t *out)
{
	struct wf_hello hello = hello_in_order();
	hello.trainer_count = 2;
	trainer->job->describe(trainer->job, trainer->env, &hello);
	trainer->service = hello.service;
	return wf_hello_encode(&hello, out);
}

/* Until the trainer has RESUME, or is down. */
static void
meet(struct trainer *trainer, struct wf_lane *lane)
{
	const struct wf_transport_opts opts = {.env = trainer->env, .paths = "tcp"};
	struct wf_host to = {.name = "127.0.0.1", .port = wf_lane_port(lane)};
	uint8_t bytes[WF_HELLO_MAX];
	size_t used = encode_hello(trainer, bytes);
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
open_lane(const struct starved_job *job, struct wf_env *env, struct wf_lane **out)
{
	const struct wf_lane_opts opts = {
		.max_trainers = 64,
		.env = env,
		.service = job->service,
		.transport = "tcp",
		.listen = {.name = "127.0.0.1"},
		.lane_count = 1,
		.numa_node = -1,
		.incarnation = 7,
		.slot_count = 4,
		.slot_bytes_max = 65536,
		.max_shard_bytes = job->max_shard_bytes,
		.reconnect_timeout_ns = 3 * WF_NS_PER_S,
		.peer_timeout_ns = 10 * WF_NS_PER_S,
		.connect_timeout_ns = 300 * WF_NS_PER_S,
	};
	return wf_lane_create(&opts, out);
}

/* What became of a trainer with the nth allocation refused; false: fewer than nth were made. */
static bool
play(const struct starved_job *job, struct wf_failing_env *failing, uint64_t nth, bool *told)
{
	struct wf_lane *lane = NULL;
	struct trainer trainer = {.job = job, .env = failing->inner};
	wf_failing_env_fail(failing, nth, false);
	enum weft_status st = open_lane(job, &failing->env, &lane);
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

void
starved_refuse_each(const struct starved_job *job)
{
	struct wf_env *system = NULL;
	struct wf_failing_env failing;
	uint64_t nth = 1;
	bool told = false;
	assert_int_equal(wf_env_system_create(WF_LOG_ERROR, -1, &system), WEFT_OK);
	wf_failing_env_init(&failing, system);
	while (nth < NTH_MAX && play(job, &failing, nth, &told)) {
		nth++;
	}
	assert_in_range(nth, 15, NTH_MAX - 1);
	assert_true(told);
	wf_env_system_destroy(system);
}
