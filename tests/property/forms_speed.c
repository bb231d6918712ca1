/* SPDX-License-Identifier: Apache-2.0 */
/* How fast the forms of the fused pass are beside each other: no test, to be run by hand for the
 * table in kernels/speed.md. Prints a line per optimizer, array bytes and number of gradients:
 * the median time of ref, avx2 and avx512 in ns an element, and the medians of the ratios of runs
 * that stood side by side; then the same for sum, exp and log. Forms take turns run by run, so that
 * what the machine does meanwhile meets them all. usage: forms_speed [SECONDS_PER_LINE [NAME]].
 * Thread: one. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/assert.h"
#include "base/rng.h"
#include "kernels/kernels.h"

#define GRADS 4
#define TURNS_MAX 2001
#define LARGEST (64u << 20)

enum { REF, AVX2, AVX512, FORM_COUNT };
static const char *const form_names[FORM_COUNT] = {"ref", "avx2", "avx512"};

/* The arrays of the largest case; smaller ones take their beginnings. */
struct arrays {
	float *param, *state[WF_STATE_MAX], *grad[GRADS];
};

static double ns[FORM_COUNT][TURNS_MAX]; /* a run, of each turn */

static double
now_ns(void)
{
	struct timespec now;
	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* Pages are written here, so that none is made while a run is timed. */
static float *
make_array(struct wf_rng *rng, size_t offset)
{
	size_t count = LARGEST / sizeof(float);
	char *room = aligned_alloc(2u << 20, LARGEST + (2u << 20));
	WF_ASSERT(room != NULL);
	/* Arrays begin at different places in a page, as slabs do. */
	float *array = (float *)(void *)(room + offset);
	for (size_t i = 0; i < count; i++) {
		array[i] = (float)(wf_rng_f64(rng) - 0.5);
	}
	return array;
}

static int
compare(const void *a, const void *b)
{
	const double *x = a;
	const double *y = b;
	return (*x > *y) - (*x < *y);
}

static double
median(double *values, size_t count)
{
	qsort(values, count, sizeof(*values), compare);
	return values[count / 2];
}

/* Median of over/under, turn by turn. Before median() sorts them. */
static double
ratio(unsigned over, unsigned under, size_t turns)
{
	static double each[TURNS_MAX];
	for (size_t i = 0; i < turns; i++) {
		each[i] = ns[over][i] / ns[under][i];
	}
	return median(each, turns);
}

static struct wf_apply
make_apply(const struct arrays *arrays, size_t bytes, unsigned grads)
{
	return (struct wf_apply){
		.param = arrays->param,
		.state = {arrays->state[0], arrays->state[1]},
		.grad = (const float *const *)arrays->grad,
		.grad_count = grads,
		.count = bytes / sizeof(float),
		.divisor = 32.0f,
		.rate = 1e-5f,
		.plain_rate = 1e-5f,
		.decay = 1e-4f,
		.momentum = 0.9f,
		.beta1 = 0.9f,
		.beta2 = 0.999f,
		.epsilon = 1e-6f,
		.rho = 0.95f,
		.square_share = 0.05f,
		.torch.rest1 = 0.1f,
		.torch.rest2 = 0.001f,
		.torch.root_share = 0.5f,
	};
}

/* What can be timed: the optimizers by their numbers, then these. */
enum { SUM = WF_OPTIMIZER_COUNT, MEAN, EXP, LOG, WORK_COUNT };

static const char *
work_name(unsigned work)
{
	static const char *const others[] = {"sum", "mean", "exp", "log"};
	return work < SUM ? wf_optimizer_name((enum wf_optimizer)work) : others[work - SUM];
}

static void
do_work(const struct wf_kernels *kernels, unsigned work, const struct wf_apply *apply)
{
	switch (work) {
	case SUM:
		kernels->sum(apply->param, apply->grad, apply->grad_count, apply->count);
		break;
	case MEAN:
		kernels->mean(apply->param, apply->grad, apply->grad_count, apply->divisor,
			      apply->count);
		break;
	case EXP:
		kernels->exp_f32(apply->param, apply->grad[0], apply->count);
		break;
	case LOG:
		kernels->log_f32(apply->param, apply->grad[0], apply->count);
		break;
	default:
		(void)kernels->apply[work](apply);
	}
}

/* Each form in turn, in another order each time, until `limit_ns` is over. Returns the turns. */
static size_t
take_turns(const struct wf_apply *apply, unsigned work, double limit_ns)
{
	double begun = now_ns();
	size_t turn = 0;

	while (turn < TURNS_MAX && (turn < 5 || now_ns() - begun < limit_ns)) {
		for (unsigned i = 0; i < FORM_COUNT; i++) {
			unsigned form = (unsigned)(turn + i) % FORM_COUNT;
			const struct wf_kernels *kernels = wf_kernels_by_name(form_names[form]);
			double from = now_ns();
			do_work(kernels, work, apply);
			ns[form][turn] = now_ns() - from;
		}
		turn++;
	}
	return turn;
}

static void
measure(const struct arrays *arrays, unsigned work, size_t bytes, double limit_ns)
{
	unsigned most = work == EXP || work == LOG ? 1 : GRADS;

	for (unsigned grads = 1; grads <= most; grads *= 2) {
		struct wf_apply apply = make_apply(arrays, bytes, grads);
		size_t turns = take_turns(&apply, work, limit_ns);
		double ref_by_avx2 = ratio(REF, AVX2, turns);
		double avx2_by_avx512 = ratio(AVX2, AVX512, turns);
		printf("%-8s %5zu KiB, inputs %u:", work_name(work), bytes >> 10, grads);
		for (unsigned form = 0; form < FORM_COUNT; form++) {
			printf("  %s %.4f", form_names[form],
			       median(ns[form], turns) / (double)apply.count);
		}
		printf("  ref/avx2 %.2f  avx2/avx512 %.2f  turns %zu\n", ref_by_avx2,
		       avx2_by_avx512, turns);
		(void)fflush(stdout);
	}
}

int
main(int argc, char **argv)
{
	const size_t bytes[] = {64u << 10, 1u << 20, LARGEST};
	double seconds = argc > 1 ? strtod(argv[1], NULL) : 1.0;
	struct arrays arrays;
	struct wf_rng rng;

	for (unsigned form = 0; form < FORM_COUNT; form++) {
		if (wf_kernels_by_name(form_names[form]) == NULL) {
			fprintf(stderr, "form %s is not offered here\n", form_names[form]);
			return EXIT_FAILURE;
		}
	}
	wf_rng_init(&rng, 1, 0);
	arrays.param = make_array(&rng, 0);
	for (size_t i = 0; i < WF_STATE_MAX; i++) {
		arrays.state[i] = make_array(&rng, 64 * (3 * i + 5));
		memset(arrays.state[i], 0, LARGEST);
	}
	for (size_t i = 0; i < GRADS; i++) {
		arrays.grad[i] = make_array(&rng, 64 * (7 * i + 13));
	}
	/* Log, which writes NaN, comes last. */
	for (unsigned work = 0; work < WORK_COUNT; work++) {
		if (argc > 2 && strcmp(argv[2], work_name(work)) != 0) {
			continue;
		}
		for (size_t size = 0; size < WF_ARRAY_COUNT(bytes); size++) {
			measure(&arrays, work, bytes[size], seconds * 1e9);
		}
	}
	return EXIT_SUCCESS;
}
