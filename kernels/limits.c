/* SPDX-License-Identifier: Apache-2.0 */
/* limits: see limits.h. Thread: any. */
#include "kernels/limits.h"

#include <float.h>

static const double least_f32 = (double)FLT_MIN; /* the least normal number */
static const double most_f32 = (double)FLT_MAX;
static const double before_one = 1.0 - (double)FLT_EPSILON / 2.0; /* the f32 before 1 */

enum weft_status
wf_check_positive(const char *field, double value)
{
	if (value >= least_f32 && value <= most_f32) {
		return WEFT_OK;
	}
	return wf_fail(WEFT_INVALID, "%s %g: give a number from %.9g to %.9g", field, value,
		       least_f32, most_f32);
}

enum weft_status
wf_check_not_negative(const char *field, double value)
{
	if (value == 0.0 || (value >= least_f32 && value <= most_f32)) {
		return WEFT_OK;
	}
	return wf_fail(WEFT_INVALID, "%s %g: give 0, or a number from %.9g to %.9g", field, value,
		       least_f32, most_f32);
}

enum weft_status
wf_check_below_one(const char *field, double value)
{
	if (value >= 0.0 && value <= before_one) {
		return WEFT_OK;
	}
	return wf_fail(WEFT_INVALID, "%s %.9g: give a number from 0 to %.9g", field, value,
		       before_one);
}
