/* SPDX-License-Identifier: Apache-2.0 */
/* liar: one process of a simulated job, whose every field may lie. The executable is linked with
 * --wrap for the three calls by which a process says anything to another (liar.c has the names), so
 * lane and session are the product's, and what they say is changed on its way to the transport.
 *
 * An input is LIAR_LIE_BYTES for each lie: u16 number of the operation (or hello) that it is about
 * (65,535: all), u8 what it changes (enum liar_what, and in the two highest bits how: 0 set, 1 add,
 * 2 exclusive or), u8 where in a body, key or payload, u64 value; little-endian. Thread: the
 * world's. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct wf_env;

#define LIAR_LIE_BYTES 12u
#define LIAR_LIES_MAX 24u
#define LIAR_ALL 0xffffu

enum liar_what {
	/* Head of a message. */
	LIAR_SERVICE,
	LIAR_TYPE,
	LIAR_REQUEST,
	LIAR_STEP,
	LIAR_SLICE,
	LIAR_REGION,
	LIAR_OFFSET,
	LIAR_EPOCH,
	/* Body: this many bytes of it at `where`, or its length. */
	LIAR_BODY_8,
	LIAR_BODY_16,
	LIAR_BODY_32,
	LIAR_BODY_64,
	LIAR_BODY_BYTES,
	/* PUT. */
	LIAR_PUT_OFFSET,
	LIAR_PUT_BYTES,
	LIAR_PUT_TAG,
	LIAR_PUT_KEY,
	LIAR_PUT_DATA, /* 8 bytes of the payload, at 4 x `where`, in the liar's own memory */
	/* Order. */
	LIAR_DROP,
	LIAR_TWICE,
	LIAR_LATER, /* after the next operation */
	LIAR_OLD,   /* and after it one of the last 32 once more */
	LIAR_LEAVE, /* cut the connection after it */
	/* Of the hello or verdict of that number: a byte at `where` + the value's second byte, or
	 * its length. */
	LIAR_HELLO,
	LIAR_HELLO_BYTES,
	LIAR_WHAT_COUNT,
};

/* Called before a job. `lies` live until the next call; those beyond LIAR_LIES_MAX are ignored. */
void liar_begin(const uint8_t *lies, size_t bytes);
/* Makes this process the liar. Without a call there is none. */
void liar_is(const struct wf_env *env);
/* Operations that the liar has posted. */
uint64_t liar_operations(void);
/* For LLVMFuzzerCustomMutator: change, add or remove one lie. Returns the bytes there are then. */
size_t liar_mutate(uint8_t *lies, size_t bytes, size_t bytes_max, unsigned seed);
