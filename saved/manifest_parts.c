/* SPDX-License-Identifier: Apache-2.0 */
/* Every lane of the job has one part, so order, names and pservers of the parts follow from the
 * line of lanes, and anything else is refused. Thread: the caller's. */
#include "saved/manifest_parts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/limits.h"
#include "wire/job.h"

#define POSITION_TEXT_BYTES_MIN 13u /* "position 0 -\n" */
#define PART_TEXT_BYTES_MIN 26u     /* "part dense-0 0 1 01234567\n" */
#define POSITION_WORD_BYTES (2u * WF_MANIFEST_POSITION_BYTES_MAX + 1u)

static const char *
name_of(enum wf_service service)
{
	return service == WF_SERVICE_SPARSE ? "sparse" : "dense";
}

void
wf_manifest_part_name(enum wf_service service, uint32_t lane, char *out)
{
	snprintf(out, WF_MANIFEST_PART_NAME_BYTES, "%s-%" PRIu32, name_of(service), lane);
}

bool
wf_manifest_part_lane(const char *name, enum wf_service *service, uint32_t *lane)
{
	char again[WF_MANIFEST_PART_NAME_BYTES];
	const char *dash = strchr(name, '-');

	if (dash == NULL || dash[1] < '0' || dash[1] > '9') {
		return false;
	}
	*service = name[0] == 's' ? WF_SERVICE_SPARSE : WF_SERVICE_DENSE;
	*lane = (uint32_t)strtoul(dash + 1, NULL, 10);
	wf_manifest_part_name(*service, *lane, again);
	return strcmp(again, name) == 0 && *lane < WF_LANE_COUNT_MAX;
}

void
wf_manifest_part_at(const struct wf_manifest_parts *parts, uint32_t idx,
		    struct wf_manifest_part *out)
{
	const uint32_t dense_count = parts->dense_lanes * parts->pserver_count;
	const bool is_dense = idx < dense_count;
	const uint32_t lane = is_dense ? idx : idx - dense_count;

	*out = (struct wf_manifest_part){
		.pserver = lane / (is_dense ? parts->dense_lanes : parts->sparse_lanes),
	};
	wf_manifest_part_name(is_dense ? WF_SERVICE_DENSE : WF_SERVICE_SPARSE, lane, out->name);
}

bool
wf_manifest_is_snapshot(const struct wf_manifest *manifest)
{
	return manifest->parts.part_count > 0;
}

bool
wf_manifest_parts_have(const struct wf_manifest_parts *parts, const char *file)
{
	enum wf_service service = WF_SERVICE_DENSE;
	uint32_t lane = 0;

	if (!wf_manifest_part_lane(file, &service, &lane)) {
		return false;
	}
	return lane < parts->pserver_count * (service == WF_SERVICE_DENSE ? parts->dense_lanes
									  : parts->sparse_lanes);
}

static enum weft_status
parse_lanes(struct wf_line_cursor *cursor, struct wf_manifest_parts *out)
{
	uint64_t dense = 0;
	uint64_t sparse = 0;
	uint64_t pservers = 0;
	enum weft_status st = wf_line_parse(cursor, "lanes");

	if (st != WEFT_OK) {
		return st;
	}
	if (!wf_line_parse_u64(cursor, &dense) || !wf_line_parse_u64(cursor, &sparse) ||
	    !wf_line_parse_u64(cursor, &pservers) || !wf_line_at_end(cursor)) {
		return wf_line_bad(cursor, "must have lanes of both services and pservers");
	}
	if (dense + sparse == 0 || dense > WF_PSERVER_LANES_MAX || sparse > WF_PSERVER_LANES_MAX ||
	    pservers == 0 || pservers > WF_LANE_COUNT_MAX ||
	    pservers * (dense > sparse ? dense : sparse) > WF_LANE_COUNT_MAX) {
		return wf_line_bad(cursor, "counts none, or more than a job can have");
	}
	out->dense_lanes = (uint32_t)dense;
	out->sparse_lanes = (uint32_t)sparse;
	out->pserver_count = (uint32_t)pservers;
	return WEFT_OK;
}

