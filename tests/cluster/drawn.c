/* SPDX-License-Identifier: Apache-2.0 */
/* drawn: see drawn.h. Thread: one. */
#include "tests/cluster/drawn.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void
drawn_steps(struct wf_rng *rng, uint32_t trainers, uint32_t most, uint32_t idle_from,
	    struct drawn *out)
{
	for (uint32_t i = 0; i < DRAWN_PASSES * trainers; i++) {
		const uint32_t steps = 1 + (uint32_t)wf_rng_below(rng, most);
		const bool idle = wf_rng_below(rng, 8) == 0 && i / trainers >= idle_from;
		out->steps[i / trainers][i % trainers] = idle ? 0 : steps;
	}
}

void
drawn_gradients(const struct drawn *drawn, uint64_t seed, uint32_t trainer, uint32_t step,
		struct weft_tensor *const *tensor)
{
	struct wf_rng rng;
	wf_rng_init(&rng, seed, 1000 * (trainer + 1) + step);
	for (uint32_t t = 0; t < drawn->tensors; t++) {
		float *grad = weft_tensor_grad(tensor[t]);
		for (uint32_t i = 0; i < drawn->count[t]; i++) {
			grad[i] = (float)(wf_rng_f64(&rng) - 0.5);
		}
	}
}

uint64_t
drawn_add_bits(uint64_t digest, const float *value, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		uint32_t bits;
		memcpy(&bits, &value[i], sizeof(bits));
		digest = (digest ^ bits) * 0x100000001b3;
	}
	return digest;
}

uint64_t
drawn_digest(const struct drawn *drawn, uint32_t tensors, struct weft_tensor *const *tensor)
{
	uint64_t digest = DRAWN_DIGEST;
	for (uint32_t t = 0; t < tensors; t++) {
		digest = drawn_add_bits(digest, weft_tensor_param(tensor[t]), drawn->count[t]);
	}
	return digest;
}

/* One whose position is of an earlier pass has no data in this one. */
bool
drawn_find_place(const struct drawn *drawn, uint32_t trainer, const struct weft_session *session,
		 struct weft_resumed *resumed, struct drawn_place *out)
{
	*out = (struct drawn_place){0};
	if (!weft_session_resumed(session, resumed)) {
		return false;
	}
	if (resumed->position_bytes == sizeof(*out)) {
		memcpy(out, resumed->position, sizeof(*out));
	}
	if (out->pass < resumed->pass_count) {
		out->pass = (uint32_t)resumed->pass_count;
		out->step = drawn->steps[out->pass][trainer];
	}
	return true;
}

bool
drawn_compare(struct crew *crew, const uint64_t *digest, uint64_t expected)
{
	for (uint32_t t = 0; t < crew->trainers; t++) {
		if (digest[t] != expected) {
			(void)snprintf(crew->why, sizeof(crew->why),
				       "digest of trainer %u is %016" PRIx64 ", not %016" PRIx64, t,
				       digest[t], expected);
			return false;
		}
	}
	return true;
}
