/* SPDX-License-Identifier: Apache-2.0 */
/* fault_rig: see fault_rig.h. Thread: the test's. */
#include "tests/unit/fault/fault_rig.h"

#include <stdlib.h>

#define MESSAGES_MAX 64

static uint64_t
seed_of_run(void)
{
	const char *text = getenv("WEFT_SEED");
	return text == NULL ? 1 : strtoull(text, NULL, 0);
}

static void
run(const char *url, bool (*body)(struct conf *t))
{
	if (!conf_run(url, seed_of_run(), body)) {
		fail_msg("on %s; repeat: WEFT_SEED=%" PRIu64, url, seed_of_run());
	}
}

void
everywhere(bool (*body)(struct conf *t))
{
	run("tcp", body);
	run("shm", body);
	run("sim", body);
}

void
in_world(bool (*body)(struct conf *t))
{
	run("sim", body);
}

void
behind(struct conf *t, const char *spec)
{
	static char name[WF_FAULT_SPEC_BYTES + 64];
	const char *plus = strrchr(t->transport, '+');
	char base[16];
	(void)snprintf(base, sizeof(base), "%s", plus == NULL ? t->transport : plus + 1);
	if (spec == NULL) {
		(void)snprintf(name, sizeof(name), "%s", base);
	} else {
		(void)snprintf(name, sizeof(name), "fault(%s)+%s", spec, base);
	}
	t->transport = name;
}

bool
faulty_pair(struct conf *t, const char *server_spec, const char *client_spec, struct pair *out)
{
	behind(t, server_spec);
	struct node *server = conf_server(t, NULL);
	behind(t, client_spec);
	struct node *client = conf_node(t, NULL);
	return server != NULL && client != NULL && conf_join(t, server, client, out);
}

uint64_t
injected(const struct node *n, enum wf_fault_kind kind)
{
	struct wf_fault_counts counts = {0};
	return wf_fault_query(n->transport, &counts) ? counts.injected[kind] : 0;
}

bool
await_injected(struct conf *t, const struct node *n, enum wf_fault_kind kind, uint64_t count)
{
	uint64_t limit_ns = wf_now_ns(t->env) + 30 * WF_NS_PER_S;
	while (injected(n, kind) < count && wf_now_ns(t->env) < limit_ns) {
		conf_pump(t);
	}
	CHECK(injected(n, kind) >= count);
	return true;
}

bool
ended(struct conf *t, const struct seen *down, enum weft_status status, bool by_fault)
{
	CHECK(down != NULL && down->kind == WF_EVENT_DOWN);
	CHECK(down->status == status);
	CHECK(strstr(down->why, t->host) != NULL && strchr(down->why, '\n') == NULL);
	CHECK((strstr(down->why, "injected by transport fault") != NULL) == by_fault);
	CHECK(down->byte_count == 0);
	return true;
}

enum weft_status
post_messages(struct wf_conn *conn, unsigned count, unsigned *taken)
{
	static const uint8_t body[8];
	struct wf_head head[MESSAGES_MAX];
	struct wf_op ops[MESSAGES_MAX];
	if (count == 0 || count > MESSAGES_MAX) {
		return WEFT_INTERNAL;
	}
	for (unsigned i = 0; i < count; i++) {
		head[i] = (struct wf_head){.service = WF_SERVICE_CONTROL, .request_id = i};
		ops[i] = (struct wf_op){
			.kind = WF_OP_SEND, .cookie = i, .head = &head[i], .body = body};
		ops[i].body_bytes = sizeof(body);
	}
	return wf_transport_post(conn, ops, count, taken);
}
