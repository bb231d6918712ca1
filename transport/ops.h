/* SPDX-License-Identifier: Apache-2.0 */
/* ops: what a backend implements. All slots are mandatory; none has an optional meaning: what a
 * medium lacks, its backend makes up for. transport.c checks arguments before it calls a slot. */
#pragma once

#include "transport/transport.h"

/* What a hello or verdict may take within a backend: paths/ puts its own before that of its user. A
 * backend holds those of a peer against opts.blob_max, and has room for this. */
#define WF_BLOB_ROOM (WF_BLOB_MAX + 192u)

struct wf_transport_ops {
	const char *name;
	void (*close)(struct wf_transport *transport);
	/* path_count 0: what is the same for all of it is filled in by transport.c. */
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
	/* A backend that is one path: wf_path_alone. */
	void (*path)(struct wf_conn *conn, struct wf_path_info *out);
	enum weft_status (*post)(struct wf_conn *conn, const struct wf_op *ops, unsigned op_count,
				 unsigned *taken);
	enum weft_status (*poll)(struct wf_transport *transport, struct wf_event *events,
				 unsigned max, unsigned *event_count);
	int (*wait_fd)(struct wf_transport *transport);
	bool (*arm)(struct wf_transport *transport, uint64_t *deadline_ns);
	/* wf_wait_on_fd, or what is cheaper and takes in what ended the wait. */
	void (*wait)(struct wf_transport *transport, uint64_t deadline_ns);
	/* The wait of the caller, or its next one, ends at once. For wf_transport_kick, by any
	 * thread; and for what wraps a backend: it may have used up all that an armed poll brought,
	 * or have set itself a deadline meanwhile. */
	void (*wake)(struct wf_transport *transport);
};

/* A new connection carries itself. `user` stays. */
static inline void
wf_conn_init(struct wf_conn *conn, struct wf_transport *transport)
{
	conn->transport = transport;
	conn->ops = transport->ops;
	conn->carrier = conn;
	conn->shown = conn;
}

/* The slot `path` of a backend that has only itself. */
void wf_path_alone(struct wf_conn *conn, struct wf_path_info *out);

/* The slot `wait`, over the env's wait. */
void wf_wait_on_fd(struct wf_transport *transport, uint64_t deadline_ns);

/* What a peer gave as text, as one line: cut where it is too long, '?' for what is not printed. */
void wf_peer_text(const uint8_t *said, size_t bytes, char out[WF_WHY_BYTES]);

/* A backend as backends.c lists it, and what paths/ has to know of it. */
struct wf_backend {
	const char *name;
	/* NULL: it is not built in. What follows is told of it all the same. */
	enum weft_status (*open)(const struct wf_transport_opts *opts, struct wf_transport **out);
	bool is_path;
	uint8_t path_id;    /* enum wf_path_id; WF_PATH_BOOTSTRAP: it can only be one */
	bool one_host;      /* joins processes of one host only */
	bool may_hang;      /* an attempt may end in silence: then the path is to blame */
	bool rdma;          /* needs a device, and listens at addresses of its own */
	const char *listen; /* where; NULL: where the bootstrap listens */
	const char *why;    /* it was chosen */
	/* A bootstrap: for so long a path that broke is left out where nobody says how long. */
	uint64_t path_retry_ns;
};

/* What opts.paths may be but a list of backends: the bootstrap, and behind it what is better,
 * best first. */
struct wf_path_setting {
	const char *name;
	const char *items;
	bool must; /* one of those behind the bootstrap, or nothing */
};

/* NULL-terminated, and by a name that is NULL. Test programs have lists of their own, with what
 * stands in for a medium (tests/double/sim/backends.c). */
extern const struct wf_backend *const wf_backends[];
extern const struct wf_path_setting wf_path_settings[];

extern const struct wf_backend wf_backend_tcp;
extern const struct wf_backend wf_backend_shm;
extern const struct wf_backend wf_backend_verbs; /* verbs/verbs.c, or rdma_none.c */
extern const struct wf_backend wf_backend_paths;
