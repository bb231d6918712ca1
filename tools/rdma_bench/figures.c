/* SPDX-License-Identifier: Apache-2.0 */
/* figures: see figures.h. */
#include "tools/rdma_bench/figures.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/json.h"

#define FILE_BYTES_MAX (4u << 20)
#define KEY_BYTES 32u
#define WANTED_BYTES 80u

struct reader {
	struct wf_json json;
	const char *path;
	unsigned result; /* number of the one that is read, from 1; 0: none */
	/* Of the value that is read: why the text is refused if it is bad here. */
	char key[KEY_BYTES], wanted[WANTED_BYTES];
};

enum kind { TEXT, POSITIVE, NUMBERS };

/* What a member of a result is. */
static const struct field {
	const char *key;
	enum kind kind;
	bool is_required;
	size_t offset;
} fields[] = {
	{"name", TEXT, true, offsetof(struct wf_figure, name)},
	{"transport", TEXT, true, offsetof(struct wf_figure, transport)},
	{"mode", TEXT, true, offsetof(struct wf_figure, mode)},
	{"unit", TEXT, true, offsetof(struct wf_figure, unit)},
	{"limited_by", TEXT, true, offsetof(struct wf_figure, limited_by)},
	{"better", TEXT, true, offsetof(struct wf_figure, better)},
	{"bytes", POSITIVE, true, offsetof(struct wf_figure, bytes)},
	{"value", POSITIVE, true, offsetof(struct wf_figure, value)},
	{"limit", POSITIVE, true, offsetof(struct wf_figure, limit)},
	{"fraction", POSITIVE, true, offsetof(struct wf_figure, fraction)},
	{"target", POSITIVE, false, offsetof(struct wf_figure, target)},
	{"values", NUMBERS, true, offsetof(struct wf_figure, samples.value)},
	{"fractions", NUMBERS, true, offsetof(struct wf_figure, samples.fraction)},
};

/* Notes what must come next, unless something was bad before. */
static void
expect(struct reader *reader, const char *key, const char *wanted)
{
	if (!reader->json.is_bad) {
		(void)snprintf(reader->key, sizeof(reader->key), "%s", key);
		(void)snprintf(reader->wanted, sizeof(reader->wanted), "%s", wanted);
	}
}

/* What is wrong although it is JSON. */
static void
refuse(struct reader *reader, const char *key, const char *wanted)
{
	expect(reader, key, wanted);
	reader->json.is_bad = true;
}

static void
read_text(struct reader *reader, const char *key, char *out, size_t room)
{
	char wanted[WANTED_BYTES];

	(void)snprintf(wanted, sizeof(wanted), "must be a text of 1 to %zu printable characters",
		       room - 1);
	expect(reader, key, wanted);
	const size_t bytes = wf_json_string(&reader->json, out, room);
	bool is_fine = bytes > 0 && bytes < room;
	for (size_t i = 0; is_fine && i < bytes; i++) {
		is_fine = out[i] >= ' ' && out[i] <= '~';
	}
	if (!is_fine) {
		reader->json.is_bad = true;
	}
}

static double
read_positive(struct reader *reader, const char *key)
{
	expect(reader, key, "must be a finite number above 0");
	const double value = wf_json_real(&reader->json);
	if (!(value > 0)) {
		reader->json.is_bad = true;
	}
	return value;
}

static unsigned
read_numbers(struct reader *reader, const char *key, double out[WF_SAMPLES_MAX])
{
	unsigned count = 0;

	expect(reader, key, "must be a list of at most 192 finite numbers above 0");
	wf_json_need(&reader->json, '[');
	if (wf_json_accept(&reader->json, ']')) {
		return 0;
	}
	do {
		const double value = wf_json_real(&reader->json);
		if (!(value > 0) || count == WF_SAMPLES_MAX) {
			reader->json.is_bad = true;
			return 0;
		}
		out[count++] = value;
	} while (wf_json_accept(&reader->json, ','));
	wf_json_need(&reader->json, ']');
	return count;
}

static void
skip(struct reader *reader, const char *key)
{
	expect(reader, key, "must be a value of JSON that is not nested deeper than 32");
	wf_json_skip(&reader->json);
}

/* The key of the next member; false: the object has ended, or something is bad. `*first` is
 * whether none came before. */
