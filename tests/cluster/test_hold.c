/* SPDX-License-Identifier: Apache-2.0 */
/* A lane applies nothing from its report to the border: the case in which that matters, built by
 * hand. Trainer 1 pushes its last step to pserver 0 alone, and dies. All lanes are asked where they
 * stand; pserver 1's report is held up on its way. Meanwhile trainer 0 pushes that step to all. A
 * lane of pserver 0 that went on would count both, and then be told that trainer 1 has left in that
 * step. So in the end every slice has the same steps of trainer 1. Thread: one. */
#include <stdio.h>
#include <string.h>

#include "base/settings.h"
#include "tests/cluster/half.h"
#include "weft/weft.h"

#define FLOATS 128u
#define SLICE_FLOATS 16u
#define STEPS 6u
#define OF_ONE 100.0f /* gradients of trainer 0; those of trainer 1 are 1 */

struct run {
	struct crew crew;
	bool has_ended;
	float param[FLOATS];
};

static enum weft_status
train(struct wf_env *env, uint32_t idx, struct weft_session *session, struct weft_tensor *tensor)
{
	enum weft_status st = WEFT_OK;
	for (uint32_t step = 1; step <= STEPS && st == WEFT_OK; step++) {
		/* Trainer 0 comes to the last step of trainer 1 while all lanes wait. */
		const uint64_t late_ns =
			idx == 0 && step == HALF_LAST ? HALF_LOST_NS + WF_NS_PER_S : 0;
		half_wait_until(env, step * HALF_STEP_NS > late_ns ? step * HALF_STEP_NS : late_ns);
		for (uint32_t i = 0; i < FLOATS; i++) {
			weft_tensor_grad(tensor)[i] = idx == 0 ? OF_ONE : 1;
		}
		st = weft_exchange(session, 1, 0);
	}
	return st;
}

static int
run_trainer(struct wf_env *env, void *arg)
{
	const struct crew_seat *seat = arg;
	struct run *run = (struct run *)seat->crew->run;
	const struct weft_tensor_opts tensor_opts = {.name = "t", .rows = FLOATS};
	struct weft_session_opts opts;
	struct weft_session *session = NULL;
	struct weft_tensor *tensor = NULL;
	crew_fill_opts(seat->crew, seat->idx, &opts);
	opts.slice_bytes = SLICE_FLOATS * sizeof(float);
	opts.optimizer.learning_rate = 1;
	enum weft_status st = wf_session_open_in(env, &opts, &session);
	st = st == WEFT_OK ? weft_tensor_add(session, &tensor_opts, &tensor) : st;
	st = st == WEFT_OK ? weft_session_seal(session) : st;
	st = st == WEFT_OK ? weft_session_start(session) : st;
	st = st == WEFT_OK ? train(env, seat->idx, session, tensor) : st;
	if (st == WEFT_OK) {
		memcpy(run->param, weft_tensor_param(tensor), sizeof(run->param));
	}
	st = crew_end_session(seat, session, st);
	run->has_ended = run->has_ended || st == WEFT_OK;
	return 0;
}

static void
disturb(struct crew *crew, struct wf_world *world, struct wf_proc *const *proc)
{
	half_disturb(crew, world, proc);
	half_delay(world, "ps1", "ps0", HALF_KILL_NS, HALF_LOST_NS + 3 * WF_NS_PER_S);
}

/* The log says what was decided; without that the case is not the one that is meant. */
static bool
check(const struct run *run)
{
	bool same = true;
	for (uint32_t i = 0; i < FLOATS; i++) {
		same = same && run->param[i] == run->param[0];
	}
	const float expected = -(STEPS * OF_ONE + (HALF_LAST - 1));
	if (!run->has_ended || !same || run->param[0] != expected) {
		(void)printf("FAILED: %s; trainer 1 counts in %s slices alike: %g instead of %g\n",
			     run->crew.why[0] != '\0' ? run->crew.why : "the job ended",
			     same ? "all" : "not all", (double)run->param[0], (double)expected);
		return false;
	}
	if (!half_has_line(&run->crew, "trainer 1 is dropped from step 3 on") ||
	    half_has_line(&run->crew, "is counted in half")) {
		(void)printf("FAILED: the border is not the one that was meant\n");
		return false;
	}
	return true;
}

int
main(void)
{
	static struct run run;
	struct wf_world_stats stats = {0};
	half_begin(&run.crew);
	run.crew.disturb = disturb;
	run.crew.run_trainer = run_trainer;
	run.crew.run = &run;
	bool is_right = crew_play(&run.crew, &stats) == WEFT_OK && check(&run);
	if (!is_right) {
		(void)printf("%s\n", run.crew.why);
	}
	half_end(&run.crew);
	return is_right ? 0 : 1;
}
