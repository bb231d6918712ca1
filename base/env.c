/* SPDX-License-Identifier: Apache-2.0 */
/* env: the parts that all envs share. Thread: any that its ops allow. */
#include "base/env.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"

#define LOG_LINE_BYTES 1024

void *
wf_zalloc_array(struct wf_env *env, size_t count, size_t item_bytes)
{
	size_t bytes = 0;
	if (__builtin_mul_overflow(count, item_bytes, &bytes)) {
		return NULL;
	}
	return wf_zalloc(env, bytes);
}

void
wf_slab_release(struct wf_env *env, struct wf_slab *slab, bool keep)
{
	if (slab->base != NULL && keep && env->ops->slab_keep != NULL) {
		env->ops->slab_keep(env, slab);
	} else if (slab->base != NULL) {
		env->ops->slab_close(env, slab);
	}
	*slab = (struct wf_slab){0};
}

void
wf_log(struct wf_env *env, enum weft_log_level level, const char *format, ...)
{
	char line[LOG_LINE_BYTES];
	va_list args;
	va_start(args, format);
	(void)vsnprintf(line, sizeof(line), format, args);
	va_end(args);

	/* Quoted text of a peer or user must not form log lines of its own, or control a terminal.
	 */
	for (char *at = line; *at != '\0'; at++) {
		if ((unsigned char)*at < 0x20 || *at == 0x7f) {
			*at = ' ';
		}
	}
	env->ops->log(env, level, line);
}

void
wf_log_lines(struct wf_env *env, enum weft_log_level level, const char *before, const char *text)
{
	while (*text != '\0') {
		int bytes = (int)strcspn(text, "\n");
		wf_log(env, level, "%s%.*s", before, bytes, text);
		text += bytes;
		text += *text == '\n' ? 1 : 0;
	}
}

bool
wf_log_limit_pass(struct wf_log_limit *limit, uint64_t now_ns, uint64_t period_ns)
{
	if (now_ns >= limit->end_ns) {
		limit->end_ns = period_ns > WF_NEVER - now_ns ? WF_NEVER : now_ns + period_ns;
		limit->said = 0;
	}
	bool pass = limit->said < (limit->most > 0 ? limit->most : 1);
	limit->said += pass ? 1 : 0;
	limit->unsaid += pass ? 0 : 1;
	return pass;
}

uint64_t
wf_log_limit_unsaid(struct wf_log_limit *limit, uint64_t now_ns)
{
	if (now_ns < limit->end_ns) {
		return 0;
	}
	uint64_t unsaid = limit->unsaid;
	limit->unsaid = 0;
	return unsaid;
}
