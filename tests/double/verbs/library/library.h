/* SPDX-License-Identifier: Apache-2.0 */
/* library: what is between processes. Each process has a device of its own, and one thread is it:
 * it reads what comes from other processes, keeps the time, and looks whether the device is there.
 * A call of the library and a turn of that thread hold one lock. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/double/verbs/fake_internal.h"

/* ---- engine.c: the lock, the thread, the device's folder ---- */

/* The first call starts the thread, and reads the environment. */
void library_enter(void);
void library_leave(void);
/* /sys/class/infiniband has the device. */
bool library_has_device(void);
/* Of sockets in this network namespace. */
const char *library_folder(void);

/* Something that the thread waits for. `ready` may end any watch. */
struct library_watch {
	struct library_watch *next;
	uint64_t serial; /* an old event of a number that is in use again is none of it */
	int fd;
	void (*ready)(struct library_watch *watch, uint32_t events);
};

void library_watch(struct library_watch *watch, uint32_t events);
void library_rewatch(struct library_watch *watch, uint32_t events);
/* The descriptor is closed, too. */
void library_unwatch(struct library_watch *watch);

/* ---- wire.c: messages of one connection, and what work requests are ---- */

enum library_kind {
	LIBRARY_REQUEST,     /* an address and private data follow */
	LIBRARY_REPLY,       /* private data */
	LIBRARY_READY,       /* RTU */
	LIBRARY_REJECTION,   /* private data */
	LIBRARY_DISCONNECTS, /* DREQ */
	LIBRARY_STREAM_ENDS, /* iWARP: the queue pair is in error */
	LIBRARY_WORK,        /* the bytes of a work request */
	LIBRARY_ANSWER,      /* to a work request */
};

/* Both ends are this library on one host: no byte order. */
struct library_message {
	enum library_kind kind;
	uint32_t bytes;  /* that follow */
	uint32_t qp_num; /* of a request or reply: of its sender */
	int32_t status;  /* of a rejection */
	enum fake_answer answer;
	struct fake_packet packet; /* its `data` is none, or something */
};

/* One connection, from its request on. */
struct library_link {
	struct library_watch watch; /* first; fd -1: the other end has gone */
	struct library_link *next;
	struct fake_id *id;       /* NULL: it was destroyed, or is not there yet */
	struct fake_id *listener; /* of one that comes in, until its request is here */
	bool incoming;
	bool linked; /* both ends know of each other */
	bool ended;  /* and of the end */
	bool left;   /* destroyed as soon as all was sent */
	uint32_t qp_num, peer_qp_num;
	uint8_t *in, *out;
	size_t in_bytes, in_room, out_bytes, out_room;
};

/* Of a socket that is connected. */
struct library_link *library_link_create(int fd);
void library_link_destroy(struct library_link *link);
/* Its identifier is no more: what was said goes out, and then it is destroyed. */
void library_link_leave(struct library_link *link);
/* All of these links; the caller may destroy the one that it has. */
struct library_link *library_links(void);
/* Its queue pair; work requests of that number go here. */
void library_link_bind(struct library_link *link, uint32_t qp_num);
void library_send(struct library_link *link, const struct library_message *message,
		  const void *bytes);
/* A message of a work request, or the answer to one. */
void library_wire_take(struct library_link *link, const struct library_message *message,
		       const uint8_t *bytes);
/* Nothing comes any more: what is under way is in vain. */
void library_wire_end(struct library_link *link);

/* ---- meet.c ---- */

/* A message of the connection manager. */
void library_meet_take(struct library_link *link, const struct library_message *message,
		       const uint8_t *bytes);
/* The other end has gone; so has the link, then. */
void library_meet_end(struct library_link *link);
