/* SPDX-License-Identifier: Apache-2.0 */
/* zstd (RFC 8878): frames, one after the other, skippable ones among them. libzstd unpacks them,
 * and checks the checksums that there are. Thread: the input's owner. */
#include <stdio.h>

#include <zstd.h>
#include <zstd_errors.h>

#include "base/assert.h"
#include "trainer/readers/input_internal.h"

#define MAGIC_BYTES 4u
#define MAGIC 0xfd2fb528u
#define SKIPPABLE 0x184d2a50u /* with any last four bits */
/* A block of at most 128 KiB is, where one byte is repeated, stored in 4 bytes. */
#define RATIO_MAX 32768u

struct zstd {
	ZSTD_DCtx *context;
};

static bool
zstd_recognises(const uint8_t *head, size_t count)
{
	if (count < MAGIC_BYTES) {
		return false;
	}
	const uint32_t magic = (uint32_t)head[3] << 24 | (uint32_t)head[2] << 16 |
			       (uint32_t)head[1] << 8 | head[0];
	return magic == MAGIC || (magic & ~0xfu) == SKIPPABLE;
}

static enum weft_status
zstd_open(struct wf_input *input)
{
	struct zstd *zstd = input->state;

	zstd->context = ZSTD_createDCtx();
	if (zstd->context == NULL) {
		return wf_fail(WEFT_NOMEM, "%s: no memory to decompress with", input->path);
	}
	size_t code = ZSTD_DCtx_setParameter(zstd->context, ZSTD_d_windowLogMax,
					     WF_INPUT_ZSTD_WINDOW_LOG);
	WF_ASSERT(!ZSTD_isError(code));
	return WEFT_OK;
}

static void
zstd_close(struct wf_input *input)
{
	struct zstd *zstd = input->state;
	(void)ZSTD_freeDCtx(zstd->context); /* accepts NULL */
}

static enum weft_status
refuse_code(const struct wf_input *input, uint64_t offset, size_t code)
{
	char why[128];

	switch ((int)ZSTD_getErrorCode(code)) {
	case ZSTD_error_memory_allocation:
		return wf_fail(WEFT_NOMEM, "%s: no memory to decompress with", input->path);
	case ZSTD_error_frameParameter_windowTooLarge:
		snprintf(why, sizeof(why),
			 "a zstd frame needs a window of more than %u MiB; compress it with "
			 "--long=%u or less",
			 1u << (WF_INPUT_ZSTD_WINDOW_LOG - 20), WF_INPUT_ZSTD_WINDOW_LOG);
		break;
	default:
		snprintf(why, sizeof(why), "the zstd data are damaged (%.80s)",
			 ZSTD_getErrorName(code));
		break;
	}
	return wf_input_refuse(input, offset, why);
}

static enum weft_status
unpack_frame(struct wf_input *input, struct wf_input_room *room, bool *is_over)
{
	struct zstd *zstd = input->state;
	ZSTD_inBuffer in = {.src = input->chunk + input->at, .size = wf_input_have(input)};
	ZSTD_outBuffer out = {.dst = room->bytes, .size = room->count};

	size_t code = ZSTD_decompressStream(zstd->context, &out, &in);
	input->at += in.pos;
	room->used = out.pos;
	*is_over = code == 0;
	return ZSTD_isError(code) ? refuse_code(input, wf_input_offset(input), code) : WEFT_OK;
}

static const struct wf_input_frames frames = {
	.magic_bytes = MAGIC_BYTES,
	.unpack = unpack_frame,
};

const struct wf_input_ops wf_input_zstd_ops = {
	.name = "zstd",
	.recognises = zstd_recognises,
	.state_bytes = sizeof(struct zstd),
	.ratio_max = RATIO_MAX,
	.open = zstd_open,
	.read = wf_input_read_frames,
	.close = zstd_close,
	.frames = &frames,
};
