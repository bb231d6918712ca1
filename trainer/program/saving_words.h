/* SPDX-License-Identifier: Apache-2.0 */
/* saving_words: the words behind a saved model's numbers. A table's row N means what word N does,
 * so a save has the count of the words and a digest of them in their order, first in its settings,
 * and a run with other words does not go on from it. Thread: the run's. */
#pragma once

#include "saved/saved.h"
#include "trainer/program/job.h"

/* Notes the words of this run, which has its data; nothing for a model without. WEFT_NOMEM. */
enum weft_status wf_run_note_words(struct wf_run *job) WEFT_MUST_CHECK;
/* Writes them in front of the settings. */
void wf_run_describe_words(const struct wf_run *job, struct wf_saved_about *about);
/* Checks that the save at `path` has the words of this run; one that says nothing of them, as older
 * versions of weft wrote it, is good. WEFT_MISMATCH: both, and the remedy. */
enum weft_status wf_run_check_words(const struct wf_run *job, const struct wf_saved_about *past,
				    const char *path) WEFT_MUST_CHECK;
/* The settings behind the words. */
const char *wf_run_settings_behind_words(const struct wf_saved_about *about);
