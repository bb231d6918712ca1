/* SPDX-License-Identifier: Apache-2.0 */
/* path: the negotiation between two ends of transport/paths about the path that carries their
 * connection. It precedes the hello and the verdict of their user. With a secret of the job it is
 * sealed, together with what follows it. Thread: any; pure functions. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

#define WF_PATH_MAGIC 0x48505457u /* "WTPH" */
#define WF_PATH_VERSION 1u
#define WF_PATH_HEAD_BYTES 64u /* fixed part */
#define WF_PATH_TEXT_BYTES 124 /* with NUL */
#define WF_PATH_HOST_BYTES 64  /* with NUL */
#define WF_PATH_OFFERS_MAX 8u
#define WF_PATH_ID_BYTES 16u
#define WF_PATH_USER_MAX 1024u /* bytes of a user's blob behind it */
#define WF_PATH_AUTH_AT 32u    /* offset of `auth` */
#define WF_PATH_AUTH_BYTES 32u /* of a code, or of a nonce */

/* Identifies a path. The numbers are on the wire, so they do not change. */
enum wf_path_id {
	WF_PATH_BOOTSTRAP = 0,
	WF_PATH_SHM = 1,
	WF_PATH_VERBS = 2,
	WF_PATH_OTHER = 3, /* a medium that tests bring along */
	WF_PATH_ID_COUNT,
};

enum wf_path_kind {
	WF_PATH_HELLO = 1,   /* hello on the bootstrap; the user's hello follows */
	WF_PATH_TICKET = 2,  /* hello on an offered path; nothing follows */
	WF_PATH_HERE = 3,    /* verdict: this connection carries; the user's verdict follows */
	WF_PATH_UPGRADE = 4, /* verdict: connect to one of the offers, with the ticket */
	WF_PATH_NO = 5, /* verdict: refused because of its path head; the text has the reason */
	/* With a secret a connecting end says nothing but this at first, on a connection of its
	 * own, and is refused with a challenge. */
	WF_PATH_KNOCK = 6,     /* hello on the bootstrap; auth: this end's nonce */
	WF_PATH_CHALLENGE = 7, /* verdict, a refusal; auth: that end's nonce */
	WF_PATH_KIND_MAX = 7,
};

/* HERE and NO: why this path carries, or none, as the answering end sees it. */
enum wf_path_reason {
	WF_PATH_BEST = 0,       /* it was the first offer */
	WF_PATH_ONLY = 1,       /* that end knows no other, or may use no other */
	WF_PATH_PEER_LEFT = 2,  /* the connecting end left the others out */
	WF_PATH_OTHER_HOST = 3, /* the others need one host */
	WF_PATH_MISSING = 4,    /* that end has none to offer; the text has the reason */
	WF_PATH_FULL = 5, /* NO: that end has no room; the text names the connections that it has */
	WF_PATH_SECRET = 6,    /* NO: that end has a secret, and no proof that the other has it */
	WF_PATH_NO_SECRET = 7, /* NO to a KNOCK: that end has no secret */
	WF_PATH_REASON_COUNT,
};

/* Flags. */
#define WF_PATH_MUST 1u /* HELLO: refuse the connection unless one of `paths` can carry it */
/* `auth` is the code of all of these bytes, itself as zeros, and of those that follow them; not in
 * KNOCK and CHALLENGE. A HELLO has its sender's nonce behind the text. */
#define WF_PATH_SEALED 2u

struct wf_path_offer {
	uint8_t path;                  /* enum wf_path_id, not the bootstrap */
	uint16_t port;                 /* VERBS: 0 is a rail that is down, but keeps its number */
	char host[WF_PATH_HOST_BYTES]; /* "": the bootstrap's host */
};

struct wf_path_head {
	uint8_t kind; /* enum wf_path_kind */
	uint8_t flags;
	uint8_t path;                     /* HERE, TICKET: the path of this connection */
	uint8_t reason;                   /* HERE, NO */
	uint32_t paths;                   /* HELLO: 1 << enum wf_path_id, those it may use */
	uint8_t id[WF_PATH_ID_BYTES];     /* HELLO: the host's id; TICKET and UPGRADE: the ticket */
	char text[WF_PATH_TEXT_BYTES];    /* HELLO: why paths are left out; HERE, NO: the reason */
	uint8_t auth[WF_PATH_AUTH_BYTES]; /* sealed: the code; KNOCK, CHALLENGE: the nonce */
	uint8_t nonce[WF_PATH_AUTH_BYTES]; /* HELLO, sealed: as in the KNOCK before it */
	uint8_t offer_count;               /* UPGRADE: best first */
	struct wf_path_offer offer[WF_PATH_OFFERS_MAX];
};

/* The most bytes of a head without offers, without the user's blob. */
#define WF_PATH_PLAIN_MAX (WF_PATH_HEAD_BYTES + 2u + WF_PATH_TEXT_BYTES - 1u + WF_PATH_AUTH_BYTES)
#define WF_PATH_UPGRADE_MAX                                                                        \
	(WF_PATH_PLAIN_MAX + WF_PATH_OFFERS_MAX * (5u + WF_PATH_HOST_BYTES - 1u))

/* Returns the bytes written to `out` (WF_PATH_PLAIN_MAX; UPGRADE: WF_PATH_UPGRADE_MAX). */
size_t wf_path_encode(const struct wf_path_head *head, uint8_t *out);
/* `*used`: the number of bytes before the user's. WEFT_PROTOCOL: the text names what is wrong. */
enum weft_status wf_path_decode(const uint8_t *in, size_t bytes, struct wf_path_head *out,
				size_t *used) WEFT_MUST_CHECK;
