/* SPDX-License-Identifier: Apache-2.0 */
/* digest: 64-bit XXH3 (libxxhash) of a sequence of fields, to compare states and settings, not to
 * authenticate. Integers are hashed little-endian, strings with their length first. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/env.h"

struct wf_digest;

enum weft_status wf_digest_create(struct wf_env *env, struct wf_digest **out) WEFT_MUST_CHECK;
void wf_digest_destroy(struct wf_digest *digest); /* accepts NULL */
void wf_digest_reset(struct wf_digest *digest);
void wf_digest_bytes(struct wf_digest *digest, const void *bytes, size_t count);
void wf_digest_u64(struct wf_digest *digest, uint64_t value);
void wf_digest_f64(struct wf_digest *digest, double value);
void wf_digest_string(struct wf_digest *digest, const char *text);
/* May be called at any time; more may be added after. */
uint64_t wf_digest_value(const struct wf_digest *digest);
/* The digest of one array. */
uint64_t wf_digest_of(const void *bytes, size_t count);
