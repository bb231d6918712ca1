/* SPDX-License-Identifier: Apache-2.0 */
/* paths_rails: the connecting end, from offers to an attempt. A path over RDMA devices is offered
 * once for each device of the peer that serves the lane: these are the rails. They are tried one
 * after the other, in the peer's order; a rail that cannot be established is logged in one line and
 * left out for a while, and so is one that breaks in use. Thread: the transport's owner. */
#include "transport/paths/paths_internal.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

/* A rail that broke is recorded under its address. */
static struct wf_host
rail_host(const struct wf_paths_conn *m, const struct wf_path_offer *offer)
{
	struct wf_host host = m->attempt.to;
	host.port = offer->port;
	if (offer->host[0] != '\0') {
		(void)snprintf(host.name, sizeof(host.name), "%s", offer->host);
	}
	return host;
}

static bool
is_broken(const struct wf_paths_conn *m, const struct wf_path_offer *offer)
{
	struct wf_host host = rail_host(m, offer);
	return offer->port == 0 || wf_paths_is_broken(m->t, m->path, &host);
}

/* Converts an address to bytes, so that the order is numeric. Returns their number; 0: not an
 * address of that family. */
static size_t
address_bytes(const char *text, uint8_t out[16])
{
	if (inet_pton(AF_INET, text, out) == 1) {
		return 4;
	}
	return inet_pton(AF_INET6, text, out) == 1 ? 16 : 0;
}

/* The number of a rail: its rank among the offered addresses of its family, in numeric order. So it
 * is the same for every lane, however the peer has ordered them. */
static unsigned
rail_number(const struct wf_paths_conn *m, unsigned idx)
{
	uint8_t own[16];
	uint8_t other[16];
	unsigned number = 0;
	size_t bytes = address_bytes(m->rails.offer[idx].host, own);
	for (unsigned i = 0; i < m->rails.count && bytes > 0; i++) {
		number += address_bytes(m->rails.offer[i].host, other) == bytes &&
			  memcmp(other, own, bytes) < 0;
	}
	return number;
}

/* Offers in a network of this host come first, and those that broke come last. */
static void
sort_offers(struct wf_paths_conn *m)
{
	struct wf_path_offer sorted[WF_PATH_OFFERS_MAX];
	unsigned place[WF_PATH_OFFERS_MAX];
	unsigned count = 0;
	for (unsigned i = 0; i < m->rails.count; i++) {
		place[i] = is_broken(m, &m->rails.offer[i])             ? 2
			   : wf_rdma_is_on_link(m->rails.offer[i].host) ? 0
									: 1;
	}
	for (unsigned wanted = 0; wanted < 3; wanted++) {
		for (unsigned i = 0; i < m->rails.count; i++) {
			if (place[i] == wanted) {
				sorted[count++] = m->rails.offer[i];
			}
		}
	}
	memcpy(m->rails.offer, sorted, count * sizeof(sorted[0]));
}

static void
log_left_out(const struct wf_paths_conn *m, const struct wf_path_offer *offer, const char *why)
{
	wf_log(m->t->transport.env, WF_LOG_WARN, "%s: rail %s is left out: %s", m->path->kind->name,
	       offer->host, why);
}

static enum weft_status
try_offer(struct wf_paths_conn *m, unsigned idx)
{
	const struct wf_path_offer *offer = &m->rails.offer[idx];
	struct wf_host to = rail_host(m, offer);
	if (m->path->kind->rdma) {
		char device[WF_RDMA_DEVICE_BYTES];
		enum weft_status st = wf_rdma_device_for(m->t->verbs, rail_number(m, idx), device);
		if (st != WEFT_OK) {
			return st;
		}
		if (device[0] != '\0') {
			(void)snprintf(to.name, sizeof(to.name), "%s%%%s", offer->host, device);
		}
		/* The inner attempt's own limit does not count the time to register memory. */
		wf_paths_conn_deadline(m, WF_NEVER);
	}
	uint8_t blob[WF_BLOB_ROOM];
	struct wf_path_head ticket = {
		.kind = WF_PATH_TICKET,
		.flags = wf_paths_seal_flag(m),
		.path = offer->path,
	};
	memcpy(ticket.id, m->meeting.ticket, sizeof(ticket.id));
	size_t used = wf_path_encode(&ticket, blob);
	wf_paths_seal(m, WF_PATHS_WORD_TICKET, blob, used);
	m->fast = NULL;
	enum weft_status st = wf_transport_connect(m->path->inner, &to, blob, used, m, &m->fast);
	m->fast = st == WEFT_OK ? m->fast : NULL;
	return st;
}

/* Whether the limit of the whole attempt has passed, after which no further rail is tried; a rail's
 * own limit does not count the time to register memory. */
