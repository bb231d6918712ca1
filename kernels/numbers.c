/* SPDX-License-Identifier: Apache-2.0 */
/* numbers: their names, limits and places. Thread: any. */
#include "kernels/numbers.h"

#include <string.h>

#include "base/assert.h"
#include "kernels/limits.h"

#define UPDATES_MAX 0x1p53 /* whole numbers up to here are exact */

#define KIND(name) (1u << WF_##name)
#define ADAMS (KIND(ADAM) | KIND(ADAMW) | KIND(TORCH_ADAM) | KIND(TORCH_ADAMW) | KIND(ADAMAX))
#define RHOS (KIND(DECAYED_ADAGRAD) | KIND(RMSPROP) | KIND(ADADELTA))
#define MOMENTA (KIND(MOMENTUM) | KIND(TORCH_MOMENTUM) | KIND(TORCH_SGD) | KIND(NESTEROV))
#define ALL UINT32_MAX

static const struct {
	const char *name;
	uint32_t kinds; /* bits 1 << enum wf_optimizer: the methods that have it */
} known[WF_NUMBER_COUNT] = {
	[WF_NUMBER_LEARNING_RATE] = {"learning_rate", ALL},
	[WF_NUMBER_MOMENTUM] = {"momentum", MOMENTA},
	[WF_NUMBER_DAMPENING] = {"dampening", KIND(TORCH_SGD)},
	[WF_NUMBER_NESTEROV] = {"nesterov", KIND(TORCH_SGD)},
	[WF_NUMBER_BETA1] = {"beta1", ADAMS},
	[WF_NUMBER_BETA2] = {"beta2", ADAMS},
	[WF_NUMBER_RHO] = {"rho", RHOS},
	[WF_NUMBER_EPSILON] = {"epsilon", ADAMS | RHOS | KIND(ADAGRAD)},
	[WF_NUMBER_DECAY] = {"decay", ALL},
	[WF_NUMBER_CLIP] = {"clip", ALL},
	[WF_NUMBER_L1] = {"l1", ALL},
	[WF_NUMBER_UPDATES] = {"updates", ALL},
	[WF_NUMBER_ASSIGNED] = {"the assigned array", ALL},
};

const char *
wf_number_name(enum wf_number number)
{
	WF_ASSERT((unsigned)number < WF_NUMBER_COUNT);
	return known[number].name;
}

enum weft_status
wf_number_parse(const char *name, enum wf_number *out)
{
	for (unsigned i = 0; name != NULL && i < WF_NUMBER_ASSIGNED; i++) {
		if (strcmp(name, known[i].name) == 0) {
			*out = (enum wf_number)i;
			return WEFT_OK;
		}
	}
	return wf_fail(
		WEFT_INVALID,
		"\"%.32s\" is no number of an optimizer: give learning_rate, momentum, "
		"dampening, nesterov, beta1, beta2, rho, epsilon, decay, clip, l1 or updates",
		name == NULL ? "" : name);
}

static enum weft_status
check_whole(const char *name, double value, double limit)
{
	if (value >= 0 && value < limit && value == (double)(uint64_t)value) {
		return WEFT_OK;
	}
	return wf_fail(WEFT_INVALID, "%s %.9g: must be a whole number from 0 to below %.17g", name,
		       value, limit);
}

enum weft_status
wf_number_check(const struct wf_optimizer_opts *opts, enum wf_number number, double value)
{
	WF_ASSERT((unsigned)number < WF_NUMBER_COUNT);
	const char *name = known[number].name;
	if ((known[number].kinds >> opts->method.kind & 1) == 0) {
		return wf_fail(WEFT_INVALID, "%s %.9g: the optimizer %s has no %s", name, value,
			       wf_optimizer_name(opts->method.kind), name);
	}
	switch (number) {
	case WF_NUMBER_LEARNING_RATE:
	case WF_NUMBER_DAMPENING:
	case WF_NUMBER_DECAY:
	case WF_NUMBER_CLIP:
	case WF_NUMBER_L1:
		return wf_check_not_negative(name, value);
	case WF_NUMBER_MOMENTUM:
	case WF_NUMBER_BETA1:
	case WF_NUMBER_BETA2:
	case WF_NUMBER_RHO:
		return wf_check_below_one(name, value);
	case WF_NUMBER_EPSILON:
		return wf_check_positive(name, value);
	case WF_NUMBER_NESTEROV:
		return check_whole(name, value, 2);
	case WF_NUMBER_UPDATES:
		return check_whole(name, value, UPDATES_MAX);
	case WF_NUMBER_ASSIGNED:
		return check_whole(name, value, 1 + wf_optimizer_state_count(opts->method.kind));
	case WF_NUMBER_COUNT:
		break;
	}
	return WEFT_OK;
}

uint64_t
wf_numbers_updates(const struct wf_numbers *numbers, uint64_t step)
{
	if (!wf_numbers_have(numbers, WF_NUMBER_UPDATES)) {
		return step;
	}
	return (uint64_t)numbers->value[WF_NUMBER_UPDATES] + (step - numbers->updates_step) + 1;
}

void
wf_numbers_set(struct wf_numbers *numbers, enum wf_number number, double value, uint64_t step)
{
	if (number == WF_NUMBER_ASSIGNED) { /* the step is none of the optimizer's */
		const uint64_t before = wf_numbers_updates(numbers, step) - 1;
		wf_numbers_set(numbers, WF_NUMBER_UPDATES, (double)before, step + 1);
		numbers->assigned_step = step;
		numbers->value[number] = value;
		return;
	}
	if (number == WF_NUMBER_UPDATES) {
		numbers->updates_step = step;
	}
	numbers->value[number] = value;
	numbers->given |= 1u << number;
}

struct wf_optimizer_opts
wf_numbers_apply(const struct wf_numbers *numbers, const struct wf_optimizer_opts *opts)
{
	struct wf_optimizer_opts out = *opts;
	double *const place[WF_NUMBER_COUNT] = {
		[WF_NUMBER_LEARNING_RATE] = &out.set.learning_rate,
		[WF_NUMBER_MOMENTUM] = &out.set.momentum,
		[WF_NUMBER_DAMPENING] = &out.dampening,
		[WF_NUMBER_BETA1] = &out.set.beta1,
		[WF_NUMBER_BETA2] = &out.set.beta2,
		[WF_NUMBER_RHO] = &out.set.rho,
		[WF_NUMBER_EPSILON] = &out.set.epsilon,
		[WF_NUMBER_DECAY] = &out.set.decay,
		[WF_NUMBER_CLIP] = &out.set.clip,
		[WF_NUMBER_L1] = &out.set.l1,
	};
	for (unsigned i = 0; i < WF_NUMBER_COUNT; i++) {
		if (place[i] != NULL && wf_numbers_have(numbers, (enum wf_number)i)) {
			*place[i] = numbers->value[i];
		}
	}
	out.is_nesterov = numbers->value[WF_NUMBER_NESTEROV] != 0;
	return out;
}
