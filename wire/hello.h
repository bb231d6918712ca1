/* SPDX-License-Identifier: Apache-2.0 */
/* hello: the first message of a trainer on a connection (HELLO), or of a pserver on its connection
 * to the registrar, and the lane's verdict on it (WELCOME). Transports carry both as opaque bytes;
 * wf_hello_decode and wf_hello_match are the rules of admission that do not depend on other
 * connections. Layouts: wire/protocol.md. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

#define WF_HELLO_MAX 1024 /* bytes of an encoded hello or verdict */
#define WF_AUTH_NONCE_BYTES 32
#define WF_AUTH_MAC_BYTES 32
#define WF_MEMBER_NAME_BYTES 64 /* host name, with NUL */
#define WF_REASON_BYTES 256     /* one line, with NUL */
#define WF_SUMMARY_BYTES 256    /* words with blanks between them, with NUL */

/* Zero, and refused when not: with a secret of the job the path head in front has the code of all
 * bytes behind it (transport/paths/secret.md). */
struct wf_auth {
	uint16_t scheme;
	uint8_t nonce[WF_AUTH_NONCE_BYTES];
	uint8_t mac[WF_AUTH_MAC_BYTES];
};

struct wf_hello {
	uint16_t version_min; /* wire versions the sender speaks */
	uint16_t version_max;
	/* WF_SERVICE_DENSE, WF_SERVICE_SPARSE, WF_SERVICE_REGISTRY (the sender is a pserver),
	 * or WF_SERVICE_WATCH: the sender is no member of the job, and its counts are 1. */
	uint8_t service;
	uint32_t pserver_idx; /* the pserver that the sender means to reach; registry: 0 */
	/* Within that pserver, among the lanes of the service; registry: 0. */
	uint32_t lane_idx;
	uint32_t pserver_count;
	uint32_t lane_count;    /* of each pserver, of the service */
	uint32_t trainer_id;    /* registry: which pserver the sender is */
	uint32_t trainer_count; /* num_gradient_servers; registry: pserver_count */
	uint64_t incarnation;   /* of the sender's process; never 0 */
	uint32_t path;          /* generation of this connection within the incarnation, from 1 */
	/* Membership epoch: 0: the sender is a member from the beginning; other: it also takes an
	 * empty place in a job that runs. */
	uint64_t epoch;
	uint64_t job_digest; /* digest of the job's options */
	/* Digest of names, sizes and settings of the tensors, in order; sparse: wf_tables_digest.
	 */
	uint64_t tensors_digest;
	/* Digest of slices and their lanes; sparse lanes only compare it. */
	uint64_t placement_digest;
	/* Digest of binary, kernels, BLAS: a difference causes one warning. */
	uint64_t numerics_digest;
	uint64_t job_bytes;     /* size of the encoded job description; sparse:
				    * wf_tables_bytes */
	uint32_t msg_bytes_max; /* limits of the sender */
	uint64_t put_bytes_max;
	char host[WF_MEMBER_NAME_BYTES];
	uint32_t pid;
	struct wf_auth auth;
	/* The values behind the digests, as far as there is room: "slice_bytes=256 momentum=0.9",
	 * "fc_w=13 fc_b=1". Only used to report which setting differs. */
	char options[WF_SUMMARY_BYTES];
	char tensors[WF_SUMMARY_BYTES];
	/* What else the program wants to be the same: "seed=1 batch_size=32". Compared as text,
	 * word by word; "": not compared. */
	char compared[WF_SUMMARY_BYTES];
};

enum wf_welcome_flag {
	WF_WELCOME_SEND_JOB = 1 << 0, /* the lane wants the job description */
	/* refused: the job has failed; the reason is its first cause. */
	WF_WELCOME_JOB_OVER = 1 << 1,
	/* A member that is lost does not end the job: it goes back (WEFT_ROLLED_BACK). */
	WF_WELCOME_GOES_BACK = 1 << 2,
	/* The lane answers GOODBYE when all trainers have sent theirs. */
	WF_WELCOME_ENDS_TOGETHER = 1 << 3,
	/* Somebody watches the job: the trainer is to measure how long it computes (STEP). */
	WF_WELCOME_MEASURES = 1 << 4,
	/* A trainer may leave while the job goes on. */
	WF_WELCOME_MAY_LEAVE = 1 << 5,
	/* The trainer joins the job while it goes on. */
	WF_WELCOME_JOINS = 1 << 6,
};

struct wf_welcome {
	uint16_t version;     /* chosen; 0 when refused */
	uint16_t refusal;     /* enum weft_status; WEFT_OK: welcome; never WEFT_AGAIN */
	uint32_t flags;       /* enum wf_welcome_flag */
	uint64_t incarnation; /* of the pserver process; never 0 when welcome */
	uint64_t epoch;
	uint32_t slot_count; /* slots the lane will grant; a power of two */
	uint32_t msg_bytes_max;
	uint64_t put_bytes_max;
	char reason[WF_REASON_BYTES]; /* refused: the thing, its value and the remedy */
	struct wf_auth auth;
};

/* `out` has WF_HELLO_MAX bytes. Returns the bytes used. Unprintable characters of host and reason
 * are sent as '?'; a refusal is sent with version 0. */
size_t wf_hello_encode(const struct wf_hello *hello, uint8_t *out);
size_t wf_welcome_encode(const struct wf_welcome *welcome, uint8_t *out);
/* WEFT_PROTOCOL names the field. Strings are checked to be printable, auth to be zero, version_min
 * <= version_max, trainer_id < trainer_count <= 65,536, indices below their counts, limits and
 * incarnation and path not to be 0; for the registry, indices to be those of the registrar.
 * WEFT_MISMATCH: no wire version in common, names both ranges. */
enum weft_status wf_hello_decode(const uint8_t *in, size_t bytes,
				 struct wf_hello *out) WEFT_MUST_CHECK;
enum weft_status wf_welcome_decode(const uint8_t *in, size_t bytes,
				   struct wf_welcome *out) WEFT_MUST_CHECK;

/* The wire version to use with the sender of a decoded hello: the highest that both ends know. */
uint16_t wf_hello_version(const struct wf_hello *hello);

/* Checks that `hello` belongs to the job that `first` (the first admitted hello) opened.
 * WEFT_MISMATCH: the text names the field, both values with their owners and the remedy, e.g.
 * "trainer 1 on nodeb (pid 7) has num_gradient_servers 3, trainer 0 on nodea (pid 5) has 2: give
 * every trainer the same". numerics_digest and epoch are not compared. */
enum weft_status wf_hello_match(const struct wf_hello *first,
				const struct wf_hello *hello) WEFT_MUST_CHECK;
/* Checks that the words of `compared` are those of `spoken`, the first admitted hello that has any.
 * A hello without words matches. WEFT_MISMATCH: the text names the first word that differs, with
 * both values. To be called before wf_hello_match: different data makes different tensors, and is
 * then the better reason. */
enum weft_status wf_hello_match_compared(const struct wf_hello *spoken,
					 const struct wf_hello *hello) WEFT_MUST_CHECK;