static bool
next_key(struct reader *reader, bool *first, char key[KEY_BYTES])
{
	if (*first ? wf_json_accept(&reader->json, '}') : !wf_json_accept(&reader->json, ',')) {
		if (!*first) {
			expect(reader, "the object", "must go on with , or end with }");
			wf_json_need(&reader->json, '}');
		}
		return false;
	}
	*first = false;
	expect(reader, "the object", "must have names between quotes, with : behind each");
	(void)wf_json_string(&reader->json, key, KEY_BYTES);
	wf_json_need(&reader->json, ':');
	return !reader->json.is_bad;
}

static void
begin_object(struct reader *reader, const char *key)
{
	expect(reader, key, "must be an object");
	wf_json_need(&reader->json, '{');
}

static void
read_field(struct reader *reader, const struct field *field, struct wf_figure *figure,
	   unsigned *value_count)
{
	char *at = (char *)figure + field->offset;
	double number[WF_SAMPLES_MAX];

	if (field->kind == TEXT) {
		read_text(reader, field->key, at, WF_FIGURES_TEXT_BYTES);
	} else if (field->kind == POSITIVE) {
		number[0] = read_positive(reader, field->key);
		memcpy(at, number, sizeof(number[0]));
	} else {
		const unsigned count = read_numbers(reader, field->key, number);
		memcpy(at, number, count * sizeof(number[0]));
		const bool is_values = strcmp(field->key, "values") == 0;
		*(is_values ? value_count : &figure->samples.count) = count;
	}
}

/* What each member by itself does not show. */
static void
check_figure(struct reader *reader, const struct wf_figures_file *file, struct wf_figure *figure,
	     unsigned value_count)
{
	figure->lower_is_better = strcmp(figure->better, "lower") == 0;
	if (!figure->lower_is_better && strcmp(figure->better, "higher") != 0) {
		refuse(reader, "better", "must be \"lower\" or \"higher\"");
	}
	if (value_count != figure->samples.count) {
		refuse(reader, "fractions", "must have as many numbers as values has");
	}
	if (wf_figures_find(file, figure) != NULL) {
		refuse(reader, "name", "must not be that of the same figure as one before it");
	}
}

static void
read_figure(struct reader *reader, struct wf_figures_file *file)
{
	struct wf_figure *figure = &file->figure[file->figure_count];
	bool seen[WF_ARRAY_COUNT(fields)] = {false};
	unsigned value_count = 0;
	char key[KEY_BYTES];
	bool first = true;

	*figure = (struct wf_figure){0};
	begin_object(reader, "results");
	while (next_key(reader, &first, key)) {
		size_t i = 0;
		while (i < WF_ARRAY_COUNT(fields) && strcmp(key, fields[i].key) != 0) {
			i++;
		}
		if (i == WF_ARRAY_COUNT(fields)) {
			skip(reader, key);
		} else if (seen[i]) {
			refuse(reader, key, "must be there once, and comes twice");
		} else {
			seen[i] = true;
			read_field(reader, &fields[i], figure, &value_count);
		}
	}
	for (size_t i = 0; !reader->json.is_bad && i < WF_ARRAY_COUNT(fields); i++) {
		if (fields[i].is_required && !seen[i]) {
			refuse(reader, fields[i].key, "is missing");
		}
	}
	if (!reader->json.is_bad) {
		check_figure(reader, file, figure, value_count);
		file->figure_count++;
	}
}

static void
read_results(struct reader *reader, struct wf_figures_file *file)
{
	expect(reader, "results", "must be a list of 1 to 256 objects");
	wf_json_need(&reader->json, '[');
	do {
		reader->result = file->figure_count + 1;
		if (file->figure_count == WF_FIGURES_MAX) {
			reader->result = 0;
			refuse(reader, "results", "must be a list of 1 to 256 objects");
		} else if (!reader->json.is_bad) {
			read_figure(reader, file);
		}
	} while (!reader->json.is_bad && wf_json_accept(&reader->json, ','));
	if (!reader->json.is_bad) {
		reader->result = 0;
		expect(reader, "results", "must go on with , or end with ]");
		wf_json_need(&reader->json, ']');
	}
}

/* One text out of an object, such as the processor out of `machine`. */
static void
read_text_of(struct reader *reader, const char *object, const char *wanted, char *out, size_t room)
{
	char key[KEY_BYTES];
	bool first = true;

	begin_object(reader, object);
	while (next_key(reader, &first, key)) {
		if (strcmp(key, wanted) == 0) {
			read_text(reader, wanted, out, room);
		} else {
			skip(reader, key);
		}
	}
}

static void
read_quick(struct reader *reader, bool *out)
{
	expect(reader, "quick", "must be true or false");
	*out = wf_json_accept_word(&reader->json, "true");
	if (!*out && !wf_json_accept_word(&reader->json, "false")) {
		reader->json.is_bad = true;
	}
}

