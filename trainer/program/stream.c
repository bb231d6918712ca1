/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks out of files, read ahead by a thread. Threads: see stream.h. */
#include "trainer/program/stream.h"

#include <pthread.h>
#include <string.h>

#include "base/assert.h"
#include "base/rng.h"
#include "base/status.h"
#include "trainer/readers/lines.h"

#define SLOTS 2u
#define TRAINER_BITS 32u
#define FILES_STREAM UINT32_MAX /* in the place of a trainer's number */

struct slot {
	struct wf_source source;
	struct wf_piece *piece; /* [piece_alloc] */
	size_t piece_count, piece_alloc;
	size_t rows; /* 0: the pass is over */
	enum weft_status status;
	struct wf_error why;
};

struct wf_stream {
	struct wf_env *env;
	struct wf_stream_opts opts;

	/* Of whoever reads: the thread, if there is one. */
	struct wf_lines *lines;
	struct wf_span *span; /* [span_count] of [set.file_count] in the order of the pass */
	uint32_t *order;      /* [set.file_count] which file of the set each of them is of */
	size_t span_count;
	struct wf_words_span *words; /* likewise, of running text; otherwise NULL */
	struct wf_words_place place; /* in them */

	struct slot slot[SLOTS]; /* block i is in slot i % SLOTS */
	bool is_holding;         /* the owner uses block `used` */
	bool is_over;            /* the owner has seen the end of the pass, */
	bool is_early;           /* and the next one has been begun without it */

	bool has_thread;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	/* Under the lock. */
	uint64_t round; /* passes that have begun */
	uint64_t seed, pass;
	uint64_t made,
		used; /* blocks of this pass that are ready, and that the owner is done with */
	bool is_stopping;
};

/* --- reading --- */

/* The rows of a file that are of the stream's part, counted from its own first one; false: there
 * are none. */
static bool
find_rows(const struct wf_stream *stream, const struct wf_set_file *file, uint64_t *out_first,
	  uint64_t *out_end)
{
	uint64_t first = 0;
	uint64_t end = 0;

	wf_set_part(stream->opts.set, stream->opts.part, &first, &end);
	first = first > file->first_row ? first - file->first_row : 0;
	end = end > file->first_row ? end - file->first_row : 0;
	end = end < file->rows ? end : file->rows;
	*out_first = first;
	*out_end = end;
	return first < end;
}

/* Lines are rows, or a file of running text is read from end to end. */
static void
add_span(struct wf_stream *stream, uint32_t idx, uint64_t first, uint64_t end)
{
	const struct wf_set *set = stream->opts.set;
	const struct wf_set_file *file = &set->file[idx];
	const uint64_t header = file->lines - file->rows;
	const size_t at = stream->span_count++;

	stream->order[at] = idx;
	stream->span[at].listed = &set->files.file[file->idx];
	stream->span[at].path = stream->span[at].listed->path;
	if (stream->words == NULL) {
		stream->span[at].first = first == 0 ? 1 : (size_t)(header + first + 1);
		stream->span[at].last = (size_t)(header + end);
		return;
	}
	stream->span[at].first = 1;
	stream->span[at].last = SIZE_MAX;
	stream->words[at] = (struct wf_words_span){
		.path = stream->span[at].path,
		.words = file->words,
		.first = file->first_word + first,
		.end = file->first_word + end + WF_WORDS_CONTEXT,
	};
}

static void
begin_pass(struct wf_stream *stream, uint64_t seed, uint64_t pass)
{
	const struct wf_set *set = stream->opts.set;
	const size_t count = set->file_count;
	uint64_t first = 0;
	uint64_t end = 0;

	for (size_t i = 0; i < count; i++) {
		stream->order[i] = (uint32_t)i;
	}
	if (stream->opts.part == WF_PART_TRAIN) {
		struct wf_rng rng;
		wf_rng_init(&rng, seed, ((pass + 1) << TRAINER_BITS) | FILES_STREAM);
		wf_rng_shuffle(&rng, stream->order, count);
	}
	stream->span_count = 0;
	for (size_t i = 0; i < count; i++) {
		const uint32_t file = stream->order[i];
		if (find_rows(stream, &set->file[file], &first, &end)) {
			add_span(stream, file, first, end);
		}
	}
	stream->place = (struct wf_words_place){
		.span = stream->words,
		.span_count = stream->span_count,
	};
	wf_lines_begin(stream->lines, stream->span, stream->span_count);
}

static enum weft_status
make_room(struct wf_stream *stream, struct slot *slot, size_t pieces)
{
	if (pieces <= slot->piece_alloc) {
		return WEFT_OK;
	}
	wf_free(stream->env, slot->piece, slot->piece_alloc * sizeof(*slot->piece));
	slot->piece_alloc = 0;
	slot->piece = wf_zalloc_array(stream->env, pieces, sizeof(*slot->piece));
	if (slot->piece == NULL) {
		return wf_fail(WEFT_NOMEM, "window of %zu files", pieces);
	}
	slot->piece_alloc = pieces;
	return WEFT_OK;
}

