/* SPDX-License-Identifier: Apache-2.0 */
/* Codes of lists of files, and the first difference of two. Thread: any. */
#include "trainer/program/marks.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/digest.h"

#define DIGEST_CHARACTERS 10u
#define MARK_CHARACTERS 2u
#define CHARACTER_BITS 6u

static const char alphabet[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_";

static uint64_t
join(uint64_t a, uint64_t b)
{
	unsigned char both[2 * sizeof(uint64_t)];

	for (unsigned i = 0; i < sizeof(uint64_t); i++) {
		both[i] = (unsigned char)(a >> (8 * i));
		both[sizeof(uint64_t) + i] = (unsigned char)(b >> (8 * i));
	}
	return wf_digest_of(both, sizeof(both));
}

void
wf_marks_begin(struct wf_marks *marks, size_t file_count)
{
	*marks = (struct wf_marks){
		.group_files = (file_count + WF_MARKS_MAX - 1) / WF_MARKS_MAX,
	};
}

void
wf_marks_add(struct wf_marks *marks, size_t idx, const char *path, uint64_t bytes, uint64_t digest)
{
	const char *slash = marks->is_columns ? NULL : strrchr(path, '/');
	const size_t group = idx / marks->group_files;

	WF_ASSERT(group < WF_MARKS_MAX);
	struct wf_mark *mark = &marks->mark[group];
	if (group == marks->count) {
		marks->count++;
		mark->bytes = bytes;
		(void)snprintf(mark->name, sizeof(mark->name), "%s",
			       slash == NULL ? path : slash + 1);
	}
	mark->files++;
	mark->digest = join(mark->digest, digest);
	marks->digest = join(marks->digest, digest);
}

/* The last `count` characters of a number. */
static char *
put(char *out, uint64_t value, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		*out++ = alphabet[value >> (CHARACTER_BITS * i) & (sizeof(alphabet) - 2)];
	}
	return out;
}

void
wf_marks_code(const struct wf_marks *marks, char *out)
{
	char *at = put(out, marks->digest, DIGEST_CHARACTERS);

	at = put(at, marks->group_files, 1);
	for (unsigned i = 0; i < marks->count; i++) {
		at = put(at, marks->mark[i].digest, MARK_CHARACTERS);
	}
	*at = '\0';
}

static const char *
noun(const struct wf_marks *marks)
{
	return marks->is_columns ? "column" : "file";
}

/* The first of a group, behind `what`. */
static void
explain_first(const struct wf_marks *marks, const struct wf_mark *mark, const char *what, char *out,
	      size_t bytes)
{
	int used = snprintf(out, bytes, "the first %s here %sis %s", noun(marks), what, mark->name);

	if (!marks->is_columns && used >= 0 && (size_t)used < bytes) {
		(void)snprintf(out + used, bytes - (size_t)used, " of %" PRIu64 " bytes",
			       mark->bytes);
	}
}

static void
explain_group(const struct wf_marks *marks, const struct wf_mark *mark, char *out, size_t bytes)
{
	if (mark->files == 1) {
		explain_first(marks, mark, "that differs ", out, bytes);
	} else {
		(void)snprintf(out, bytes,
			       "the first %s here that differs is among the %zu from %s on",
			       noun(marks), mark->files, mark->name);
	}
}

void
wf_marks_explain(const struct wf_marks *marks, const char *other_code, char *out, size_t bytes)
{
	const size_t head = DIGEST_CHARACTERS + 1;
	const size_t other_length = strlen(other_code);
	char code[WF_MARKS_CODE_BYTES];

	wf_marks_code(marks, code);
	/* Groups of another size are not comparable. */
	if (other_length < head || code[head - 1] != other_code[head - 1]) {
		explain_first(marks, &marks->mark[0], "", out, bytes);
		return;
	}
	for (unsigned i = 0; i < marks->count; i++) {
		const size_t at = head + i * MARK_CHARACTERS;
		if (at + MARK_CHARACTERS > other_length ||
		    memcmp(code + at, other_code + at, MARK_CHARACTERS) != 0) {
			explain_group(marks, &marks->mark[i], out, bytes);
			return;
		}
	}
	(void)snprintf(out, bytes, "the %ss here are the same up to %s, the last one", noun(marks),
		       marks->mark[marks->count - 1].name);
}
