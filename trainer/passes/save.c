/* SPDX-License-Identifier: Apache-2.0 */
/* weft_session_save. Thread: the session's owner. */
#include <inttypes.h>
#include <stdio.h>

#include "sparse/client/session.h"
#include "trainer/passes/content.h"
#include "trainer/session/gate.h"

/* What a caller gets wrong on all trainers alike. */
static enum weft_status
check(const struct weft_session *session)
{
	enum weft_status st = wf_exchange_check_running(session);
	if (st == WEFT_OK) {
		st = wf_pass_check_mode(session, "save");
	}
	if (st == WEFT_OK && session->begun) {
		return wf_fail(WEFT_INVALID,
			       "save: call it after weft_pass_end, before the next step");
	}
	return st;
}

/* The samples of all trainers in this session. */
static enum weft_status
sum_samples(struct weft_session *session, uint64_t *out)
{
	const uint64_t own = session->past.samples;
	double halves[] = {(double)(own >> 32), (double)(own & UINT32_MAX)};

	enum weft_status st = weft_reduce(session, halves, 2);
	if (st == WEFT_OK) {
		*out = ((uint64_t)halves[0] << 32) + (uint64_t)halves[1];
	}
	return st;
}

/* Of all trainers, in all of the job. The lanes know it, whoever has left or joined; where trainers
 * have steps of their own, or push no tensor, it is what the sessions have, which is `sum`. */
static enum weft_status
find_samples(struct weft_session *session, uint64_t sum, uint64_t *out)
{
	enum weft_status st = weft_samples(session, out);
	if (st == WEFT_INVALID) {
		*out = session->past.old_samples + sum;
		st = WEFT_OK;
	}
	return st;
}

static uint64_t
pass_number(const struct weft_session *session)
{
	const struct wf_session_past *past = &session->past;
	const uint64_t first =
		past->is_loaded ? past->next_pass : session->core.opts.optimizer.first_pass;

	return first + (past->pass_count == 0 ? 0 : past->pass_count - 1);
}

/* Tables know the step of their rows only when they are asked. */
static enum weft_status
stamp_tables(const struct wf_pass_content *content)
{
	enum weft_status st = WEFT_OK;

	for (uint32_t i = 0; st == WEFT_OK && i < content->table_count; i++) {
		st = weft_table_step(content->table[i].source, &content->table[i].head.step);
	}
	return st;
}

static enum weft_status
write_content(struct weft_session *session, const char *dir, const struct wf_saved_about *about,
	      const struct wf_pass_content *content)
{
	const struct wf_saved_place place = {
		.env = session->core.end.env,
		.calls = wf_saved_posix(),
		.dir = dir,
	};
	const struct wf_saved_content all = {
		.tensor = content->tensor,
		.tensor_count = content->tensor_count,
		.table = content->table,
		.table_count = content->table_count,
	};
	struct wf_saved_folder *folder = NULL;

	enum weft_status st = wf_saved_folder_open(&place, &folder);
	if (st == WEFT_OK) {
		st = wf_saved_write_all(folder, about, &all);
	}
	wf_saved_folder_close(folder);
	return st;
}

/* Trainer 0. */
static enum weft_status
write_pass(struct weft_session *session, const char *dir, uint64_t sum)
{
	struct wf_pass_content content = {0};
	struct wf_saved_about about = {
		.pass = pass_number(session),
		.step = weft_steps(session),
	};

	snprintf(about.version, sizeof(about.version), "%s", weft_version());
	wf_saved_describe(&session->core.values, &about);
	enum weft_status st = wf_pass_check_first(session, dir, "save");
	if (st == WEFT_OK) {
		st = weft_pull_state(session);
	}
	if (st == WEFT_OK) {
		st = find_samples(session, sum, &about.samples);
	}
	if (st == WEFT_OK) {
		st = wf_pass_content_init(session, true, &content);
	}
	if (st == WEFT_OK) {
		st = stamp_tables(&content);
	}
	if (st == WEFT_OK) {
		st = write_content(session, dir, &about, &content);
	}
	wf_pass_content_fini(&content);
	return st;
}

/* Everybody learns how trainer 0 fared, which has the text. */
static enum weft_status
share(struct weft_session *session, enum weft_status own)
{
	const struct wf_error why = *wf_error_record();
	double status = (double)own;

	enum weft_status st = weft_reduce(session, &status, 1);
	if (st != WEFT_OK) {
		return st;
	}
	if (own != WEFT_OK) {
		*wf_error_record() = why;
		return own;
	}
	const enum weft_status theirs = (enum weft_status)status;
	return theirs == WEFT_OK ? WEFT_OK
				 : wf_fail(theirs,
					   "save: trainer 0 could not save the pass (%s); its own "
					   "message has the reason",
					   weft_status_name(theirs));
}

enum weft_status
weft_session_save(struct weft_session *session, const char *dir)
{
	WF_ENTER(session);
	uint64_t sum = 0;

	enum weft_status st = check(session);
	if (st == WEFT_OK) {
		st = sum_samples(session, &sum);
	}
	if (st != WEFT_OK) {
		return st;
	}
	if (session->core.opts.trainer_id == 0) {
		st = write_pass(session, dir, sum);
	}
	return share(session, st);
}
