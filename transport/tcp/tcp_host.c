/* SPDX-License-Identifier: Apache-2.0 */
/* tcp_host: detects that the peer's host does not answer. On a stream with nothing under way the
 * kernel's keepalive probes it. While bytes wait there is no keepalive: the kernel retransmits
 * them, or probes a closed window, and this file checks whether anything answers. TCP_USER_TIMEOUT
 * would do that, but it also ends the stream of a host that answers all the time with a closed
 * window, as for a stopped process, and it would do so even if this end itself was not running.
 * Thread: the transport's owner. */
#include <errno.h>
#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>

#include "transport/tcp/tcp_internal.h"

/* Checks in a peer_timeout, and the number of consecutive silent ones that end a connection. */
#define LOOKS 8u
#define SILENT_LOOKS 5u
/* The least number of probes without an answer: a packet may be lost, and two probes within half a
 * second get one answer (tcp_invalid_ratelimit). */
#define ASKED_MIN 3u

/* Whether the kernel holds bytes that the peer's kernel has not acknowledged. */
static bool
awaits_host(struct wf_tcp_conn *c)
{
	int bytes = 0;
	if (c->host.arrived_bytes == c->tx.sent_bytes ||
	    (ioctl(c->fd, SIOCOUTQ, &bytes) == 0 && bytes == 0)) {
		c->host.arrived_bytes = c->tx.sent_bytes;
		return false;
	}
	return true;
}

static void
look(struct wf_tcp_conn *c, uint64_t now_ns)
{
	struct tcp_info info;
	socklen_t bytes = sizeof(info);
	if (!awaits_host(c) || getsockopt(c->fd, IPPROTO_TCP, TCP_INFO, &info, &bytes) != 0) {
		c->host.asked_ns = 0;
		return;
	}
	uint64_t silent_ms = info.tcpi_last_ack_recv < info.tcpi_last_data_recv
				     ? info.tcpi_last_ack_recv
				     : info.tcpi_last_data_recv;
	uint64_t silent_ns = silent_ms * WF_NS_PER_MS;
	unsigned asked = info.tcpi_retransmits + info.tcpi_probes;
	uint64_t span_ns = now_ns - c->host.asked_ns;
	if (asked == 0) {
		c->host.asked_ns = 0;
	} else if (c->host.asked_ns == 0 || span_ns > silent_ns) {
		c->host.asked_ns = now_ns; /* it has answered since */
	} else if (asked >= ASKED_MIN &&
		   span_ns >= c->t->medium.opts.peer_timeout_ns / LOOKS * SILENT_LOOKS) {
		wf_tcp_conn_broken(c, ETIMEDOUT);
	}
}

void
wf_tcp_host_watch(struct wf_tcp *t)
{
	if (t->look_ns == WF_NEVER) {
		t->look_ns =
			wf_loop_now_ns(&t->medium.loop) + t->medium.opts.peer_timeout_ns / LOOKS;
	}
}

void
wf_tcp_host_look(struct wf_tcp *t)
{
	uint64_t now_ns = wf_loop_now_ns(&t->medium.loop);
	if (now_ns < t->look_ns) {
		return;
	}
	t->look_ns = WF_NEVER;
	for (struct wf_life *life = t->medium.first; life != NULL; life = life->next) {
		if (life->state == WF_LIFE_UP) {
			look(wf_tcp_conn_of(&life->conn), now_ns);
		}
		if (life->state == WF_LIFE_UP) {
			wf_tcp_host_watch(t);
		}
	}
}
