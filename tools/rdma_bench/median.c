/* SPDX-License-Identifier: Apache-2.0 */
/* median: see median.h. */
#include "tools/rdma_bench/median.h"

#include <stdlib.h>
#include <string.h>

static int
by_value(const void *a, const void *b)
{
	double x, y;
	memcpy(&x, a, sizeof(x));
	memcpy(&y, b, sizeof(y));
	return (x > y) - (x < y);
}

double
wf_median(double *values, size_t count)
{
	qsort(values, count, sizeof(*values), by_value);
	return count % 2 == 1 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}
