/* SPDX-License-Identifier: Apache-2.0 */
/* corpus: the numbers of the words of a set of text whose files are dealt out to trainers. They
 * follow from the training words of all of them, so each trainer looks through all files, and all
 * come to the same numbers. Thread: the caller's. */
#pragma once

#include "trainer/readers/dictionary.h"
#include "trainer/readers/files.h"

struct wf_corpus_opts {
	const struct wf_files *files; /* of all trainers */
	const size_t *words;          /* [files->count] of each; to count, not to measure */
	uint32_t trainers;            /* who share them as wf_files_owners says */
	size_t window_bytes;          /* how much is read at once */
	/* As of wf_source_opts. */
	uint64_t vocabulary;
	bool is_whole;
};

/**
 * Reads all files for how many words each of them has, which says where the training words of each
 * trainer end.
 * @param words [files->count]
 * @return WEFT_OK; WEFT_DATA: file, and the line and byte where it is no text; WEFT_IO; WEFT_NOMEM
 */
enum weft_status wf_corpus_measure(struct wf_env *env, const struct wf_corpus_opts *opts,
				   size_t *words) WEFT_MUST_CHECK;
/* Reads all files for the training words. `out` ends with wf_dictionary_destroy. Status as of
 * wf_corpus_measure. */
enum weft_status wf_corpus_count(struct wf_env *env, const struct wf_corpus_opts *opts,
				 struct wf_dictionary **out) WEFT_MUST_CHECK;
