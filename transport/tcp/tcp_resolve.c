/* SPDX-License-Identifier: Apache-2.0 */
/* tcp_resolve: names to addresses. Numeric ones at once; names on the env's helper thread, which
 * may take longer than the connection that asked. Thread: the transport's owner; `run` runs on the
 * helper thread and touches its task only. */
#include "transport/tcp/tcp_internal.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"

static unsigned
copy_addresses(const struct addrinfo *list, struct sockaddr_storage *out)
{
	unsigned count = 0;
	for (const struct addrinfo *ai = list; ai != NULL; ai = ai->ai_next) {
		bool usable = ai->ai_family == AF_INET || ai->ai_family == AF_INET6;
		if (usable && count < WF_TCP_ADDRESS_MAX) {
			memcpy(&out[count++], ai->ai_addr, ai->ai_addrlen);
		}
	}
	return count;
}

/* Returns as getaddrinfo does. */
static int
look_up(const struct wf_host *host, int flags, struct sockaddr_storage *out, unsigned *count)
{
	struct addrinfo hints = {
		.ai_family = AF_UNSPEC,
		.ai_socktype = SOCK_STREAM,
		.ai_flags = AI_NUMERICSERV | flags,
	};
	char port[8];
	snprintf(port, sizeof(port), "%u", host->port);
	struct addrinfo *list = NULL;
	int error = getaddrinfo(host->name, port, &hints, &list);
	if (error == 0) {
		*count = copy_addresses(list, out);
		freeaddrinfo(list);
	}
	return error;
}

bool
wf_tcp_resolve_numeric(struct wf_tcp_conn *c)
{
	return look_up(&c->life.to, AI_NUMERICHOST, c->address, &c->address_count) == 0;
}

static void
resolve_run(struct wf_task *task)
{
	struct wf_tcp_resolve *r = (struct wf_tcp_resolve *)task; /* first member */
	r->error = look_up(&r->host, 0, r->address, &r->address_count);
}

enum weft_status
wf_tcp_resolve_start(struct wf_tcp_conn *c)
{
	struct wf_env *env = c->t->medium.transport.env;
	struct wf_tcp_resolve *r = wf_zalloc(env, sizeof(*r));
	if (r == NULL) {
		return wf_fail(WEFT_NOMEM, "look-up of %s: %zu bytes", c->life.to.name, sizeof(*r));
	}
	r->task.run = resolve_run;
	r->task.wake_fd = c->t->medium.loop.wake_fd;
	r->host = c->life.to;
	enum weft_status st = env->ops->submit(env, &r->task);
	if (st != WEFT_OK) {
		wf_free(env, r, sizeof(*r));
		return st;
	}
	c->resolve = r;
	return WEFT_OK;
}

static bool
is_done(const struct wf_tcp_resolve *r)
{
	return atomic_load_explicit(&r->task.done, memory_order_acquire); /* env's release */
}

void
wf_tcp_resolve_visit(struct wf_tcp_conn *c)
{
	struct wf_tcp_resolve *r = c->resolve;
	if (r == NULL || !is_done(r)) {
		return;
	}
	c->resolve = NULL;
	int error = r->error;
	c->address_count = r->address_count;
	memcpy(c->address, r->address, sizeof(c->address));
	wf_free(c->t->medium.transport.env, r, sizeof(*r));
	if (error != 0) {
		wf_life_down(&c->life, WEFT_UNAVAILABLE, "the name is not known: %s",
			     gai_strerror(error));
		return;
	}
	wf_tcp_connect_next(c);
}

void
wf_tcp_resolve_abandon(struct wf_tcp_conn *c)
{
	if (c->resolve != NULL) {
		c->resolve->next = c->t->orphans;
		c->t->orphans = c->resolve;
		c->resolve = NULL;
	}
}

void
wf_tcp_resolve_reap(struct wf_tcp *t, bool wait)
{
	struct wf_env *env = t->medium.transport.env;
	struct wf_tcp_resolve **at = &t->orphans;
	while (*at != NULL) {
		struct wf_tcp_resolve *r = *at;
		if (is_done(r)) {
			*at = r->next;
			wf_free(env, r, sizeof(*r));
		} else if (wait) {
			wf_wait(env, -1, wf_now_ns(env) + WF_NS_PER_MS);
		} else {
			at = &r->next;
		}
	}
}

void
wf_tcp_address_format(const struct sockaddr_storage *address, char out[WF_TCP_ADDRESS_BYTES])
{
	char text[INET6_ADDRSTRLEN] = "";
	if (address->ss_family == AF_INET6) {
		const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)address;
		inet_ntop(AF_INET6, &v6->sin6_addr, text, sizeof(text));
		snprintf(out, WF_TCP_ADDRESS_BYTES, "[%s]:%u", text, ntohs(v6->sin6_port));
	} else if (address->ss_family == AF_INET) {
		const struct sockaddr_in *v4 = (const struct sockaddr_in *)address;
		inet_ntop(AF_INET, &v4->sin_addr, text, sizeof(text));
		snprintf(out, WF_TCP_ADDRESS_BYTES, "%s:%u", text, ntohs(v4->sin_port));
	} else {
		snprintf(out, WF_TCP_ADDRESS_BYTES, "(no address)");
	}
}
