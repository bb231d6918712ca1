/* SPDX-License-Identifier: Apache-2.0 */
/* settings: see the header. Thread: any; not on the data path. */
#include "wire/settings.h"

#include "wire/shape.h"

void
wf_settings_encode(enum weft_settings_kind kind, const void *values, uint8_t *out)
{
	unsigned count = 0;
	const struct wf_option *rows = wf_settings_rows(kind, &count);
	for (unsigned i = 0; i < count; i++) {
		const struct wf_option *row = &rows[i];
		uint64_t number = row->wire.bytes > 0 ? wf_option_number(row, values) : 0;
		if (row->type == WF_OPTION_BOOL) {
			number = number != 0;
		}
		for (unsigned byte = 0; byte < row->wire.bytes; byte++) {
			out[row->wire.at + byte] = (uint8_t)(number >> (8 * byte));
		}
	}
}

enum weft_status
wf_settings_decode(enum weft_settings_kind kind, const char *message, const uint8_t *in,
		   void *values)
{
	unsigned count = 0;
	const struct wf_option *rows = wf_settings_rows(kind, &count);
	for (unsigned i = 0; i < count; i++) {
		const struct wf_option *row = &rows[i];
		uint64_t number = 0;
		for (unsigned byte = 0; byte < row->wire.bytes; byte++) {
			number |= (uint64_t)in[row->wire.at + byte] << (8 * byte);
		}
		if (row->type == WF_OPTION_BOOL && number > 1) {
			return wf_refuse(message, row->name, number, "0 or 1");
		}
		if (row->wire.bytes > 0) {
			wf_option_set_number(row, number, values);
		}
	}
	return WEFT_OK;
}
