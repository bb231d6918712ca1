/* SPDX-License-Identifier: Apache-2.0 */
/* shm_rig: opening, pumping, looking. Thread: the test's. */
#include "tests/unit/shm/shm_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define AWAIT_LIMIT_NS (60 * WF_NS_PER_S)
#define REST_NS WF_NS_PER_MS

/* Also in a child, where cmocka cannot tell. */
static void
must(bool true_one, const char *what)
{
	if (!true_one) {
		fprintf(stderr, "%s: %s\n", what, weft_last_error());
		abort();
	}
}

void
shm_rig_open(struct shm_rig *rig, bool listens, const struct wf_transport_opts *opts)
{
	struct wf_transport_opts full = {0};
	if (opts != NULL) {
		full = *opts;
	}
	memset(rig, 0, sizeof(*rig));
	must(wf_env_system_create(WF_LOG_ERROR, 2, &rig->env) == WEFT_OK, "env");
	full.env = rig->env;
	must(wf_transport_open("shm", &full, &rig->transport) == WEFT_OK, "open");
	must(rig->env->ops->slab_open(rig->env, SHM_RIG_REGION_BYTES, -1, &rig->slab) == WEFT_OK,
	     "slab");
	struct wf_region region = {rig->slab.base, rig->slab.bytes, rig->slab.memfd};
	must(wf_transport_region_add(rig->transport, &region, &rig->region) == WEFT_OK, "region");
	if (listens) {
		snprintf(rig->at.name, sizeof(rig->at.name), "localhost");
		must(wf_transport_listen(rig->transport, &rig->at, &rig->at.port) == WEFT_OK,
		     "listen");
	}
}

void
shm_rig_close(struct shm_rig *rig)
{
	wf_transport_close(rig->transport);
	rig->env->ops->slab_close(rig->env, &rig->slab);
	wf_env_system_destroy(rig->env);
}

static void
note(struct shm_rig *rig, const struct wf_event *event)
{
	switch (event->kind) {
	case WF_EVENT_UP:
		rig->ups++;
		rig->conn = event->conn;
		break;
	case WF_EVENT_DOWN:
		rig->downs++;
		rig->down_status = event->down.status;
		snprintf(rig->why, sizeof(rig->why), "%s", event->down.why);
		break;
	case WF_EVENT_MSG:
		rig->msgs++;
		if (event->msg.head->body_bytes <= sizeof(rig->body)) {
			memcpy(rig->body, event->msg.body, event->msg.head->body_bytes);
		}
		break;
	case WF_EVENT_PUT:
		rig->puts++;
		rig->tag = event->put.tag;
		rig->data = event->put.data;
		break;
	case WF_EVENT_DONE:
		rig->dones++;
		break;
	}
}

unsigned
shm_rig_pump(struct shm_rig *rig)
{
	uint64_t deadline_ns = 0;
	(void)wf_transport_arm(rig->transport, &deadline_ns);
	struct wf_event event[16];
	unsigned count = 0;
	must(wf_transport_poll(rig->transport, event, 16, &count) == WEFT_OK, "poll");
	for (unsigned i = 0; i < count; i++) {
		note(rig, &event[i]);
	}
	if (count == 0) {
		uint64_t rest_ns = wf_now_ns(rig->env) + REST_NS;
		wf_wait(rig->env, wf_transport_wait_fd(rig->transport),
			deadline_ns < rest_ns ? deadline_ns : rest_ns);
	}
	return count;
}

void
shm_rig_await(struct shm_rig *rig, const unsigned *count, unsigned value)
{
	uint64_t limit_ns = wf_now_ns(rig->env) + AWAIT_LIMIT_NS;
	while (*count < value && wf_now_ns(rig->env) < limit_ns) {
		shm_rig_pump(rig);
	}
	must(*count >= value, "what was awaited did not come");
}

void
shm_rig_accept(struct shm_rig *rig)
{
	shm_rig_await(rig, &rig->ups, rig->ups + 1);
	must(wf_transport_answer(rig->conn, true, NULL, 0) == WEFT_OK, "answer");
}

void
shm_rig_connect(struct shm_rig *rig, const struct wf_host *to)
{
	struct wf_conn *conn = NULL;
	must(wf_transport_connect(rig->transport, to, NULL, 0, NULL, &conn) == WEFT_OK, "connect");
	shm_rig_await(rig, &rig->ups, 1);
}
