/* SPDX-License-Identifier: Apache-2.0 */
/* yaml: writes a document of YAML in block style: maps, lists and scalars, two blanks per level. A
 * text is written plain only where no reader of YAML 1.1 or 1.2 can take it for something else (a
 * number, a truth, null); otherwise it stands between double quotes. Thread: any one. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/status.h"

struct wf_yaml {
	FILE *out; /* the caller's */
	unsigned depth;
	bool dash; /* the next key or value begins an item of a list */
	/* A '$' that would begin an expansion is doubled in texts: Kubernetes replaces $(NAME) in
	 * commands and in values of variables, and $$ by a single one. */
	bool doubles_dollars;
	const char *bad; /* a text that is no UTF-8, which YAML cannot hold; NULL: none so far */
};

/* A line "# text"; a line break in the text begins another one. */
void wf_yaml_comment(struct wf_yaml *yaml, const char *text);
/* Begins another document. */
void wf_yaml_document(struct wf_yaml *yaml);

/* "key:", and what is written until the end stands in it. */
void wf_yaml_map(struct wf_yaml *yaml, const char *key);
void wf_yaml_map_end(struct wf_yaml *yaml);

/* "key:", before its items. A list has no end of its own, and at least one item. */
void wf_yaml_list(struct wf_yaml *yaml, const char *key);
/* An item that is a map. */
void wf_yaml_item(struct wf_yaml *yaml);
void wf_yaml_item_end(struct wf_yaml *yaml);
/* Items that are values. */
void wf_yaml_item_text(struct wf_yaml *yaml, const char *text);
void wf_yaml_item_number(struct wf_yaml *yaml, uint64_t number);

/* "key: value" */
void wf_yaml_text(struct wf_yaml *yaml, const char *key, const char *text);
void wf_yaml_number(struct wf_yaml *yaml, const char *key, uint64_t number);
void wf_yaml_truth(struct wf_yaml *yaml, const char *key, bool truth);
void wf_yaml_empty_list(struct wf_yaml *yaml, const char *key);

/* WEFT_INVALID: a text was no UTF-8, and what was written is no document. */
enum weft_status wf_yaml_check(const struct wf_yaml *yaml) WEFT_MUST_CHECK;
