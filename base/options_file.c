/* SPDX-License-Identifier: Apache-2.0 */
/* options_file: the file that --config names: lines of name = value, in sections for single
 * commands, parsed in the caller's memory. Nothing in it is trusted: errors are reported with file
 * and line. Thread: the caller's. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/options_internal.h"

#define QUOTE 80       /* bytes of a refused text that an error repeats */
#define PATH_QUOTE 160 /* of the file's name */
#define SECTIONS_BYTES 128

/* The commands that have options, and so a section. */
static const char *const sections[] = {
	"pserver", "train", "launch", "demo", "export", "import",
	"topo",    "self",  "lat",    "bw",   "rate",
};

/* The position of the reader. */
struct reader {
	struct wf_options *options;
	struct wf_option_file *file;
	unsigned line;         /* from 1 */
	unsigned section_line; /* of the section's head; 0: before the first one */
	bool is_ours;          /* the section applies to the command that reads */
};

/* The printf arguments for "program: file:line". */
#define HERE_FORMAT "%s: %.*s:%u: "
#define HERE(r) (r)->options->program, PATH_QUOTE, (r)->file->path, (r)->line

static bool
is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* Removes blanks at both ends, in place. */
static char *
trim(char *text)
{
	while (is_blank(*text)) {
		text++;
	}
	size_t bytes = strlen(text);
	while (bytes > 0 && is_blank(text[bytes - 1])) {
		bytes--;
	}
	text[bytes] = '\0';
	return text;
}

/* "weft train" reads [train]. */
static const char *
own_section(const struct wf_options *options)
{
	if (options->section != NULL) {
		return options->section;
	}
	const char *blank = strrchr(options->program, ' ');
	return blank != NULL ? blank + 1 : options->program;
}

static bool
is_section(const char *name)
{
	for (unsigned i = 0; i < WF_ARRAY_COUNT(sections); i++) {
		if (strcmp(sections[i], name) == 0) {
			return true;
		}
	}
	return false;
}

static enum weft_status
refuse_section(const struct reader *r, const char *name)
{
	char all[SECTIONS_BYTES] = "";
	size_t used = 0;
	for (unsigned i = 0; i < WF_ARRAY_COUNT(sections); i++) {
		int wrote = snprintf(all + used, sizeof(all) - used, " %s", sections[i]);
		WF_ASSERT(wrote > 0 && (size_t)wrote < sizeof(all) - used);
		used += (size_t)wrote;
	}
	return wf_fail(WEFT_INVALID,
		       HERE_FORMAT "there is no section [%.*s]; a section is for one or more of:%s",
		       HERE(r), QUOTE, name, all);
}

/* Parses "[pserver train]", which is for both commands. */
static enum weft_status
parse_section(struct reader *r, char *text)
{
	char *end = strchr(text, ']');
	const char *rest = end == NULL ? "" : end + 1 + strspn(end + 1, " \t");
	unsigned count = 0;
	if (end == NULL || (*rest != '\0' && *rest != '#')) {
		return wf_fail(WEFT_INVALID,
			       HERE_FORMAT "%.*s: a section begins with one line, [COMMAND]",
			       HERE(r), QUOTE, text);
	}
	*end = '\0';
	r->is_ours = false;
	r->section_line = r->line;
	for (char *at = text + 1 + strspn(text + 1, " \t"); *at != '\0'; count++) {
		size_t bytes = strcspn(at, " \t");
		char *next = at + bytes + strspn(at + bytes, " \t");
		at[bytes] = '\0';
		if (!is_section(at)) {
			return refuse_section(r, at);
		}
		r->is_ours = r->is_ours || strcmp(at, own_section(r->options)) == 0;
		at = next;
	}
	return count > 0 ? WEFT_OK : refuse_section(r, "");
}

static enum weft_status
refuse_quotes(const struct reader *r, const char *name)
{
	return wf_fail(WEFT_INVALID,
		       HERE_FORMAT "%.*s: a value that begins with \" ends at the next one, and "
				   "only a comment may follow",
		       HERE(r), QUOTE, name);
}

