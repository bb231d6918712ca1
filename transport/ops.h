/* SPDX-License-Identifier: Apache-2.0 */
/* ops: what a backend implements. All slots are mandatory; none has an optional meaning: what a
 * medium lacks, its backend makes up for. transport.c checks arguments before it calls a slot. */
#pragma once

#include "transport/transport.h"

struct wf_transport_ops {
	const char *name;
	void (*close)(struct wf_transport *transport);
	void (*query)(struct wf_transport *transport, struct wf_transport_info *out);
	enum weft_status (*region_add)(struct wf_transport *transport,
				       const struct wf_region *region, uint32_t *out);
	void (*region_remove)(struct wf_transport *transport, uint32_t region);
	enum weft_status (*grant)(struct wf_conn *conn, const struct wf_grant *grant,
				  struct wf_grant_key *out);
	void (*release)(struct wf_conn *conn, uint32_t slot);
	enum weft_status (*listen)(struct wf_transport *transport, const struct wf_host *at,
				   uint16_t *port);
	enum weft_status (*answer)(struct wf_conn *conn, bool accept, const void *verdict,
				   size_t verdict_bytes);
	enum weft_status (*connect)(struct wf_transport *transport, const struct wf_host *to,
				    const void *hello, size_t hello_bytes, void *user,
				    struct wf_conn **out);
	void (*disconnect)(struct wf_conn *conn, enum wf_disconnect how);
	enum weft_status (*post)(struct wf_conn *conn, const struct wf_op *ops, unsigned op_count,
				 unsigned *taken);
	enum weft_status (*poll)(struct wf_transport *transport, struct wf_event *events,
				 unsigned max, unsigned *event_count);
	int (*wait_fd)(struct wf_transport *transport);
	void (*arm)(struct wf_transport *transport, uint64_t *deadline_ns);
};

/* A backend as backends.c lists it. */
struct wf_backend {
	const char *name;
	enum weft_status (*open)(const struct wf_transport_opts *opts, struct wf_transport **out);
};

/* NULL-terminated. */
extern const struct wf_backend *const wf_backends[];

extern const struct wf_backend wf_backend_tcp;
extern const struct wf_backend wf_backend_shm;
extern const struct wf_backend wf_backend_sim;
