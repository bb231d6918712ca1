/* SPDX-License-Identifier: Apache-2.0 */
/* Normal equations A w = b with A = X^T X, X the training rows with a column of ones; A = L L^T
 * (Golub and Van Loan, "Matrix Computations", section 4.2). Thread: any. */
#include "trainer/models/least_squares.h"

#include <math.h>

#define PIVOT_MIN 1e-10 /* of a column's own sum of squares: below, it depends on the others */

struct system {
	unsigned n; /* features and the bias */
	double *a;  /* [n, n], lower half; then L */
	double *b;  /* [n]; then the weights */
};

static double
column(const struct wf_dataset *dataset, size_t row, unsigned idx)
{
	return idx == dataset->features ? 1.0 : (double)dataset->x[row * dataset->features + idx];
}

static void
accumulate(const struct wf_dataset *dataset, struct system *s)
{
	for (size_t row = 0; row < dataset->train_rows; row++) {
		for (unsigned i = 0; i < s->n; i++) {
			double xi = column(dataset, row, i);
			for (unsigned j = 0; j <= i; j++) {
				s->a[i * s->n + j] += xi * column(dataset, row, j);
			}
			s->b[i] += xi * (double)dataset->y[row];
		}
	}
}

static enum weft_status
factor(struct system *s)
{
	for (unsigned i = 0; i < s->n; i++) {
		double *row = s->a + i * s->n;
		double whole = row[i];
		for (unsigned j = 0; j < i; j++) {
			const double *other = s->a + j * s->n;
			for (unsigned k = 0; k < j; k++) {
				row[j] -= row[k] * other[k];
			}
			row[j] /= other[j];
		}
		for (unsigned k = 0; k < i; k++) {
			row[i] -= row[k] * row[k];
		}
		if (!(row[i] > PIVOT_MIN * whole)) {
			return wf_fail(WEFT_DATA,
				       "column %u of the training rows is zero or a linear "
				       "combination of the columns before it, so the least-squares "
				       "solution is not unique",
				       i + 1);
		}
		row[i] = sqrt(row[i]);
	}
	return WEFT_OK;
}

/* L z = b, then L^T w = z, both in b. */
static void
substitute(struct system *s)
{
	for (unsigned i = 0; i < s->n; i++) {
		for (unsigned k = 0; k < i; k++) {
			s->b[i] -= s->a[i * s->n + k] * s->b[k];
		}
		s->b[i] /= s->a[i * s->n + i];
	}
	for (unsigned i = s->n; i-- > 0;) {
		for (unsigned k = i + 1; k < s->n; k++) {
			s->b[i] -= s->a[k * s->n + i] * s->b[k];
		}
		s->b[i] /= s->a[i * s->n + i];
	}
}

static double
mean_squared_error(const struct wf_dataset *dataset, const struct system *s, size_t first,
		   size_t end)
{
	double sum = 0.0;
	for (size_t row = first; row < end; row++) {
		double error = -(double)dataset->y[row];
		for (unsigned i = 0; i < s->n; i++) {
			error += s->b[i] * column(dataset, row, i);
		}
		sum += error * error;
	}
	return sum / (double)(end - first);
}

enum weft_status
wf_least_squares_solve(struct wf_env *env, const struct wf_dataset *dataset,
		       struct wf_least_squares *out)
{
	struct system s = {.n = dataset->features + 1};
	const size_t bytes = ((size_t)s.n * s.n + s.n) * sizeof(double);

	s.a = wf_zalloc(env, bytes);
	if (s.a == NULL) {
		return wf_fail(WEFT_NOMEM, "least squares: %zu bytes", bytes);
	}
	s.b = s.a + (size_t)s.n * s.n;
	accumulate(dataset, &s);
	enum weft_status st = factor(&s);
	if (st == WEFT_OK) {
		substitute(&s);
		out->train = mean_squared_error(dataset, &s, 0, dataset->train_rows);
		out->test = mean_squared_error(dataset, &s, dataset->train_rows, dataset->rows);
	}
	wf_free(env, s.a, bytes);
	return st;
}
