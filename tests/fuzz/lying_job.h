/* SPDX-License-Identifier: Apache-2.0 */
/* lying_job: a whole job in a simulated world, one process of which lies (liar.h): the real
 * pserver, the real library, every mode and service. Whatever is said, nobody crashes, no assertion
 * breaks, nothing is read or written outside what is granted, and everybody ends in a bounded time.
 *
 * An input is LYING_SCENE_BYTES that choose the job (struct scene, byte by byte), then lies.
 * Thread: one. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LYING_SCENE_BYTES 12u

/* Whose words are changed. */
enum lying_who {
	LYING_TRAINER, /* which: byte 10 of the scene */
	LYING_PSERVER,
};

#define LYING_TRAINERS 2u

/* How the job ended: statuses, and texts of those that are not WEFT_OK. */
struct lying_end {
	int pserver, trainer[LYING_TRAINERS];
	char pserver_text[512], trainer_text[LYING_TRAINERS][512];
};

/* Run one input. */
void lying_job_run(const uint8_t *data, size_t bytes, enum lying_who who, struct lying_end *out);
/* libFuzzer calls it, where it is linked in. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t bytes, size_t bytes_max, unsigned seed);
