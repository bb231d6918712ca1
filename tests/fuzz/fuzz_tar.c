/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target of the reader of tars of parameters. */
#include "tests/fuzz/fuzz_import.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	return fuzz_import(WF_IMPORT_TAR, data, bytes);
}
