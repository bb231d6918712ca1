/* SPDX-License-Identifier: Apache-2.0 */
/* starved: see the header. Thread: the test's. */
#include "tests/unit/pserver/starved.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/settings.h"
#include "tests/support/failing_env.h"
#include "tests/support/hello.h"

#define NTH_MAX 200u

struct trainer {
	struct peer peer; /* first: its functions cast back */
	struct script script;
	const struct starved_job *job;
};

/* Of what a lane says, only that it has taken the job: RESUME. */
static enum weft_status
recv(struct peer *peer, const struct wf_head *head, const uint8_t *body)
{
	(void)peer;
	(void)head;
	(void)body;
	return WEFT_OK;
}

static const struct peer_ops ops = {.recv = recv};

/* Until the trainer has RESUME, or is down. */
static void
meet(struct trainer *trainer, struct wf_lane *lane)
{
	struct peer *peer = &trainer->peer;
	struct wf_env *env = trainer->script.env;
	peer->ops = &ops;
	peer->to = (struct wf_host){.name = "127.0.0.1", .port = wf_lane_port(lane)};
	peer->hello = hello_in_order();
	peer->hello.path = 0; /* peer_connect counts */
	peer->hello.trainer_count = 2;
	trainer->job->describe(trainer->job, env, &peer->hello);
	peer_open(peer, &trainer->script, "tcp", 4096);
	peer_connect(peer);
	while (!peer->resumed && !peer->down && !script_failed(&trainer->script)) {
		bool was_up = peer->up;
		bool busy = wf_lane_poll(lane);
		busy = peer_poll(peer) > 0 || busy;
		if (peer->up && !was_up) {
			trainer->job->send(trainer->job, peer);
		}
		if (!busy) { /* let the kernel carry it */
			uint64_t soon = wf_now_ns(env) + WF_NS_PER_MS;
			wf_wait(env, wf_transport_wait_fd(peer->transport), soon);
		}
	}
	assert_string_equal(trainer->script.failure, "");
}

/* By an ABORT or a refusal; WEFT_OK: nothing was. */
static enum weft_status
told_of(const struct peer *peer, const char **text)
{
	*text = peer->aborted ? peer->abort.reason : peer->welcome.reason;
	return (enum weft_status)(peer->aborted ? peer->abort.status : peer->welcome.refusal);
}

static enum weft_status
open_lane(const struct starved_job *job, struct wf_env *env, struct wf_lane **out)
{
	struct wf_session_values network;
	wf_session_defaults(&network);
	network.opts.transport = "tcp";
	const struct wf_lane_opts opts = {
		.max_trainers = 64,
		.env = env,
		.service = job->service,
		.network = &network,
		.listen = {.name = "127.0.0.1"},
		.lane_count = 1,
		.numa_node = -1,
		.incarnation = 7,
		.slot_count = 4,
		.slot_bytes_max = 65536,
		.max_shard_bytes = job->max_shard_bytes,
		.reconnect_timeout_ns = 3 * WF_NS_PER_S,
		.connect_timeout_ns = 300 * WF_NS_PER_S,
	};
	return wf_lane_create(&opts, out);
}

/* What became of a trainer with the nth allocation refused; false: fewer than nth were made. */
static bool
play(const struct starved_job *job, struct wf_failing_env *failing, uint64_t nth, bool *told)
{
	struct wf_lane *lane = NULL;
	struct trainer trainer = {.job = job, .script.env = failing->inner};
	const char *text = "";
	wf_failing_env_fail(failing, nth, false);
	enum weft_status st = open_lane(job, &failing->env, &lane);
	enum weft_status says = WEFT_OK;
	bool resumed = false;
	if (st != WEFT_OK) {
		assert_int_equal(st, WEFT_NOMEM);
		assert_null(lane);
	} else {
		meet(&trainer, lane);
		says = told_of(&trainer.peer, &text);
		resumed = trainer.peer.resumed;
		if (says != WEFT_OK) {
			if (says != WEFT_NOMEM) {
				fail_msg("told %d: %s", (int)says, text);
			}
			assert_true(text[0] != '\0');
			*told = true;
		}
		peer_close(&trainer.peer);
		wf_lane_destroy(lane);
	}
	assert_true(wf_failing_env_is_clean(failing));
	if (failing->failed == 0) {
		assert_true(resumed && says == WEFT_OK);
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
