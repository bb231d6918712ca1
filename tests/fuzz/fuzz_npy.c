/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target of the reader of npy files, which is that of the members of npz files, without the
 * zip around them that chance does not make. */
#include "tests/fuzz/fuzz_import.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	return fuzz_import(WF_IMPORT_NPY, data, bytes);
}
