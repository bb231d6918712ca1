/* SPDX-License-Identifier: Apache-2.0 */
/* ops: what backends share: their list, and what the slots of struct wf_transport_ops
 * (transport.h) have in common. */
#pragma once

#include "transport/transport.h"

/* The largest hello or verdict within a backend: paths/ puts its own head before its user's. A
 * backend checks those of a peer against opts.blob_max, and has room for this. */
#define WF_BLOB_ROOM (WF_BLOB_MAX + 256u)

/* A new connection carries itself. `user` stays. */
static inline void
wf_conn_init(struct wf_conn *conn, struct wf_transport *transport)
{
	conn->transport = transport;
	conn->ops = transport->ops;
	conn->carrier = conn;
	conn->shown = conn;
}

/* The slot `path` of a backend that is a single path. */
void wf_path_alone(struct wf_conn *conn, struct wf_path_info *out);

/* The slot `wait`, over the env's wait. */
void wf_wait_on_fd(struct wf_transport *transport, uint64_t deadline_ns);

/* Copies a text of the peer as one line: a long text is cut, and unprintable characters become '?'.
 */
void wf_peer_text(const uint8_t *said, size_t bytes, char out[WF_WHY_BYTES]);

/* A backend as backends.c lists it, with what paths/ has to know about it. */
struct wf_backend {
	const char *name;
	/* NULL: it is not built in. The fields below are valid all the same. */
	enum weft_status (*open)(const struct wf_transport_opts *opts, struct wf_transport **out);
	bool is_path;
	uint8_t path_id; /* enum wf_path_id; WF_PATH_BOOTSTRAP: it can only be the bootstrap */
	bool one_host;   /* connects processes of one host only */
	bool may_hang;   /* an attempt may end without an answer, which is then the path's fault */
	bool rdma;       /* needs an RDMA device, and listens at addresses of its own */
	const char *listen; /* where it listens; NULL: where the bootstrap listens */
	const char *why;    /* the reason for choosing it, for log lines */
	/* For a bootstrap: how long a path that broke is left out if opts.path_retry_ns is 0. */
	uint64_t path_retry_ns;
};

/* A name that opts.paths may have instead of a list of backends: the bootstrap, and behind it the
 * faster paths, best first. */
struct wf_path_setting {
	const char *name;
	const char *items;
	bool must; /* one of the faster paths has to carry, or the connection fails */
};

/* The first ends with NULL, the second with a name that is NULL. Test programs have lists of their
 * own, with backends that stand in for a medium (tests/double/sim/backends.c). */
extern const struct wf_backend *const wf_backends[];
extern const struct wf_path_setting wf_path_settings[];

extern const struct wf_backend wf_backend_tcp;
extern const struct wf_backend wf_backend_shm;
extern const struct wf_backend wf_backend_verbs; /* verbs/verbs.c, or rdma_none.c */
extern const struct wf_backend wf_backend_paths;