/* The rows of a piece of a file whose lines are rows. */
static struct wf_piece
piece_of_lines(const struct wf_set_file *file, const struct wf_text_piece *from, size_t rows)
{
	const size_t header = (size_t)(file->lines - file->rows);
	const size_t skipped = from->line <= header ? header : 0; /* 0 or 1 */

	return (struct wf_piece){
		.first = rows,
		.count = from->lines - skipped,
		.row = file->first_row + (from->line + skipped - 1 - header),
	};
}

/* The rows of a run of words. */
static struct wf_piece
piece_of_words(const struct wf_set_file *file, const struct wf_words_run *run)
{
	return (struct wf_piece){
		.first = run->row,
		.count = run->tokens > WF_WORDS_CONTEXT ? run->tokens - WF_WORDS_CONTEXT : 0,
		.row = file->first_row + (run->word - file->first_word),
	};
}

/* Which rows of the set the block has. */
static enum weft_status
place_rows(struct wf_stream *stream, const struct wf_text *text, struct slot *slot)
{
	enum weft_status st = make_room(stream, slot, text->piece_count);
	size_t rows = 0;

	if (st != WEFT_OK) {
		return st;
	}
	for (size_t i = 0; i < text->piece_count; i++) {
		const struct wf_text_piece *from = &text->piece[i];
		const struct wf_set_file *file = &stream->opts.set->file[stream->order[from->file]];
		slot->piece[i] = stream->words == NULL
					 ? piece_of_lines(file, from, rows)
					 : piece_of_words(file, &slot->source.words.runs.run[i]);
		rows += slot->piece[i].count;
	}
	WF_ASSERT(rows == slot->source.rows);
	slot->piece_count = text->piece_count;
	slot->rows = rows;
	return WEFT_OK;
}

static enum weft_status
read_block(struct wf_stream *stream, struct slot *slot, bool *is_over)
{
	struct wf_text text;

	wf_source_fini(stream->env, &slot->source);
	slot->piece_count = 0;
	enum weft_status st = wf_lines_next(stream->lines, &text);
	*is_over = st == WEFT_OK && text.count == 0;
	if (*is_over && stream->words != NULL) {
		st = wf_words_end_windows(&stream->place);
	}
	if (st != WEFT_OK || *is_over) {
		return st;
	}
	st = wf_set_parse(stream->env, stream->opts.set, &text,
			  stream->words == NULL ? NULL : &stream->place, &slot->source);
	return st == WEFT_OK ? place_rows(stream, &text, slot) : st;
}

/* The next block that has rows: a window may have nothing but the header of a file. */
static enum weft_status
read_rows(struct wf_stream *stream, struct slot *slot)
{
	bool is_over = false;
	enum weft_status st = WEFT_OK;

	slot->rows = 0;
	while (st == WEFT_OK && slot->rows == 0 && !is_over) {
		st = read_block(stream, slot, &is_over);
	}
	return st;
}

/* The next block, or why there is none. */
static void
make_block(struct wf_stream *stream, struct slot *slot)
{
	slot->status = read_rows(stream, slot);
	if (slot->status != WEFT_OK) {
		slot->why = *wf_error_record();
		slot->rows = 0;
	}
}

/* --- the thread --- */

static void
serve_rounds(struct wf_stream *stream)
{
	uint64_t round = 0; /* that it reads for */
	bool is_over = true;

	while (!stream->is_stopping) {
		if (round != stream->round) {
			const uint64_t seed = stream->seed;
			const uint64_t pass = stream->pass;
			round = stream->round;
			pthread_mutex_unlock(&stream->lock);
			begin_pass(stream, seed, pass);
			pthread_mutex_lock(&stream->lock);
			is_over = false;
		} else if (is_over || stream->made - stream->used == SLOTS) {
			pthread_cond_wait(&stream->changed, &stream->lock);
		} else {
			struct slot *slot = &stream->slot[stream->made % SLOTS];
			pthread_mutex_unlock(&stream->lock);
			make_block(stream, slot);
			pthread_mutex_lock(&stream->lock);
			if (round == stream->round) {
				is_over = slot->rows == 0;
				stream->made++;
				pthread_cond_broadcast(&stream->changed);
			}
		}
	}
}

static void *
thread_main(void *arg)
{
	struct wf_stream *stream = arg;

	pthread_mutex_lock(&stream->lock);
	serve_rounds(stream);
	pthread_mutex_unlock(&stream->lock);
	return NULL;
}

/* --- the owner --- */

static enum weft_status
start(struct wf_stream *stream)
{
	const size_t files = stream->opts.set->file_count;
	const bool has_words = stream->opts.set->opts.has_words;

	stream->span = wf_zalloc_array(stream->env, files, sizeof(*stream->span));
	stream->order = wf_zalloc_array(stream->env, files, sizeof(*stream->order));
	if (has_words) {
		stream->words = wf_zalloc_array(stream->env, files, sizeof(*stream->words));
	}
	if (stream->span == NULL || stream->order == NULL || (has_words && stream->words == NULL)) {
		return wf_fail(WEFT_NOMEM, "list of %zu files", files);
	}
	enum weft_status st =
		wf_lines_open(stream->env, stream->opts.set->window_bytes, &stream->lines);
	if (st != WEFT_OK || stream->opts.ahead_until == 0) {
		return st;
	}
	int err = pthread_create(&stream->thread, NULL, thread_main, stream);
	if (err != 0) {
		return wf_fail_errno(WEFT_NOMEM, err, "thread that reads data");
	}
	stream->has_thread = true;
	return WEFT_OK;
}