static void
read_member(struct reader *reader, const char *key, struct wf_figures_file *out)
{
	if (strcmp(key, "program") == 0) {
		read_text(reader, key, out->program, sizeof(out->program));
	} else if (strcmp(key, "date") == 0) {
		read_text(reader, key, out->date, sizeof(out->date));
	} else if (strcmp(key, "quick") == 0) {
		read_quick(reader, &out->quick);
	} else if (strcmp(key, "machine") == 0) {
		read_text_of(reader, key, "cpu", out->cpu, sizeof(out->cpu));
	} else if (strcmp(key, "versions") == 0) {
		read_text_of(reader, key, "weft", out->version, sizeof(out->version));
	} else if (strcmp(key, "results") == 0 && out->figure_count > 0) {
		refuse(reader, key, "must be there once, and comes twice");
	} else if (strcmp(key, "results") == 0) {
		read_results(reader, out);
	} else {
		skip(reader, key);
	}
}

static enum weft_status
fail_at(const struct reader *reader)
{
	char where[32] = "";

	if (reader->result > 0) {
		(void)snprintf(where, sizeof(where), "result %u: ", reader->result);
	}
	return wf_fail(WEFT_DATA, "%s: byte %zu: %s%s %s", reader->path, wf_json_at(&reader->json),
		       where, reader->key, reader->wanted);
}

enum weft_status
wf_figures_parse(const char *path, const char *text, size_t bytes, struct wf_figures_file *out)
{
	struct reader reader = {.json = {.from = text, .at = text, .end = text + bytes},
				.path = path};
	char key[KEY_BYTES];
	bool first = true;

	*out = (struct wf_figures_file){.path = path};
	begin_object(&reader, "the file");
	while (next_key(&reader, &first, key)) {
		read_member(&reader, key, out);
	}
	expect(&reader, "the file", "must end with its object");
	if (!wf_json_is_done(&reader.json)) {
		return fail_at(&reader);
	}
	if (strncmp(out->program, "rdma_bench ", strlen("rdma_bench ")) != 0) {
		return wf_fail(WEFT_DATA,
			       "%s: its program is \"%s\": give what rdma_bench --json prints",
			       path, out->program);
	}
	return out->figure_count > 0 ? WEFT_OK : wf_fail(WEFT_DATA, "%s: results is missing", path);
}

static enum weft_status
read_all(int fd, const char *path, char *text, size_t *out)
{
	size_t bytes = 0;

	while (bytes <= FILE_BYTES_MAX) {
		ssize_t got = read(fd, text + bytes, FILE_BYTES_MAX + 1 - bytes);
		if (got < 0 && errno == EINTR) {
			continue;
		}
		if (got < 0) {
			return wf_fail_errno(WEFT_IO, errno, "%s: cannot be read", path);
		}
		if (got == 0) {
			*out = bytes;
			return WEFT_OK;
		}
		bytes += (size_t)got;
	}
	return wf_fail(WEFT_DATA, "%s: has more than %u MiB: it is no result of rdma_bench", path,
		       FILE_BYTES_MAX >> 20);
}

enum weft_status
wf_figures_load(const char *path, struct wf_figures_file *out)
{
	static char text[FILE_BYTES_MAX + 1];
	struct stat info;
	size_t bytes = 0;
	/* A pipe without a writer must not hold the program. */
	const int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0) {
		return wf_fail_errno(WEFT_IO, errno, "%s: cannot be opened", path);
	}
	enum weft_status st = WEFT_OK;
	if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
		st = wf_fail(WEFT_IO, "%s: is no regular file", path);
	}
	if (st == WEFT_OK) {
		st = read_all(fd, path, text, &bytes);
	}
	(void)close(fd);
	return st == WEFT_OK ? wf_figures_parse(path, text, bytes, out) : st;
}

const struct wf_figure *
wf_figures_find(const struct wf_figures_file *file, const struct wf_figure *figure)
{
	for (unsigned i = 0; i < file->figure_count; i++) {
		const struct wf_figure *other = &file->figure[i];
		if (strcmp(other->name, figure->name) == 0 &&
		    strcmp(other->transport, figure->transport) == 0 &&
		    strcmp(other->mode, figure->mode) == 0 &&
		    strcmp(other->unit, figure->unit) == 0 &&
		    strcmp(other->limited_by, figure->limited_by) == 0 &&
		    other->bytes == figure->bytes) {
			return other;
		}
	}
	return NULL;
}
