/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target of a whole pserver: an admitted trainer, which has its grants, sends arbitrary
 * messages. lying_job.h describes an input. */
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/lying_job.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct lying_end end;
	lying_job_run(data, bytes, LYING_TRAINER, &end);
	return 0;
}
