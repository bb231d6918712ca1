/* SPDX-License-Identifier: Apache-2.0 */
/* measure: the quality of a trained model with tables: neighbours of words, or the area under the
 * curve, computed from its rows while they can be pulled. Thread: the run's. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "trainer/models/auc.h"
#include "trainer/program/job.h"

#define LINE_BYTES 256
#define NEAREST 5u /* words named beside each */
#define NEAREST_DEFAULT "whale,ship,captain,sea,black,he"
#define AUC_ROWS_MAX (4u << 20) /* 32 MiB */
#define PROJ 0u                 /* ngram's only table */

/* The number of a word; UINT32_MAX: it is not in the vocabulary. */
static uint32_t
number_of(const struct wf_dictionary *words, const char *spelling, size_t bytes)
{
	for (uint32_t i = 0; i < words->vocabulary; i++) {
		if (strncmp(words->word[i], spelling, bytes) == 0 &&
		    words->word[i][bytes] == '\0') {
			return i;
		}
	}
	return UINT32_MAX;
}

/* All words' rows, one after the other. */
static enum weft_status
fetch_rows(struct wf_run *job, const struct wf_view *view, float *out)
{
	const uint32_t most = wf_run_lookup_max(job);
	const uint32_t width = job->model.table[PROJ].width;
	const uint32_t vocabulary = job->data.source->words.dictionary->vocabulary;
	uint64_t key[WF_COMPUTE_TEST_ROWS];
	const uint32_t step = most < WF_COMPUTE_TEST_ROWS ? most : WF_COMPUTE_TEST_ROWS;

	for (uint32_t first = 0; first < vocabulary; first += step) {
		const uint32_t left = vocabulary - first;
		const uint32_t count = left < step ? left : step;
		for (uint32_t i = 0; i < count; i++) {
			key[i] = first + i;
		}
		enum weft_status st =
			view->rows(view->arg, PROJ, key, count, out + (size_t)first * width);
		if (st != WEFT_OK) {
			return st;
		}
	}
	return WEFT_OK;
}

/* The cosine of the angle between two rows. */
static double
cosine(const float *a, const float *b, uint32_t width)
{
	double ab = 0.0;
	double aa = 0.0;
	double bb = 0.0;

	for (uint32_t i = 0; i < width; i++) {
		ab += (double)a[i] * (double)b[i];
		aa += (double)a[i] * (double)a[i];
		bb += (double)b[i] * (double)b[i];
	}
	return aa > 0.0 && bb > 0.0 ? ab / sqrt(aa * bb) : -1.0;
}

struct neighbour {
	uint32_t word;
	double cosine;
};

/* The words nearest to `word`, nearest first; returns how many. */
static unsigned
find_nearest(const struct wf_dictionary *words, const float *row, uint32_t width, uint32_t word,
	     struct neighbour *out)
{
	unsigned found = 0;

	for (uint32_t other = WF_WORDS_UNKNOWN + 1; other < words->vocabulary; other++) {
		struct neighbour next = {
			.word = other,
			.cosine = cosine(row + (size_t)word * width, row + (size_t)other * width,
					 width),
		};
		if (other == word) {
			continue;
		}
		for (unsigned i = 0; i < found; i++) {
			if (next.cosine > out[i].cosine) {
				const struct neighbour down = out[i];
				out[i] = next;
				next = down;
			}
		}
		if (found < NEAREST) {
			out[found++] = next;
		}
	}
	return found;
}

static enum weft_status
print_nearest(struct wf_run *job, const float *row, uint32_t word)
{
	const struct wf_dictionary *words = job->data.source->words.dictionary;
	struct neighbour nearest[NEAREST];
	char line[LINE_BYTES];

	unsigned found = find_nearest(words, row, job->model.table[PROJ].width, word, nearest);
	size_t used = (size_t)snprintf(line, sizeof(line), "nearest %s:", words->word[word]);
	for (unsigned i = 0; i < found && used < sizeof(line); i++) {
		used += (size_t)snprintf(line + used, sizeof(line) - used, " %s %.2f",
					 words->word[nearest[i].word], nearest[i].cosine);
	}
	return job->sink->line(job->sink->arg, line);
}

/* Prints a line for each requested word that the vocabulary has. */
static enum weft_status
print_all_nearest(struct wf_run *job, const float *row)
{
	const char *at = job->opts->nearest == NULL ? NEAREST_DEFAULT : job->opts->nearest;

	while (*at != '\0') {
		const size_t bytes = strcspn(at, ",");
		uint32_t word = number_of(job->data.source->words.dictionary, at, bytes);
		if (word != UINT32_MAX) {
			enum weft_status st = print_nearest(job, row, word);
			if (st != WEFT_OK) {
				return st;
			}
		} else if (job->opts->nearest != NULL) {
			wf_log(job->env, WF_LOG_WARN,
			       "nearest: %.*s is not among the %u words of the vocabulary",
			       (int)bytes, at, job->data.source->words.dictionary->vocabulary);
		}
		at += bytes + (at[bytes] == ',');
	}
	return WEFT_OK;
}

static enum weft_status
measure_words(struct wf_run *job, const struct wf_view *view)
{
	const size_t count = (size_t)job->data.source->words.dictionary->vocabulary *
			     job->model.table[PROJ].width;
	float *row = wf_zalloc_array(job->env, count, sizeof(*row));

	if (row == NULL) {
		return wf_fail(WEFT_NOMEM, "rows of %u words",
			       job->data.source->words.dictionary->vocabulary);
	}
	enum weft_status st = fetch_rows(job, view, row);
	if (st == WEFT_OK) {
		st = print_all_nearest(job, row);
	}
	wf_free(job->env, row, count * sizeof(*row));
	return st;
}

static enum weft_status
measure_classes(struct wf_run *job, const struct wf_view *view)
{
	const size_t rows = wf_exam_rows(job);
	const size_t count = rows < AUC_ROWS_MAX ? rows : AUC_ROWS_MAX;
	struct wf_auc_row *row = wf_zalloc_array(job->env, count, sizeof(*row));
	double test = 0.0;

	enum weft_status st = row == NULL ? wf_fail(WEFT_NOMEM, "scores of %zu rows", count)
					  : wf_exam_test(job, view, row, count, &test);
	if (st == WEFT_OK) {
		job->figures.auc = wf_auc(row, count);
	}
	if (st == WEFT_OK && count < rows) {
		wf_log(job->env, WF_LOG_INFO, "auc: of the first %zu of %zu test rows", count,
		       rows);
	}
	wf_free(job->env, row, count * sizeof(*row));
	return st;
}

enum weft_status
wf_run_measure(struct wf_run *job, const struct wf_view *view)
{
	switch (job->data.source->kind) {
	case WF_SOURCE_WORDS:
		return measure_words(job, view);
	case WF_SOURCE_BAGS:
		return measure_classes(job, view);
	case WF_SOURCE_DATASET:
		break;
	}
	return WEFT_OK;
}