/* A base is older, so that no chain of them is endless. */
static enum weft_status
parse_base(struct wf_line_cursor *cursor, uint64_t step, struct wf_manifest_parts *out)
{
	uint64_t epoch = 0;

	enum weft_status st = wf_line_parse(cursor, "base");
	if (st != WEFT_OK) {
		return st;
	}
	if (!wf_line_parse_u64(cursor, &epoch) || !wf_line_parse_u64(cursor, &out->base_step) ||
	    !wf_line_at_end(cursor)) {
		return wf_line_bad(cursor, "must have epoch and step of a snapshot");
	}
	return epoch == out->epoch && out->base_step > 0 && out->base_step < step
		       ? WEFT_OK
		       : wf_line_bad(cursor, "must be an earlier step of the same epoch");
}

enum weft_status
wf_manifest_parse_parts_about(struct wf_line_cursor *cursor, uint64_t step,
			      struct wf_manifest_parts *out)
{
	uint64_t trainers = 0;

	enum weft_status st = wf_line_parse_number(cursor, "epoch", &out->epoch);
	if (st == WEFT_OK) {
		st = parse_lanes(cursor, out);
	}
	if (st == WEFT_OK) {
		st = wf_line_parse_number(cursor, "trainers", &trainers);
	}
	if (st == WEFT_OK && (trainers == 0 || trainers > WF_TRAINER_COUNT_MAX)) {
		st = wf_line_bad(cursor, "counts none, or more than a job can have");
	}
	out->trainer_count = (uint32_t)trainers;
	return st == WEFT_OK && (cursor->has & WF_MANIFEST_FORMAT_BASE) != 0
		       ? parse_base(cursor, step, out)
		       : st;
}

/* Two digits for each byte, and "-" for none. */
static bool
parse_hex(struct wf_line_cursor *cursor, struct wf_manifest_position *out)
{
	static const char digits[] = "0123456789abcdef";
	char word[POSITION_WORD_BYTES];

	if (wf_line_parse_word(cursor, word, sizeof(word)) == NULL) {
		return false;
	}
	if (strcmp(word, "-") == 0) {
		return true;
	}
	const size_t length = strlen(word);
	if (length % 2 != 0 || strspn(word, digits) != length) {
		return false;
	}
	for (size_t i = 0; i < length; i += 2) {
		out->position[i / 2] = (uint8_t)((strchr(digits, word[i]) - digits) << 4 |
						 (strchr(digits, word[i + 1]) - digits));
	}
	out->bytes = (uint32_t)(length / 2);
	return true;
}

static enum weft_status
parse_position(struct wf_line_cursor *cursor, const struct wf_manifest_parts *parts,
	       const struct wf_manifest_position *before, struct wf_manifest_position *out)
{
	uint64_t trainer = 0;
	enum weft_status st = wf_line_parse(cursor, "position");

	if (st != WEFT_OK) {
		return st;
	}
	if (!wf_line_parse_u64(cursor, &trainer) || trainer >= parts->trainer_count ||
	    (before != NULL && trainer <= before->trainer)) {
		return wf_line_bad(cursor, "must have a trainer, and trainers must ascend");
	}
	out->trainer = (uint32_t)trainer;
	if (!parse_hex(cursor, out) || (!parts->is_vector && !wf_line_at_end(cursor))) {
		return wf_line_bad(cursor,
				   "must end with a position of up to 260 bytes in hexadecimal, "
				   "or with -");
	}
	if (parts->is_vector &&
	    (!wf_line_parse_u64(cursor, &out->step) || !wf_line_parse_u64(cursor, &out->made) ||
	     !wf_line_at_end(cursor))) {
		return wf_line_bad(cursor, "must end with the trainer's last step that every slice "
					   "has, and with the number of its steps");
	}
	return WEFT_OK;
}

static enum weft_status
parse_positions(struct wf_env *env, struct wf_line_cursor *cursor, struct wf_manifest_parts *out)
{
	uint32_t count = 0;

	enum weft_status st =
		wf_line_parse_count(cursor, "positions", POSITION_TEXT_BYTES_MIN, &count);
	if (st == WEFT_OK && out->is_vector && count != out->trainer_count) {
		st = wf_line_bad(cursor,
				 "must count all trainers: each one has a position in a vector");
	}
	if (st != WEFT_OK || count == 0) {
		return st;
	}
	out->position = wf_zalloc_array(env, count, sizeof(*out->position));
	if (out->position == NULL) {
		return wf_fail(WEFT_NOMEM, "manifest: %" PRIu32 " positions", count);
	}
	out->position_count = count;
	for (uint32_t i = 0; st == WEFT_OK && i < count; i++) {
		st = parse_position(cursor, out, i == 0 ? NULL : &out->position[i - 1],
				    &out->position[i]);
	}
	return st;
}

