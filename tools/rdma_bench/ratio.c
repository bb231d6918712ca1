/* SPDX-License-Identifier: Apache-2.0 */
/* ratio: see ratio.h. */
#include "tools/rdma_bench/ratio.h"

#include <math.h>
#include <string.h>

#include "base/assert.h"
#include "tools/rdma_bench/median.h"

#define QUOTIENTS_MAX (WF_SAMPLES_MAX * WF_SAMPLES_MAX)

/* The number of orders of n and m values in which U is u, for each u: the coefficients of the
 * Gaussian binomial, the product over i from 1 to n of (1 - q^(m+i)) / (1 - q^i). Those of small u
 * depend on each other alone, and are exact. */
static void
count_orders(unsigned n, unsigned m, double *orders)
{
	const unsigned last = n * m;

	memset(orders, 0, (last + 1) * sizeof(*orders));
	orders[0] = 1;
	for (unsigned i = 1; i <= n; i++) {
		for (unsigned u = last; u >= m + i; u--) {
			orders[u] -= orders[u - m - i];
		}
		for (unsigned u = i; u <= last; u++) {
			orders[u] += orders[u - i];
		}
	}
}

/* How many quotients lie outside at each end, as many as the confidence allows; `*tail` is the
 * probability of one end. */
static unsigned
count_outside(unsigned n, unsigned m, double *tail)
{
	static double orders[QUOTIENTS_MAX + 1];
	double all = 1, below = 0;
	unsigned outside = 0;

	count_orders(n, m, orders);
	for (unsigned i = 1; i <= n; i++) {
		all *= (double)(m + i) / i;
	}
	*tail = orders[0] / all;
	while (2 * outside + 1 < n * m) {
		below += orders[outside] / all;
		if (below > (1 - WF_RATIO_CONFIDENCE) / 2) {
			break;
		}
		*tail = below;
		outside++;
	}
	return outside > 0 ? outside - 1 : 0;
}

void
wf_ratio_estimate(const double *a, unsigned a_count, const double *b, unsigned b_count,
		  struct wf_ratio *out)
{
	static double quotient[QUOTIENTS_MAX];
	const unsigned count = a_count * b_count;
	double tail;

	WF_ASSERT(a_count > 0 && a_count <= WF_SAMPLES_MAX);
	WF_ASSERT(b_count > 0 && b_count <= WF_SAMPLES_MAX);
	for (unsigned i = 0; i < count; i++) {
		quotient[i] = b[i % b_count] / a[i / b_count];
	}
	out->middle = wf_median(quotient, count); /* sorts them */
	const unsigned outside = count_outside(a_count, b_count, &tail);
	out->from = quotient[outside];
	out->to = quotient[count - 1 - outside];
	out->confidence = 1 - 2 * tail > 0 ? 1 - 2 * tail : 0;
}

void
wf_ratio_of_pairs(const double *ratio, unsigned count, struct wf_ratio *out)
{
	double sorted[WF_SAMPLES_MAX], below = 0, tail;
	/* That all of the pairs, all but one ... are above the median, each of them being so with
	 * probability 1/2. */
	double chance = ldexp(1, -(int)count);
	unsigned outside = 0;

	WF_ASSERT(count > 0 && count <= WF_SAMPLES_MAX);
	memcpy(sorted, ratio, count * sizeof(*ratio));
	out->middle = wf_median(sorted, count); /* sorts them */
	tail = chance;
	while (2 * outside + 1 < count) {
		below += chance;
		if (below > (1 - WF_RATIO_CONFIDENCE) / 2) {
			break;
		}
		tail = below;
		outside++;
		chance *= (double)(count + 1 - outside) / outside;
	}
	outside = outside > 0 ? outside - 1 : 0;
	out->from = sorted[outside];
	out->to = sorted[count - 1 - outside];
	out->confidence = 1 - 2 * tail > 0 ? 1 - 2 * tail : 0;
}
