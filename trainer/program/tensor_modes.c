/* SPDX-License-Identifier: Apache-2.0 */
/* tensor_modes: see tensor_modes.h. The option's text is parsed again each time: it is short, and
 * used only while a job begins. */
#include "trainer/program/tensor_modes.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "trainer/models/model.h"

#define PATTERN_BYTES 128

/* One "PATTERN=MODE". */
struct entry {
	char pattern[PATTERN_BYTES];
	enum weft_tensor_mode mode; /* WEFT_TENSOR_AS_SESSION: there is no such mode */
	int bytes;                  /* of its text */
};

static const char *
text_of(const struct wf_train_opts *opts)
{
	return opts->tensor_modes == NULL ? "" : opts->tensor_modes;
}

static enum weft_tensor_mode
mode_of(const char *word, size_t bytes)
{
	static const struct {
		const char *word;
		enum weft_tensor_mode mode;
	} mode[] = {{"sync", WEFT_TENSOR_SYNC},
		    {"async", WEFT_TENSOR_ASYNC},
		    {"bounded", WEFT_TENSOR_BOUNDED}};

	for (size_t i = 0; i < sizeof(mode) / sizeof(mode[0]); i++) {
		if (strlen(mode[i].word) == bytes && memcmp(word, mode[i].word, bytes) == 0) {
			return mode[i].mode;
		}
	}
	return WEFT_TENSOR_AS_SESSION;
}

/* The entry at the beginning of `*text`, which advances. false: none is left. */
static bool
next(const char **text, struct entry *out)
{
	const char *at = *text;
	size_t bytes = strcspn(at, ",");

	*out = (struct entry){.bytes = (int)bytes};
	if (at[0] == '\0') {
		return false;
	}
	*text = at + bytes + (at[bytes] == ',' ? 1 : 0);
	const char *sign = memchr(at, '=', bytes);
	if (sign != NULL && sign > at && sign - at < PATTERN_BYTES) {
		memcpy(out->pattern, at, (size_t)(sign - at));
		out->mode = mode_of(sign + 1, (size_t)(at + bytes - sign - 1));
	}
	return true;
}

enum weft_status
wf_tensor_modes_check(const struct wf_train_opts *opts)
{
	struct entry entry;

	for (const char *at = text_of(opts), *text = at; next(&at, &entry); text = at) {
		if (entry.mode == WEFT_TENSOR_AS_SESSION) {
			return wf_fail(WEFT_INVALID,
				       "tensor_modes: \"%.*s\": must be PATTERN=MODE, where MODE "
				       "is sync, async or bounded",
				       entry.bytes, text);
		}
	}
	return WEFT_OK;
}

enum weft_status
wf_tensor_modes_fit(const struct wf_train_opts *opts, const struct wf_model *model)
{
	struct entry entry;

	for (const char *at = text_of(opts); next(&at, &entry);) {
		bool fits = false;
		for (unsigned t = 0; t < model->tensor_count && !fits; t++) {
			fits = fnmatch(entry.pattern, model->tensor[t].name, 0) == 0;
		}
		if (!fits) {
			return wf_fail(WEFT_INVALID,
				       "tensor_modes: %s matches no tensor; the first of %u is %s",
				       entry.pattern, model->tensor_count, model->tensor[0].name);
		}
	}
	return WEFT_OK;
}

bool
wf_tensor_modes_given(const struct wf_train_opts *opts)
{
	return text_of(opts)[0] != '\0';
}

bool
wf_tensor_modes_bound(const struct wf_train_opts *opts)
{
	struct entry entry;

	for (const char *at = text_of(opts); next(&at, &entry);) {
		if (entry.mode == WEFT_TENSOR_BOUNDED) {
			return true;
		}
	}
	return false;
}

void
wf_tensor_modes_set(const struct wf_train_opts *opts, struct weft_tensor_opts *tensor)
{
	struct entry entry;

	for (const char *at = text_of(opts); next(&at, &entry);) {
		if (fnmatch(entry.pattern, tensor->name, 0) == 0) {
			tensor->mode = entry.mode;
			break;
		}
	}
	if (tensor->mode == WEFT_TENSOR_ASYNC || tensor->mode == WEFT_TENSOR_BOUNDED) {
		tensor->discard_ratio = opts->async_lagged_grad_discard_ratio;
	}
	if (tensor->mode == WEFT_TENSOR_BOUNDED) {
		tensor->staleness = (uint32_t)opts->staleness;
	}
}
