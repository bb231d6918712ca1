/* SPDX-License-Identifier: Apache-2.0 */
/* verbs_connect: the connecting end, up to the request. Names are looked up on the env's helper
 * thread. Thread: the transport's owner. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "transport/verbs/verbs_internal.h"

/* ---- one address ---- */

static int
left_ms(const struct wf_verbs_conn *c)
{
	uint64_t now_ns = wf_now_ns(c->t->medium.transport.env);
	uint64_t left =
		c->life.attempt_ns > now_ns ? (c->life.attempt_ns - now_ns) / WF_NS_PER_MS : 0;
	return left < 1 ? 1 : left > INT32_MAX ? INT32_MAX : (int)left;
}

static enum weft_status
begin(struct wf_verbs_conn *c, struct sockaddr_storage *address)
{
	struct wf_verbs *t = c->t;
	const struct wf_verbs_settings *s = &t->settings;
	struct sockaddr_storage source;
	struct sockaddr *bound = NULL;
	enum weft_status st = WEFT_OK;
	if (c->attempt.device[0] != '\0') {
		st = wf_verbs_source_address(t, c->attempt.device, address->ss_family, &source);
		bound = (struct sockaddr *)&source;
	}
	if (st == WEFT_OK) {
		st = wf_verbs_link_begin(c);
	}
	if (st != WEFT_OK) {
		return st;
	}
	if (s->traffic_class >= 0) {
		uint8_t tos = (uint8_t)s->traffic_class;
		(void)t->lib->set_option(c->link.id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos,
					 sizeof(tos));
	}
	if (t->lib->resolve_addr(c->link.id, bound, (struct sockaddr *)address, left_ms(c)) != 0) {
		return wf_fail_errno(WEFT_UNAVAILABLE, errno, "no RDMA device leads there");
	}
	c->attempt.stage = WF_VERBS_ADDRESSING;
	return WEFT_OK;
}

void
wf_verbs_connect_next(struct wf_verbs_conn *c, const char *why)
{
	char last[WF_WHY_BYTES];
	snprintf(last, sizeof(last), "%s", why);
	while (c->attempt.address_next < c->attempt.addresses.count && !c->attempt.task.running) {
		struct sockaddr_storage *address =
			&c->attempt.addresses.at[c->attempt.address_next++];
		wf_verbs_link_close(c);
		wf_verbs_conn_clear(c);
		wf_address_name(&c->life.to, address, c->life.peer, sizeof(c->life.peer));
		if (begin(c, address) == WEFT_OK) {
			wf_life_deadline(&c->life, c->life.attempt_ns);
			return;
		}
		snprintf(last, sizeof(last), "%s", weft_last_error());
	}
	wf_life_down(&c->life, WEFT_UNAVAILABLE, "%s (addresses tried: %u)", last,
		     c->attempt.addresses.count);
}

void
wf_verbs_connect_address(struct wf_verbs_conn *c)
{
	if (c->t->lib->resolve_route(c->link.id, left_ms(c)) != 0) {
		wf_verbs_connect_next(c, strerror(errno));
		return;
	}
	c->attempt.stage = WF_VERBS_ROUTING;
}

static void
fill_request(struct wf_verbs_conn *c)
{
	struct wf_verbs_private p = wf_verbs_private_of(c, WF_VERBS_REQUEST);
	if (c->blob_bytes <= WF_VERBS_HELLO_SHORT) {
		p.blob_bytes = (uint8_t)c->blob_bytes;
		memcpy(p.blob, c->blob, c->blob_bytes);
	} else {
		p.features |= WF_VERBS_BLOB_FOLLOWS;
	}
	struct wf_verbs_task *task = &c->attempt.task;
	size_t bytes = wf_verbs_private_encode(&p, task->data);
	task->lib = c->t->lib;
	task->id = c->link.id;
	task->param = (struct rdma_conn_param){
		.private_data = task->data,
		.private_data_len = (uint8_t)bytes,
		.responder_resources = 1,
		.initiator_depth = 1,
		.flow_control = 1,
		.retry_count = (uint8_t)c->t->settings.retry_count,
		.rnr_retry_count = (uint8_t)c->t->settings.rnr_retry,
		.srq = c->link.queues->srq != NULL,
		.qp_num = c->link.qp_num,
	};
}

/* Requests and replies are datagrams, and may be lost. The kernel repeats them only after more than
 * 4 s, which is most of an attempt, so this end repeats the request in the middle of the remaining
 * time. A slow answer is not a lost one, so the repetition is not much earlier, and a short attempt
 * has none. */
static void
request(struct wf_verbs_conn *c)
{
	uint64_t now_ns = wf_now_ns(c->t->medium.transport.env);
	uint64_t half_ns = now_ns < c->life.attempt_ns ? (c->life.attempt_ns - now_ns) / 2 : 0;
	bool once = c->attempt.repeated || c->link.dev->caps.iwarp || half_ns < WF_VERBS_REPEAT_NS;
	fill_request(c);
	c->attempt.stage = WF_VERBS_REQUESTING;
	wf_life_deadline(&c->life, once ? c->life.attempt_ns : now_ns + half_ns);
	if (c->link.dev->caps.iwarp) {
		struct wf_env *env = c->t->medium.transport.env;
		if (wf_verbs_task_start(&c->attempt.task, env, c->t->medium.loop.wake_fd) !=
		    WEFT_OK) {
			wf_life_down(&c->life, WEFT_UNAVAILABLE, "%s", weft_last_error());
		}
		return;
	}
	wf_verbs_task_run(&c->attempt.task);
	if (c->attempt.task.error != 0) {
		wf_verbs_connect_next(c, strerror(c->attempt.task.error));
	}
}

