/* SPDX-License-Identifier: Apache-2.0 */
/* set: the rows that a trainer trains and tests on: which files they come from, what is known of
 * all of them, and the rows themselves where they fit. A set whose text is larger than a window is
 * streamed: only its description is in memory, and walks (walk.h) read it window by window.
 * Thread: read-only once open. */
#pragma once

#include "trainer/program/corpus.h"
#include "trainer/program/marks.h"
#include "trainer/program/source.h"
#include "trainer/readers/files.h"

#define WF_SET_MEMORY_BYTES (64u << 20) /* default of the text that is kept in memory, */
#define WF_SET_WINDOW_BYTES (8u << 20)  /* and of a window of a larger one */

/* Whose the files of an option are. */
enum wf_split {
	WF_SPLIT_ROWS,  /* all trainers' : each has every so many-th row */
	WF_SPLIT_FILES, /* all trainers' : each has whole files */
	WF_SPLIT_MINE,  /* this trainer's own */
};

struct wf_set_opts {
	const char *items;            /* as of wf_files_list; NULL: source.path alone */
	const char *option;           /* which names the items; NULL: none does */
	struct wf_source_opts source; /* without text */
	wf_source_reader *read;
	wf_source_opener *open_sheet; /* of tables of numbers; otherwise NULL */
	bool can_stream;              /* a window can be read without the others */
	bool has_words;               /* the rows are of running text */
	enum wf_split split;
	/* Of split files: the files of all trainers scale the rows, or number the words. */
	bool is_surveyed;
	uint32_t trainer, trainers;
	uint64_t window_bytes; /* 0: the defaults above */
};

/* A file of a streamed set, or of running text the part of one that is trained or tested on. */
struct wf_set_file {
	size_t idx;         /* of the file among those of the set */
	uint64_t first_row; /* number of its first row in the set */
	uint64_t rows;
	uint64_t lines; /* with its header, if it has one; of text unknown: 0 */
	/* Of text. */
	uint64_t words;      /* of the whole file, */
	uint64_t first_word; /* and the place of the first row's first one in it */
};

struct wf_set {
	struct wf_source source; /* what is known of all rows; unless streamed, the rows */
	struct wf_files files;   /* this trainer's */
	uint64_t bytes;          /* of their text, unpacked; of idx files not known: 0 */

	bool is_streamed;
	struct wf_set_opts opts;  /* its texts are lent until close */
	struct wf_set_file *file; /* [file_count] if streamed, otherwise NULL */
	size_t file_count;
	/* Of a table that is streamed or surveyed, or has a header; otherwise zeroed. */
	struct wf_sheet sheet;
	struct wf_dictionary *dictionary; /* of text whose words were counted; otherwise NULL */
	size_t window_bytes;
	struct wf_marks content; /* of the text of each file, if streamed */
	/* Of streamed libsvm: where each label of the lower class was first; line 0: nowhere. */
	struct {
		uint64_t zero_line, minus_line;
		size_t zero_file, minus_file;
	} labels;

	/* Of the files of all trainers: how many, and their names and sizes. */
	size_t listed_count;
	struct wf_marks listed;
};

/**
 * Lists the files, and reads them: whole, or, if they are larger than a window, once through to
 * count rows and find what is damaged; a table of numbers of which more has to be known is then
 * read once more, in windows.
 * @param out ends with wf_set_close
 * @return WEFT_OK; WEFT_DATA, WEFT_IO, WEFT_NOMEM as of the readers; WEFT_INVALID: an option
 */
enum weft_status wf_set_open(struct wf_env *env, const struct wf_set_opts *opts,
			     struct wf_set *out) WEFT_MUST_CHECK;
void wf_set_close(struct wf_env *env, struct wf_set *set); /* accepts a zeroed one */
/* Reads a window of a streamed set: all of its rows are training rows. `place` is of running text,
 * otherwise NULL. `out` ends with wf_source_fini. */
enum weft_status wf_set_parse(struct wf_env *env, const struct wf_set *set, struct wf_text *text,
			      struct wf_words_place *place, struct wf_source *out) WEFT_MUST_CHECK;

/* Rows that follow each other both in a block and in the set. */
struct wf_piece {
	size_t first; /* row of the block's source */
	size_t count;
	uint64_t row; /* number of the first one in the set */
};

/* Rows that are in memory at the same time. */
struct wf_block {
	const struct wf_source *source; /* has the rows; lent until the walk goes on */
	const struct wf_piece *piece;   /* [piece_count] lent likewise */
	size_t piece_count;
	size_t rows;  /* of all pieces; 0: the pass is over */
	uint64_t idx; /* of this pass, from 0 */
};

enum wf_part {
	WF_PART_TRAIN,
	WF_PART_TEST,
	WF_PART_ALL, /* of a set that is for testing only */
};

/* The rows of a part: first .. end - 1. */
void wf_set_part(const struct wf_set *set, enum wf_part part, uint64_t *first, uint64_t *end);
