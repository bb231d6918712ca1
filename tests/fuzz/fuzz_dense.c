/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target of the decoders of JOB, STEP, PULL, NACK, INIT, NORM, ANNOUNCE, ALLOW, REPORT,
 * REPORTED, CHANGE and POSITION. */
#include "tests/fuzz/fuzz_message.h"
#include "tests/fuzz/fuzz_target.h"
#include "wire/head.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	fuzz_message(WF_SERVICE_DENSE, data, bytes);
	return 0;
}
