/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target of the reader of safetensors files. */
#include "tests/fuzz/fuzz_import.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	return fuzz_import(WF_IMPORT_SAFETENSORS, data, bytes);
}
