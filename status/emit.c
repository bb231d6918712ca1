/* SPDX-License-Identifier: Apache-2.0 */
/* emit: see emit.h. */
#include "status/emit.h"

#include <inttypes.h>
#include <math.h>

#include "base/json.h"

static void
begin_value(struct wf_emit *emit, const char *key)
{
	if (emit->has_value) {
		(void)fputc(',', emit->out);
	}
	if (key != NULL) {
		wf_json_print_text(emit->out, key);
		(void)fputc(':', emit->out);
	}
	emit->has_value = true;
}

void
wf_emit_open(struct wf_emit *emit, const char *key, char mark)
{
	begin_value(emit, key);
	(void)fputc(mark, emit->out);
	emit->has_value = false;
}

void
wf_emit_close(struct wf_emit *emit, char mark)
{
	(void)fputc(mark, emit->out);
	emit->has_value = true;
}

void
wf_emit_text(struct wf_emit *emit, const char *key, const char *text)
{
	begin_value(emit, key);
	wf_json_print_text(emit->out, text);
}

void
wf_emit_words(struct wf_emit *emit, const char *key, const char *text)
{
	if (text[0] != '\0') {
		wf_emit_text(emit, key, text);
	} else {
		wf_emit_null(emit, key);
	}
}

void
wf_emit_u64(struct wf_emit *emit, const char *key, uint64_t value)
{
	begin_value(emit, key);
	(void)fprintf(emit->out, "%" PRIu64, value);
}

void
wf_emit_key(struct wf_emit *emit, const char *key, uint64_t value)
{
	begin_value(emit, key);
	(void)fprintf(emit->out, "\"%" PRIu64 "\"", value);
}

void
wf_emit_f64(struct wf_emit *emit, const char *key, double value)
{
	if (!isfinite(value)) {
		wf_emit_null(emit, key);
		return;
	}
	begin_value(emit, key);
	(void)fprintf(emit->out, "%.6g", value);
}

void
wf_emit_bool(struct wf_emit *emit, const char *key, bool value)
{
	begin_value(emit, key);
	(void)fputs(value ? "true" : "false", emit->out);
}

void
wf_emit_null(struct wf_emit *emit, const char *key)
{
	begin_value(emit, key);
	(void)fputs("null", emit->out);
}
