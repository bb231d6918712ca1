/* SPDX-License-Identifier: Apache-2.0 */
/* saving_words: see saving_words.h. */
#include "trainer/program/saving_words.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MARK "words="

enum weft_status
wf_run_note_words(struct wf_run *job)
{
	uint64_t digest = 0;

	if (!job->kind->has_words) {
		return WEFT_OK;
	}
	const struct wf_dictionary *dictionary = job->data.source->words.dictionary;
	enum weft_status st = wf_source_digest_words(job->env, dictionary, &digest);
	if (st == WEFT_OK) {
		snprintf(job->saving.words, sizeof(job->saving.words),
			 MARK "%" PRIu32 ",%016" PRIx64, dictionary->vocabulary, digest);
	}
	return st;
}

void
wf_run_describe_words(const struct wf_run *job, struct wf_saved_about *about)
{
	char rest[sizeof(about->settings)];
	const int room = (int)(sizeof(rest) - sizeof(job->saving.words) - 1);

	if (job->saving.words[0] == '\0') {
		return;
	}
	memcpy(rest, about->settings, sizeof(rest));
	snprintf(about->settings, sizeof(about->settings), "%s%s%.*s", job->saving.words,
		 rest[0] != '\0' ? " " : "", room, rest);
}

/* The number of bytes that the words take of the settings; 0: there are none. */
static size_t
words_bytes(const struct wf_saved_about *about)
{
	return strncmp(about->settings, MARK, strlen(MARK)) == 0 ? strcspn(about->settings, " ")
								 : 0;
}

const char *
wf_run_settings_behind_words(const struct wf_saved_about *about)
{
	const char *rest = about->settings + words_bytes(about);

	return rest + strspn(rest, " ");
}

enum weft_status
wf_run_check_words(const struct wf_run *job, const struct wf_saved_about *past, const char *path)
{
	const char *own = job->saving.words;
	const size_t bytes = words_bytes(past);

	if (own[0] == '\0' || bytes == 0 ||
	    (strlen(own) == bytes && memcmp(own, past->settings, bytes) == 0)) {
		return WEFT_OK;
	}
	return wf_fail(WEFT_MISMATCH,
		       "%s: was saved with %.*s (their count and digest), and this run has %s: the "
		       "saved rows would get other words; give the dictionary of that run, or its "
		       "data",
		       path, (int)bytes, past->settings, own);
}
