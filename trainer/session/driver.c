/* SPDX-License-Identifier: Apache-2.0 */
/* driver: see driver.h. */
#include "trainer/session/driver.h"

#include <sys/epoll.h>

#include "base/assert.h"

void
wf_driver_run(struct weft_session *session, const struct wf_command *command)
{
	struct wf_core *core = &session->core;
	switch (command->kind) {
	case WF_COMMAND_START:
		wf_core_start(core);
		break;
	case WF_COMMAND_STEP:
		wf_core_step(core, command->a, command->cost);
		break;
	case WF_COMMAND_PUSH:
		wf_core_push(core, command->tensor, command->a);
		break;
	case WF_COMMAND_PIECE:
		wf_core_push_piece(core, command->tensor, command->a, command->section);
		break;
	case WF_COMMAND_PULL:
		wf_core_pull(core, command->tensor, command->a, command->section);
		break;
	case WF_COMMAND_OUT:
		wf_core_out(core);
		break;
	case WF_COMMAND_NEXT_PASS:
		wf_core_next_pass(core, command->a);
		break;
	case WF_COMMAND_REDUCE:
		wf_core_reduce(core);
		break;
	case WF_COMMAND_STATS:
		wf_core_report_stats(core);
		break;
	case WF_COMMAND_OTHERS:
		wf_others_ask(core, (uint32_t)command->a);
		break;
	case WF_COMMAND_LEAVE:
		wf_core_leave(core, command->a != 0);
		break;
	case WF_COMMAND_FAIL:
		wf_core_fail(core, (enum weft_status)command->a, "%s", session->fail_reason);
		break;
	case WF_COMMAND_STOP:
		wf_core_heed_stop(core);
		break;
	case WF_COMMAND_SERVICE:
		core->service.ops->command(core, command);
		break;
	}
}

bool
wf_driver_run_all(struct weft_session *session)
{
	struct wf_command command;
	bool any = false;
	while (wf_ring_pop(session->progress.ring, &command)) {
		wf_driver_run(session, &command);
		any = true;
	}
	return any;
}

void
wf_driver_watch(struct weft_session *session, bool watched)
{
	struct wf_progress *progress = &session->progress;
	struct epoll_event event = {.events = watched ? EPOLLIN | EPOLLONESHOT : 0u};
	int fd = wf_transport_wait_fd(session->core.turn.transport);
	int err = epoll_ctl(progress->poll_fd, EPOLL_CTL_MOD, fd, &event);
	WF_ASSERT(err == 0); /* it is in there, and nothing needs memory */
	progress->watched = watched;
}

void
wf_driver_look_for_stop(struct weft_session *session)
{
	struct wf_core *core = &session->core;
	if (wf_failure_is_stopped(&core->failure) && !wf_core_failed(core) &&
	    !wf_core_is_free(core)) {
		core->turn.tick_ns = 0;
	}
}
