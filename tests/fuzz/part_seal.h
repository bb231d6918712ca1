/* SPDX-License-Identifier: Apache-2.0 */
/* part_seal: a part of a snapshot that has good checksums, whatever is in it. Thread: any. */
#pragma once

#include "base/crc32c.h"
#include "saved/part_layout.h"
#include "wire/little.h"

/* Sets the checksums, which chance does not find. `bytes`: WF_PART_HEAD_BYTES or more. */
static inline void
part_seal(uint8_t *at, size_t bytes)
{
	const uint32_t head = wf_crc32c(0, at, WF_PART_HEAD_CRC_AT);
	size_t done = WF_PART_HEAD_BYTES;

	wf_store_u32(at + WF_PART_HEAD_CRC_AT, wf_saved_crc_stored(head));
	while (bytes - done >= WF_PART_BLOCK_HEAD_BYTES) {
		const uint64_t payload = wf_load_u64(at + done + 32);
		uint32_t crc = wf_crc32c(head, at + done, WF_PART_BLOCK_CRC_AT);
		wf_store_u32(at + done + WF_PART_BLOCK_CRC_AT, wf_saved_crc_stored(crc));
		done += WF_PART_BLOCK_HEAD_BYTES;
		if (bytes - done < WF_PART_CRC_BYTES ||
		    payload > bytes - done - WF_PART_CRC_BYTES) {
			return;
		}
		crc = wf_crc32c(crc, at + done, (size_t)payload);
		done += (size_t)payload;
		wf_store_u32(at + done, wf_saved_crc_stored(crc));
		done += WF_PART_CRC_BYTES;
	}
}
