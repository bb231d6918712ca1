/* SPDX-License-Identifier: Apache-2.0 */
/* manifest_parts: the lines that only the manifest of a snapshot has: epoch, lanes, trainers,
 * base, positions, parts. Private to this folder. Thread: the caller's. */
#pragma once

#include "saved/manifest.h"
#include "saved/manifest_line.h"

/* Epoch, lanes, number of trainers, and where the version says so, the base. `step`: of the
 * snapshot. WEFT_DATA */
enum weft_status wf_manifest_parse_parts_about(struct wf_line_cursor *cursor, uint64_t step,
					       struct wf_manifest_parts *out) WEFT_MUST_CHECK;
/* Positions and parts, after these. wf_manifest_parts_fini ends them after a failure, too.
 * WEFT_DATA, WEFT_NOMEM */
enum weft_status wf_manifest_parse_parts(struct wf_env *env, struct wf_line_cursor *cursor,
					 struct wf_manifest_parts *out) WEFT_MUST_CHECK;
void wf_manifest_parts_fini(struct wf_env *env, struct wf_manifest_parts *parts);
void wf_manifest_add_parts_about(struct wf_line_text *text, const struct wf_manifest_parts *parts);
void wf_manifest_add_parts(struct wf_line_text *text, const struct wf_manifest_parts *parts);
/* Whether a file of that name is one of the parts. */
bool wf_manifest_parts_have(const struct wf_manifest_parts *parts, const char *file);