enum weft_status
wf_stream_open(struct wf_env *env, const struct wf_stream_opts *opts, struct wf_stream **out)
{
	struct wf_stream *stream = wf_zalloc(env, sizeof(*stream));

	WF_ASSERT(opts->set->is_streamed);
	if (stream == NULL) {
		return wf_fail(WEFT_NOMEM, "stream: %zu bytes", sizeof(*stream));
	}
	stream->env = env;
	stream->opts = *opts;
	stream->is_over = true;
	pthread_mutex_init(&stream->lock, NULL);
	pthread_cond_init(&stream->changed, NULL);
	enum weft_status st = start(stream);
	if (st != WEFT_OK) {
		wf_stream_close(stream);
		return st;
	}
	*out = stream;
	return WEFT_OK;
}

void
wf_stream_close(struct wf_stream *stream)
{
	if (stream == NULL) {
		return;
	}
	struct wf_env *env = stream->env;
	const size_t files = stream->opts.set->file_count;

	pthread_mutex_lock(&stream->lock);
	stream->is_stopping = true;
	pthread_cond_broadcast(&stream->changed);
	pthread_mutex_unlock(&stream->lock);
	if (stream->has_thread) {
		pthread_join(stream->thread, NULL);
	}
	pthread_cond_destroy(&stream->changed);
	pthread_mutex_destroy(&stream->lock);
	for (unsigned i = 0; i < SLOTS; i++) {
		struct slot *slot = &stream->slot[i];
		wf_source_fini(env, &slot->source);
		wf_free(env, slot->piece, slot->piece_alloc * sizeof(*slot->piece));
	}
	wf_lines_close(stream->lines);
	wf_free(env, stream->span, files * sizeof(*stream->span));
	wf_free(env, stream->order, files * sizeof(*stream->order));
	wf_free(env, stream->words, files * sizeof(*stream->words));
	wf_free(env, stream, sizeof(*stream));
}

static void
start_round(struct wf_stream *stream, uint64_t seed, uint64_t pass)
{
	pthread_mutex_lock(&stream->lock);
	stream->round++;
	stream->seed = seed;
	stream->pass = pass;
	stream->made = 0;
	stream->used = 0;
	pthread_cond_broadcast(&stream->changed);
	pthread_mutex_unlock(&stream->lock);
	stream->is_holding = false;
	if (!stream->has_thread) {
		begin_pass(stream, seed, pass);
	}
}

/* The owner writes seed and pass, so it may read them without the lock. */
void
wf_stream_begin(struct wf_stream *stream, uint64_t seed, uint64_t pass)
{
	if (!stream->is_early || seed != stream->seed || pass != stream->pass) {
		start_round(stream, seed, pass);
	}
	stream->is_early = false;
	stream->is_over = false;
}

/* Waits for the block after the one that the owner had. */
static struct slot *
await_block(struct wf_stream *stream, uint64_t *idx)
{
	pthread_mutex_lock(&stream->lock);
	if (stream->is_holding) {
		stream->used++;
		pthread_cond_broadcast(&stream->changed);
	}
	*idx = stream->used;
	if (!stream->has_thread) {
		make_block(stream, &stream->slot[*idx % SLOTS]);
		stream->made++;
	}
	while (stream->made == stream->used) {
		pthread_cond_wait(&stream->changed, &stream->lock);
	}
	pthread_mutex_unlock(&stream->lock);
	stream->is_holding = true;
	return &stream->slot[*idx % SLOTS];
}

enum weft_status
wf_stream_next(struct wf_stream *stream, struct wf_block *out)
{
	uint64_t idx = 0;

	*out = (struct wf_block){0};
	if (stream->is_over) {
		return WEFT_OK;
	}
	const struct slot *slot = await_block(stream, &idx);
	if (slot->rows == 0) {
		/* Nothing is read now: the last block need not wait for the next pass. */
		stream->is_over = true;
		wf_source_fini(stream->env, &stream->slot[(idx + 1) % SLOTS].source);
	}
	if (slot->status != WEFT_OK) {
		return wf_fail(slot->status, "%s", slot->why.text);
	}
	if (slot->rows == 0) {
		stream->is_early = stream->pass + 1 < stream->opts.ahead_until;
		if (stream->is_early) {
			start_round(stream, stream->seed, stream->pass + 1);
		}
		return WEFT_OK;
	}
	*out = (struct wf_block){
		.source = &slot->source,
		.piece = slot->piece,
		.piece_count = slot->piece_count,
		.rows = slot->rows,
		.idx = idx,
	};
	return WEFT_OK;
}