bool
wf_verbs_connect_repeat(struct wf_verbs_conn *c, const char *why)
{
	if (!wf_verbs_conn_is_at(c, WF_VERBS_REQUESTING) || c->attempt.repeated ||
	    c->link.dev->caps.iwarp) {
		return false;
	}
	wf_log(c->t->medium.transport.env, WF_LOG_INFO, "verbs: %s is tried once more: %s",
	       c->life.peer, why);
	c->attempt.repeated = true;
	c->attempt.address_next--;
	wf_verbs_connect_next(c, why);
	return true;
}

/* The first connection opens the device and registers regions. That is not the peer's fault, so the
 * attempt is extended by that time. */
void
wf_verbs_connect_route(struct wf_verbs_conn *c)
{
	c->attempt.preparing_ns = wf_now_ns(c->t->medium.transport.env);
	if (wf_verbs_link_open(c) != WEFT_OK) {
		wf_verbs_connect_next(c, weft_last_error());
		return;
	}
	c->attempt.stage = WF_VERBS_PREPARING;
	c->life.deadline_ns = WF_NEVER;
	wf_life_ready(&c->life);
}

static void
prepare(struct wf_verbs_conn *c)
{
	enum weft_status st = wf_verbs_regions_check(c);
	if (st == WEFT_OK) {
		c->life.attempt_ns +=
			wf_now_ns(c->t->medium.transport.env) - c->attempt.preparing_ns;
		request(c);
	} else if (st != WEFT_AGAIN) {
		wf_verbs_connect_next(c, weft_last_error());
	}
}

static void
resolve_visit(struct wf_verbs_conn *c)
{
	struct wf_env *env = c->t->medium.transport.env;
	enum weft_status st = wf_look_up_end(env, &c->attempt.look_up, &c->attempt.addresses);
	if (st == WEFT_OK) {
		wf_verbs_connect_next(c, "");
	} else if (st != WEFT_AGAIN) {
		wf_life_down(&c->life, st, "%s", weft_last_error());
	}
}

void
wf_verbs_connect_abandon(struct wf_verbs_conn *c)
{
	wf_look_up_abandon(&c->attempt.look_up, &c->t->orphans);
}

void
wf_verbs_connect_visit(struct wf_verbs_conn *c)
{
	struct wf_verbs_task *task = &c->attempt.task;
	if (c->attempt.look_up != NULL) {
		resolve_visit(c);
	} else if (wf_verbs_conn_is_at(c, WF_VERBS_PREPARING)) {
		prepare(c);
	} else if (wf_verbs_task_ended(task)) {
		if (wf_verbs_conn_is_at(c, WF_VERBS_REQUESTING) && task->error != 0) {
			wf_verbs_connect_next(c, strerror(task->error));
		}
	}
}

/* "ADDRESS%DEVICE" uses that device. Otherwise, if the settings name devices, the first one is
 * used. */
static void
set_target(struct wf_verbs_conn *c)
{
	const struct wf_verbs_settings *s = &c->t->settings;
	char *device = strchr(c->life.to.name, '%');
	/* In such an address it is a scope. */
	if (device != NULL && strncmp(c->life.to.name, "fe80", 4) != 0) {
		*device = '\0';
		snprintf(c->attempt.device, sizeof(c->attempt.device), "%.*s",
			 WF_VERBS_DEVICE_BYTES - 1, device + 1);
	} else if (wf_verbs_settings_device_count(s) > 0) {
		wf_verbs_settings_device(s, 0, c->attempt.device);
	}
}

enum weft_status
wf_verbs_connect(struct wf_transport *transport, const struct wf_host *to, const void *hello,
		 size_t hello_bytes, void *user, struct wf_conn **out)
{
	struct wf_life *life = NULL;
	enum weft_status st = wf_life_begin(wf_medium_of(transport), to, user, &life);
	if (st != WEFT_OK) {
		return st;
	}
	struct wf_verbs_conn *c = wf_verbs_conn_of(&life->conn);
	wf_verbs_conn_init(c);
	set_target(c);
	wf_host_format(&life->to, life->peer, WF_HOST_BYTES + 8);
	c->blob_bytes = hello_bytes;
	if (hello_bytes > 0) {
		memcpy(c->blob, hello, hello_bytes);
	}
	if (wf_addresses_numeric(&life->to, &c->attempt.addresses)) {
		wf_verbs_connect_next(c, "");
	} else {
		st = wf_look_up_start(transport->env, &life->to, c->t->medium.loop.wake_fd,
				      &c->attempt.look_up);
		if (st != WEFT_OK) {
			wf_life_destroy(life);
			return st;
		}
	}
	*out = &life->conn;
	return WEFT_OK;
}
