/* SPDX-License-Identifier: Apache-2.0 */
/* digest: XXH3 over a sequence of fields. Thread: the caller's. */
#include "base/digest.h"

#include <string.h>

/* Inlined: the shared library does not promise the size of XXH3's state, and its own allocator is
 * not ours. */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/assert.h"

struct wf_digest {
	XXH3_state_t state; /* wants 64-byte alignment, which wf_zalloc gives */
	struct wf_env *env;
};
WF_STATIC_ASSERT(_Alignof(struct wf_digest) <= 64, "wf_zalloc aligns to 64");

enum weft_status
wf_digest_create(struct wf_env *env, struct wf_digest **out)
{
	struct wf_digest *digest = wf_zalloc(env, sizeof(*digest));
	if (digest == NULL) {
		return wf_fail(WEFT_NOMEM, "digest: %zu bytes", sizeof(*digest));
	}
	digest->env = env;
	wf_digest_reset(digest);
	*out = digest;
	return WEFT_OK;
}

void
wf_digest_destroy(struct wf_digest *digest)
{
	if (digest != NULL) {
		wf_free(digest->env, digest, sizeof(*digest));
	}
}

void
wf_digest_reset(struct wf_digest *digest)
{
	(void)XXH3_64bits_reset(&digest->state);
}

void
wf_digest_bytes(struct wf_digest *digest, const void *bytes, size_t count)
{
	WF_ASSERT(bytes != NULL || count == 0);
	if (count > 0) {
		(void)XXH3_64bits_update(&digest->state, bytes, count);
	}
}

void
wf_digest_u64(struct wf_digest *digest, uint64_t value)
{
	unsigned char bytes[8];
	for (unsigned i = 0; i < sizeof(bytes); i++) {
		bytes[i] = (unsigned char)(value >> (8 * i));
	}
	wf_digest_bytes(digest, bytes, sizeof(bytes));
}

void
wf_digest_f64(struct wf_digest *digest, double value)
{
	uint64_t bits = 0;
	WF_STATIC_ASSERT(sizeof(bits) == sizeof(value), "a double is 64 bits");
	memcpy(&bits, &value, sizeof(bits));
	wf_digest_u64(digest, bits);
}

void
wf_digest_string(struct wf_digest *digest, const char *text)
{
	size_t count = strlen(text);
	wf_digest_u64(digest, count);
	wf_digest_bytes(digest, text, count);
}

uint64_t
wf_digest_value(const struct wf_digest *digest)
{
	return XXH3_64bits_digest(&digest->state);
}

uint64_t
wf_digest_of(const void *bytes, size_t count)
{
	WF_ASSERT(bytes != NULL || count == 0);
	return XXH3_64bits(bytes, count);
}
