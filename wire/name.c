/* SPDX-License-Identifier: Apache-2.0 */
/* name: see name.h. */
#include "wire/name.h"

#include <stdint.h>
#include <string.h>

#include "base/status.h"

enum weft_status
wf_name_check(const char *what, const char name[WF_TENSOR_NAME_BYTES])
{
	size_t length = strnlen(name, WF_TENSOR_NAME_BYTES);
	if (length == 0 || length == WF_TENSOR_NAME_BYTES) {
		return wf_fail(WEFT_INVALID, "%s: its name has %zu characters, must be 1 to %d",
			       what, length, WF_TENSOR_NAME_BYTES - 1);
	}
	for (size_t i = 0; i < length; i++) {
		uint8_t byte = (uint8_t)name[i];
		if (byte <= 0x20 || byte > 0x7e) {
			return wf_fail(WEFT_INVALID,
				       "%s: byte %zu of its name is 0x%02x, must be printable "
				       "ASCII and no space",
				       what, i, byte);
		}
	}
	return WEFT_OK;
}
