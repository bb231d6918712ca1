/* SPDX-License-Identifier: Apache-2.0 */
/* The names of the models that can be trained, apart from the models, for programs that do not
 * train. Thread: any. */
#include <string.h>

#include "base/assert.h"
#include "trainer/program/kind.h"

static const char *const names[] = {"linear", "mlp", "ngram", "ctr"};
static const char all[] = "linear, mlp, ngram, ctr";

enum weft_status
wf_kind_check_name(const char *name)
{
	if (name == NULL) {
		return wf_fail(WEFT_INVALID, "the model is missing; give one of: %s", all);
	}
	for (unsigned i = 0; i < WF_ARRAY_COUNT(names); i++) {
		if (strcmp(names[i], name) == 0) {
			return WEFT_OK;
		}
	}
	return wf_fail(WEFT_INVALID, "model %.60s: there is no such model; give one of: %s", name,
		       all);
}
