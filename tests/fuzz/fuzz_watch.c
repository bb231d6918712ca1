/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target of the decoders of the watch service: ASK, RECORD and END. */
#include "tests/fuzz/fuzz_message.h"
#include "tests/fuzz/fuzz_target.h"
#include "wire/head.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	fuzz_message(WF_SERVICE_WATCH, data, bytes);
	return 0;
}
