/* SPDX-License-Identifier: Apache-2.0 */
/* verb: what the verbs of `weft data` share. Thread: main. */
#pragma once

#include "base/env.h"
#include "base/options.h"
#include "tools/data/source.h"
#include "tools/data/target.h"
#include "tools/progress/progress.h"
#include "trainer/readers/files.h"

/* The values of all verbs' options; each verb's table has some of them. */
struct wf_data_opts {
	const char *to;         /* "text", "recordio" or "same" */
	const char *compressor; /* "auto", or one of them */
	bool force;
	uint64_t files, lines; /* 0: not given */
	bool header;
	uint64_t shuffle_window; /* bytes; 0: none */
	uint64_t seed;
	uint64_t trainers; /* 0: not given */
	uint64_t skip, count;
	uint64_t vocabulary; /* words, "unknown" included */
};

#define WF_DATA_AT(field) offsetof(struct wf_data_opts, field)

/* The options that all verbs have which write files. */
#define WF_DATA_COMPRESSOR                                                                         \
	{                                                                                          \
		.name = "compressor", .type = WF_OPTION_CHOICE, .offset = WF_DATA_AT(compressor),  \
		.initial = "auto", .choices = "auto|none|snappy|gzip|zstd",                        \
		.help = "What the files are packed with: none, snappy or gzip for RecordIO; "      \
			"none, gzip or zstd for text. auto: as the first file where the form "     \
			"stays the same; otherwise snappy for RecordIO and none for text."         \
	}
#define WF_DATA_FORCE                                                                              \
	{                                                                                          \
		.name = "force", .type = WF_OPTION_BOOL, .offset = WF_DATA_AT(force),              \
		.help = "Replace files that exist, and sets of the same PREFIX with another "      \
			"number of files."                                                         \
	}

/* What a verb works with. */
struct wf_data_job {
	struct wf_env *env;
	const struct wf_data_opts *opts;
	struct wf_files files;        /* that it reads */
	const char *prefix;           /* of those that it writes; NULL: it writes none */
	struct wf_progress *progress; /* to hide before a line is printed; may be NULL */
};

struct wf_data_verb {
	const char *name;
	const char *summary; /* a line of the overview */
	const char *program; /* "weft data ls" */
	const struct wf_option *table;
	unsigned option_count;
	const struct wf_help *help;
	bool writes; /* its last argument is FOLDER/PREFIX */
	enum weft_status (*work)(struct wf_data_job *job);
};

extern const struct wf_data_verb wf_data_convert;
extern const struct wf_data_verb wf_data_split;
extern const struct wf_data_verb wf_data_ls;
extern const struct wf_data_verb wf_data_cat;
extern const struct wf_data_verb wf_data_verify;
extern const struct wf_data_verb wf_data_words;

/* The end of a noun behind a number. */
static inline const char *
wf_data_plural(uint64_t number)
{
	return number == 1 ? "" : "s";
}

/* The form of the files to write, by the options; `first` is what is read first. */
struct wf_target_form wf_data_form(const struct wf_data_opts *opts,
				   const struct wf_source_kind *first);
/* Opens the first file, to see what it is. */
enum weft_status wf_data_first_kind(const struct wf_data_job *job,
				    struct wf_source_kind *out) WEFT_MUST_CHECK;
/* The line about the files of a job that writes. */
void wf_data_print_written(const struct wf_data_job *job, uint32_t files, uint64_t records);
