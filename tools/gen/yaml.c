/* SPDX-License-Identifier: Apache-2.0 */
/* yaml: see yaml.h. */
#include "tools/gen/yaml.h"

#include <inttypes.h>
#include <string.h>
#include <strings.h>

#include "base/assert.h"

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

/* Begins with a letter or a slash, so that it is no number, and has nothing in it that means
 * something to YAML. The words are those that YAML 1.1 reads as a truth or as null. */
static bool
is_plain(const char *text)
{
	static const char *const words[] = {"y",     "n",  "yes", "no",  "true",
					    "false", "on", "off", "null"};

	if (text[0] == '\0' || strchr(LETTERS "/", text[0]) == NULL) {
		return false;
	}
	for (size_t i = 0; i < WF_ARRAY_COUNT(words); i++) {
		if (strcasecmp(text, words[i]) == 0) {
			return false;
		}
	}
	return text[strspn(text, LETTERS "0123456789_./-")] == '\0';
}

/* Decodes a character of UTF-8. Returns its length in bytes; 0: it is none. Longer forms than
 * necessary, surrogates and what is past U+10FFFF are none. */
static unsigned
decode(const unsigned char *at, uint32_t *out)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	unsigned bytes = at[0] < 0x80             ? 1
			 : (at[0] & 0xe0) == 0xc0 ? 2
			 : (at[0] & 0xf0) == 0xe0 ? 3
			 : (at[0] & 0xf8) == 0xf0 ? 4
						  : 0;
	if (bytes == 0) {
		return 0;
	}
	*out = bytes == 1 ? at[0] : at[0] & (0x7fu >> bytes);
	for (unsigned i = 1; i < bytes; i++) {
		if ((at[i] & 0xc0) != 0x80) { /* the closing NUL is none either */
			return 0;
		}
		*out = *out << 6 | (at[i] & 0x3fu);
	}
	bool is_surrogate = *out >= 0xd800 && *out <= 0xdfff;
	return *out < least[bytes] || is_surrogate || *out > 0x10ffff ? 0 : bytes;
}

/* Whether a character above ASCII may stand in a document as it is: it is printable to YAML, and no
 * line break. */
static bool
is_printable(uint32_t c)
{
	bool is_break = c == 0x85 || c == 0x2028 || c == 0x2029;
	bool is_mark = c == 0xfeff || c == 0xfffe || c == 0xffff;
	return c >= 0xa0 && !is_break && !is_mark;
}

static void
print_quoted(struct wf_yaml *yaml, const char *text)
{
	fputc('"', yaml->out);
	for (const unsigned char *at = (const unsigned char *)text; *at != '\0';) {
		uint32_t c;
		unsigned bytes = decode(at, &c);
		if (bytes == 0) {
			yaml->bad = text;
			break;
		}
		if (c == '"' || c == '\\') {
			fprintf(yaml->out, "\\%c", (char)c);
		} else if (c == '$' && yaml->doubles_dollars && (at[1] == '$' || at[1] == '(')) {
			fputs("$$", yaml->out);
		} else if (c == '\n') {
			fputs("\\n", yaml->out);
		} else if (c == '\t') {
			fputs("\\t", yaml->out);
		} else if (c < 0x80 ? c < ' ' || c == 0x7f : !is_printable(c)) {
			fprintf(yaml->out, "\\U%08" PRIX32, c);
		} else {
			fwrite(at, 1, bytes, yaml->out);
		}
		at += bytes;
	}
	fputc('"', yaml->out);
}

static void
print_scalar(struct wf_yaml *yaml, const char *text)
{
	if (is_plain(text)) {
		fputs(text, yaml->out);
	} else {
		print_quoted(yaml, text);
	}
	fputc('\n', yaml->out);
}

/* What stands in front of a key or an item. */
static void
begin_line(struct wf_yaml *yaml)
{
	WF_ASSERT(!yaml->dash || yaml->depth > 0);
	unsigned levels = yaml->dash ? yaml->depth - 1 : yaml->depth;
	fprintf(yaml->out, "%*s%s", (int)(2 * levels), "", yaml->dash ? "- " : "");
	yaml->dash = false;
}

static void
print_key(struct wf_yaml *yaml, const char *key)
{
	WF_ASSERT(is_plain(key));
	begin_line(yaml);
	fprintf(yaml->out, "%s:", key);
}

void
wf_yaml_comment(struct wf_yaml *yaml, const char *text)
{
	WF_ASSERT(!yaml->dash);
	while (*text != '\0') {
		size_t bytes = strcspn(text, "\n");
		fprintf(yaml->out, "# %.*s\n", (int)bytes, text);
		text += bytes + (text[bytes] == '\n');
	}
}

void
wf_yaml_document(struct wf_yaml *yaml)
{
	WF_ASSERT(yaml->depth == 0);
	fputs("---\n", yaml->out);
}

void
wf_yaml_map(struct wf_yaml *yaml, const char *key)
{
	print_key(yaml, key);
	fputc('\n', yaml->out);
	yaml->depth++;
}

void
wf_yaml_map_end(struct wf_yaml *yaml)
{
	WF_ASSERT(yaml->depth > 0);
	yaml->depth--;
}

void
wf_yaml_list(struct wf_yaml *yaml, const char *key)
{
	print_key(yaml, key);
	fputc('\n', yaml->out);
}

void
wf_yaml_item(struct wf_yaml *yaml)
{
	yaml->depth++;
	yaml->dash = true;
}

void
wf_yaml_item_end(struct wf_yaml *yaml)
{
	WF_ASSERT(!yaml->dash); /* an item has a key at least */
	WF_ASSERT(yaml->depth > 0);
	yaml->depth--;
}

void
wf_yaml_item_text(struct wf_yaml *yaml, const char *text)
{
	fprintf(yaml->out, "%*s- ", (int)(2 * yaml->depth), "");
	print_scalar(yaml, text);
}

void
wf_yaml_item_number(struct wf_yaml *yaml, uint64_t number)
{
	fprintf(yaml->out, "%*s- %" PRIu64 "\n", (int)(2 * yaml->depth), "", number);
}

void
wf_yaml_text(struct wf_yaml *yaml, const char *key, const char *text)
{
	print_key(yaml, key);
	fputc(' ', yaml->out);
	print_scalar(yaml, text);
}

void
wf_yaml_number(struct wf_yaml *yaml, const char *key, uint64_t number)
{
	print_key(yaml, key);
	fprintf(yaml->out, " %" PRIu64 "\n", number);
}

void
wf_yaml_truth(struct wf_yaml *yaml, const char *key, bool truth)
{
	print_key(yaml, key);
	fprintf(yaml->out, " %s\n", truth ? "true" : "false");
}

void
wf_yaml_empty_list(struct wf_yaml *yaml, const char *key)
{
	print_key(yaml, key);
	fputs(" []\n", yaml->out);
}

enum weft_status
wf_yaml_check(const struct wf_yaml *yaml)
{
	WF_ASSERT(yaml->depth == 0);
	if (yaml->bad != NULL) {
		return wf_fail(WEFT_INVALID,
			       "'%.80s' is not UTF-8, which a manifest cannot hold; rename what "
			       "it names, or let a script of yours give the argument",
			       yaml->bad);
	}
	return WEFT_OK;
}