/* Parses the value behind '=': up to a comment, or the text between quotes unchanged. */
static enum weft_status
parse_value(const struct reader *r, const char *name, char *text, char **out)
{
	text += strspn(text, " \t");
	if (*text == '"') {
		char *end = strchr(text + 1, '"');
		if (end == NULL) {
			return refuse_quotes(r, name);
		}
		const char *rest = end + 1 + strspn(end + 1, " \t");
		if (*rest != '\0' && (*rest != '#' || rest == end + 1)) {
			return refuse_quotes(r, name);
		}
		*end = '\0';
		*out = text + 1;
		return WEFT_OK;
	}
	for (char *at = text; *at != '\0'; at++) {
		if (*at == '#' && (at == text || is_blank(at[-1]))) {
			*at = '\0';
			break;
		}
	}
	*out = trim(text);
	return WEFT_OK;
}

static enum weft_status
refuse_name(const struct reader *r, const char *name)
{
	const char *plain = name + strspn(name, "-");
	const struct wf_option *nearest =
		wf_option_nearest(r->options, plain, strlen(plain), false);
	const char *where = r->section_line == 0 ? "; what is for another command goes below the "
						   "others, under its [COMMAND]"
						 : "";
	if (wf_option_builtin(r->options, plain, strlen(plain)) != NULL ||
	    strcmp(plain, "help") == 0) {
		return wf_fail(WEFT_INVALID,
			       HERE_FORMAT "%.*s is for the command line, not for a file", HERE(r),
			       QUOTE, name);
	}
	if (nearest != NULL) {
		return wf_fail(WEFT_INVALID,
			       HERE_FORMAT
			       "unknown option %.*s; did you mean %s? (--help lists all)%s",
			       HERE(r), QUOTE, name, nearest->name, where);
	}
	return wf_fail(WEFT_INVALID, HERE_FORMAT "unknown option %.*s (--help lists all)%s",
		       HERE(r), QUOTE, name, where);
}

static enum weft_status
store(struct reader *r, const struct wf_option *option, const char *value)
{
	struct wf_options *options = r->options;
	unsigned idx = (unsigned)(option - options->table);
	unsigned before = r->file->line[idx];
	/* A line in a section overrides one above it; two lines in one section are an error. */
	if (before > r->section_line) {
		return wf_fail(WEFT_INVALID, HERE_FORMAT "%s is on line %u already; keep one",
			       HERE(r), option->name, before);
	}
	if (!wf_option_store(option, value, options->target)) {
		char allowed[WF_OPTION_ALLOWED_BYTES];
		wf_option_allowed(option, allowed, sizeof(allowed));
		return wf_fail(WEFT_INVALID, HERE_FORMAT "%s = %.*s: must be %s", HERE(r),
			       option->name, QUOTE, value, allowed);
	}
	options->origin[idx] = WF_ORIGIN_FILE;
	r->file->line[idx] = (uint16_t)r->line;
	return WEFT_OK;
}