static enum weft_status
parse_part(struct wf_line_cursor *cursor, const struct wf_manifest_parts *parts, uint32_t idx,
	   struct wf_manifest_part *out)
{
	char name[WF_MANIFEST_PART_NAME_BYTES];
	uint64_t pserver = 0;
	enum weft_status st = wf_line_parse(cursor, "part");

	if (st != WEFT_OK) {
		return st;
	}
	wf_manifest_part_at(parts, idx, out);
	if (wf_line_parse_word(cursor, name, sizeof(name)) == NULL ||
	    strcmp(name, out->name) != 0 || !wf_line_parse_u64(cursor, &pserver) ||
	    pserver != out->pserver) {
		return wf_line_bad(cursor, "must be the part of the next lane, and its pserver");
	}
	if (!wf_line_parse_u64(cursor, &out->bytes) || out->bytes == 0 || out->bytes > INT64_MAX ||
	    !wf_line_parse_crc(cursor, &out->crc) || !wf_line_at_end(cursor)) {
		return wf_line_bad(cursor, "must end with bytes and a checksum of 8 digits");
	}
	return WEFT_OK;
}

enum weft_status
wf_manifest_parse_parts(struct wf_env *env, struct wf_line_cursor *cursor,
			struct wf_manifest_parts *out)
{
	uint32_t count = 0;

	enum weft_status st = parse_positions(env, cursor, out);
	if (st == WEFT_OK) {
		st = wf_line_parse_count(cursor, "parts", PART_TEXT_BYTES_MIN, &count);
	}
	if (st == WEFT_OK &&
	    count != (uint64_t)(out->dense_lanes + out->sparse_lanes) * out->pserver_count) {
		st = wf_line_bad(cursor, "must count one part for each lane of all pservers");
	}
	if (st != WEFT_OK) {
		return st;
	}
	out->part = wf_zalloc_array(env, count, sizeof(*out->part));
	if (out->part == NULL) {
		return wf_fail(WEFT_NOMEM, "manifest: %" PRIu32 " parts", count);
	}
	out->part_count = count;
	for (uint32_t i = 0; st == WEFT_OK && i < count; i++) {
		st = parse_part(cursor, out, i, &out->part[i]);
	}
	return st;
}

void
wf_manifest_parts_fini(struct wf_env *env, struct wf_manifest_parts *parts)
{
	wf_free(env, parts->position, parts->position_count * sizeof(*parts->position));
	wf_free(env, parts->part, parts->part_count * sizeof(*parts->part));
	*parts = (struct wf_manifest_parts){0};
}

void
wf_manifest_add_parts_about(struct wf_line_text *text, const struct wf_manifest_parts *parts)
{
	wf_line_add(text, "epoch %" PRIu64 "\nlanes %" PRIu32 " %" PRIu32 " %" PRIu32 "\n",
		    parts->epoch, parts->dense_lanes, parts->sparse_lanes, parts->pserver_count);
	wf_line_add(text, "trainers %" PRIu32 "\n", parts->trainer_count);
	if (parts->base_step != 0) {
		wf_line_add(text, "base %" PRIu64 " %" PRIu64 "\n", parts->epoch, parts->base_step);
	}
}

static void
add_position(struct wf_line_text *text, const struct wf_manifest_position *position, bool is_vector)
{
	WF_ASSERT(position->bytes <= WF_MANIFEST_POSITION_BYTES_MAX);
	wf_line_add(text, "position %" PRIu32 " %s", position->trainer,
		    position->bytes == 0 ? "-" : "");
	for (uint32_t i = 0; i < position->bytes; i++) {
		wf_line_add(text, "%02x", position->position[i]);
	}
	if (is_vector) {
		wf_line_add(text, " %" PRIu64 " %" PRIu64, position->step, position->made);
	}
	wf_line_add(text, "\n");
}

void
wf_manifest_add_parts(struct wf_line_text *text, const struct wf_manifest_parts *parts)
{
	wf_line_add(text, "positions %" PRIu32 "\n", parts->position_count);
	for (uint32_t i = 0; i < parts->position_count; i++) {
		add_position(text, &parts->position[i], parts->is_vector);
	}
	wf_line_add(text, "parts %" PRIu32 "\n", parts->part_count);
	for (uint32_t i = 0; i < parts->part_count; i++) {
		const struct wf_manifest_part *part = &parts->part[i];
		wf_line_add(text, "part %s %" PRIu32 " %" PRIu64 " %08" PRIx32 "\n", part->name,
			    part->pserver, part->bytes, part->crc);
	}
}
