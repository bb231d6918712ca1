/* SPDX-License-Identifier: Apache-2.0 */
/* secret: the key that the members of a job share, from a file that only its user can read. The
 * file's bytes are the secret, all of them: a newline at the end counts. What is kept is a key
 * derived from them, in a page of its own that core dumps leave out. Thread: any; constant between
 * open and close. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/mac.h"
#include "base/status.h"

#define WF_SECRET_BYTES_MIN 32u /* of the file: below that, guessing is worth a try */
#define WF_SECRET_BYTES_MAX 4096u

struct wf_secret;

/**
 * Read a file of WF_SECRET_BYTES_MIN to WF_SECRET_BYTES_MAX bytes. It has to be regular, not a
 * link, owned by the user of this process or by root, and have mode 0400 or 0600.
 * @param path its name, which is not kept
 * @param out  the key; close it with wf_secret_close
 * @return WEFT_OK; WEFT_IO: it cannot be read; WEFT_INVALID: it is none that may hold a secret. The
 *         text has the name, the reason and the remedy, and never a byte of the contents.
 *         WEFT_NOMEM
 */
enum weft_status wf_secret_open(const char *path, struct wf_secret **out) WEFT_MUST_CHECK;
/* The same file as its bytes, for a program that hands them on: it wipes them itself. Fails as
 * wf_secret_open does. */
enum weft_status wf_secret_read(const char *path, uint8_t out[WF_SECRET_BYTES_MAX],
				size_t *bytes) WEFT_MUST_CHECK;
/* Wipes and releases it. Accepts NULL. */
void wf_secret_close(struct wf_secret *secret);

/* Derives a key for one purpose and one connection: the code of the parts under the secret. */
void wf_secret_derive(const struct wf_secret *secret, const struct wf_mac_part *parts,
		      unsigned part_count, uint8_t out[WF_MAC_BYTES]);
