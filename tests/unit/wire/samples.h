/* SPDX-License-Identifier: Apache-2.0 */
/* samples: the catalogue's messages as cmocka tests use them: encoded, decoded from memory of
 * exactly their size, and with a wrong field that must be named. Thread: the test's. */
#pragma once

#include "tests/unit/wire/catalogue.h"
#include "tests/unit/wire/refused.h"

/* A wrong value in the body of a sample, */
struct body_case {
	const char *name;
	struct patch patch;
};

/* and in its head: request_id, step, slice and offset are added to the sample's. */
struct head_case {
	const char *name;
	struct wf_head add;
	const char *text; /* the expected text of the refusal */
};

void sample_encode(const struct catalogue_entry *entry, struct wf_msg *out);
/* The sample of that name. */
const struct catalogue_entry *sample_encode_named(const char *name, struct wf_msg *out);
/* Decodes from a copy at an odd address, so that a sanitizer sees reads past its end. */
enum weft_status sample_decode(const struct catalogue_entry *entry, const struct wf_head *head,
			       const uint8_t *body, union any_message *out) WEFT_MUST_CHECK;
void assert_bodies_refused(const struct body_case *wrong, size_t count);
void assert_heads_refused(const struct head_case *wrong, size_t count);