static bool
is_late(struct wf_paths_conn *m)
{
	if (wf_now_ns(m->t->transport.env) < m->attempt.end_ns) {
		return false;
	}
	wf_paths_conn_cause(m, WEFT_TIMEOUT, "not answered within %llu ms over %u of %u rails",
			    (unsigned long long)(m->t->opts.connect_timeout_ns / WF_NS_PER_MS),
			    m->rails.next, m->rails.count);
	return true;
}

bool
wf_paths_rails_next(struct wf_paths_conn *m)
{
	while (m->rails.next < m->rails.count) {
		if (m->rails.next > 0 && is_late(m)) {
			return false;
		}
		unsigned idx = m->rails.next++;
		bool is_down = m->rails.offer[idx].port == 0; /* as the peer reports */
		if (is_down || (is_broken(m, &m->rails.offer[idx]) && !m->t->must)) {
			continue; /* logged when it broke */
		}
		m->rails.idx = idx;
		wf_paths_conn_excuse(m);
		if (try_offer(m, idx) == WEFT_OK) {
			return true;
		}
		wf_paths_conn_cause(m, WEFT_UNAVAILABLE, "%s", weft_last_error());
		if (m->rails.count > 1) {
			log_left_out(m, &m->rails.offer[idx], weft_last_error());
		}
	}
	return false;
}

bool
wf_paths_rails_begin(struct wf_paths_conn *m, const struct wf_path_head *head)
{
	m->path = NULL;
	m->rails.count = 0;
	m->rails.next = 0;
	for (unsigned i = 0; i < head->offer_count; i++) {
		const struct wf_path_offer *offer = &head->offer[i];
		bool may = offer->path < 32 && (m->attempt.paths & 1u << offer->path) != 0 &&
			   wf_paths_find(m->t, offer->path) != NULL;
		if (may && m->path == NULL) { /* another rail may be up when one is down */
			m->path = wf_paths_find(m->t, offer->path);
		}
		if (may && offer->path == m->path->kind->path_id) {
			m->rails.offer[m->rails.count++] = *offer;
		}
	}
	memcpy(m->meeting.ticket, head->id, sizeof(m->meeting.ticket));
	if (m->path != NULL && m->path->kind->rdma) {
		sort_offers(m);
	}
	return m->path != NULL;
}

static bool
has_others(const struct wf_paths_conn *m)
{
	for (unsigned i = 0; i < m->rails.count; i++) {
		if (i != m->rails.idx && !is_broken(m, &m->rails.offer[i])) {
			return true;
		}
	}
	return false;
}

static bool
get_host(const struct wf_paths_conn *m, struct wf_host *out)
{
	if (m->rails.count < 2 || !m->path->kind->rdma) {
		return false;
	}
	*out = rail_host(m, &m->rails.offer[m->rails.idx]);
	return true;
}

bool
wf_paths_rails_failed(struct wf_paths_conn *m, const char *why)
{
	if (m->rails.count < 2 || !m->path->kind->rdma) {
		return false;
	}
	log_left_out(m, &m->rails.offer[m->rails.idx], why);
	return wf_paths_rails_next(m);
}

static const struct wf_paths_broken *
remember(const struct wf_paths_conn *m, const struct wf_host *peer, const char *why)
{
	const struct wf_paths_breaking what = {
		.path = m->path,
		.peer = peer,
		.why = why,
		.now_ns = wf_now_ns(m->t->transport.env),
		.up_ns = m->up_ns,
		.retry_ns = m->t->opts.path_retry_ns,
	};
	return wf_paths_broken_add(&m->t->broken, &what);
}

void
wf_paths_broke(struct wf_paths_conn *m, const char *why)
{
	struct wf_host rail;
	if (get_host(m, &rail)) {
		const struct wf_paths_broken *broken = remember(m, &rail, why);
		m->rails.blame.rail = broken->number;
		if (has_others(m)) {
			wf_log(m->t->transport.env, WF_LOG_WARN,
			       "%s: rail %s broke, and is left out for %.1f s: %s",
			       m->path->kind->name, rail.name,
			       (double)(broken->until_ns - broken->at_ns) / 1e9, why);
			return;
		}
	}
	m->rails.blame.path = remember(m, &m->attempt.to, why)->number;
}

void
wf_paths_hung(struct wf_paths_conn *m, const char *why)
{
	if (m->path->kind->may_hang && m->boot != NULL) {
		wf_paths_broke(m, why);
	}
}

void
wf_paths_forgive(struct wf_paths_conn *m)
{
	wf_paths_broken_forgive(&m->t->broken, m->rails.blame.path);
	wf_paths_broken_forgive(&m->t->broken, m->rails.blame.rail);
	m->rails.blame = (struct wf_paths_blame){0};
}