static enum weft_status
parse_assignment(struct reader *r, char *text)
{
	static const char letters[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
	char *equals = strchr(text, '=');
	char *value = NULL;
	if (equals != NULL) {
		*equals = '\0';
	}
	const char *name = trim(text);
	if (equals == NULL || *name == '\0' || name[strspn(name, letters)] != '\0') {
		return wf_fail(WEFT_INVALID,
			       HERE_FORMAT "\"%.*s\": write name = value, [COMMAND] or # comment",
			       HERE(r), QUOTE, name);
	}
	enum weft_status st = parse_value(r, name, equals + 1, &value);
	if (st != WEFT_OK || !r->is_ours) {
		return st;
	}
	const struct wf_option *option = wf_option_find(r->options, name, strlen(name));
	const struct wf_original *original =
		option == NULL ? wf_original_find(r->options->originals, name, strlen(name)) : NULL;
	if (original != NULL) {
		st = wf_original_accept(r->options, original, value, r->file->path);
		if (st != WEFT_OK || original->answer != WF_ORIGINAL_MAPPED) {
			return st;
		}
		option = wf_option_find(r->options, original->to, strlen(original->to));
	}
	if (option == NULL) {
		return r->options->ignore_unknown ? WEFT_OK : refuse_name(r, name);
	}
	return store(r, option, value);
}

/* Parses one line without its newline, NUL-terminated; `bytes` is its length in the file. */
static enum weft_status
parse_line(struct reader *r, char *text, size_t bytes)
{
	if (bytes > 0 && text[bytes - 1] == '\r') {
		text[--bytes] = '\0';
	}
	for (size_t i = 0; i < bytes; i++) {
		unsigned char c = (unsigned char)text[i];
		if ((c < 0x20 && c != '\t') || c == 0x7f) {
			return wf_fail(WEFT_INVALID,
				       HERE_FORMAT "byte 0x%02x in column %zu: a file of options "
						   "is plain text",
				       HERE(r), c, i + 1);
		}
	}
	text = trim(text);
	if (*text == '\0' || *text == '#') {
		return WEFT_OK;
	}
	return *text == '[' ? parse_section(r, text) : parse_assignment(r, text);
}

enum weft_status
wf_option_file_parse(struct wf_options *options)
{
	struct wf_option_file *file = options->file;
	struct reader r = {.options = options, .file = file, .is_ours = true};
	static const char mark[] = "\xef\xbb\xbf"; /* some editors begin UTF-8 with it */
	char *at = file->text;
	WF_ASSERT(file->bytes <= WF_OPTION_FILE_BYTES);
	WF_ASSERT(options->option_count <= WF_OPTION_FILE_OPTIONS);
	char *end = file->text + file->bytes;
	*end = '\0';
	if (file->bytes >= 3 && memcmp(at, mark, 3) == 0) {
		at += 3;
	}
	enum weft_status st = WEFT_OK;
	while (at < end && st == WEFT_OK) {
		char *newline = memchr(at, '\n', (size_t)(end - at));
		char *stop = newline != NULL ? newline : end;
		*stop = '\0';
		r.line++;
		st = parse_line(&r, at, (size_t)(stop - at));
		at = stop + 1;
	}
	return st;
}

static enum weft_status
read_whole(int fd, const struct wf_options *options, struct wf_option_file *file)
{
	/* One byte more than allowed distinguishes a file that is too long from one that just fits.
	 */
	while (file->bytes <= WF_OPTION_FILE_BYTES) {
		ssize_t got =
			read(fd, file->text + file->bytes, WF_OPTION_FILE_BYTES + 1 - file->bytes);
		if (got == 0) {
			return WEFT_OK;
		}
		if (got < 0 && errno != EINTR) {
			return wf_fail_errno(WEFT_IO, errno, "%s: %s=%.*s", options->program,
					     file->given_as, PATH_QUOTE, file->path);
		}
		file->bytes += got > 0 ? (size_t)got : 0;
	}
	return wf_fail(WEFT_INVALID, "%s: %s=%.*s: longer than %u bytes", options->program,
		       file->given_as, PATH_QUOTE, file->path, WF_OPTION_FILE_BYTES);
}

static bool
ends_with(const char *text, const char *end)
{
	size_t bytes = strlen(text);
	size_t end_bytes = strlen(end);
	return bytes >= end_bytes && strcmp(text + bytes - end_bytes, end) == 0;
}

enum weft_status
wf_option_file_read(struct wf_options *options, const char *path)
{
	struct wf_option_file *file = options->file;
	file->path = path;
	if (ends_with(path, ".py")) {
		return wf_fail(WEFT_UNSUPPORTED,
			       "%s: %s=%.*s: a model written in Python is the original's; "
			       "here models are built in (weft train MODEL), and --config is a "
			       "file of name = value lines",
			       options->program, file->given_as, PATH_QUOTE, path);
	}
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0) {
		return wf_fail_errno(WEFT_IO, errno, "%s: %s=%.*s", options->program,
				     file->given_as, PATH_QUOTE, path);
	}
	enum weft_status st = read_whole(fd, options, file);
	(void)close(fd);
	return st == WEFT_OK ? wf_option_file_parse(options) : st;
}
