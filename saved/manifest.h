/* SPDX-License-Identifier: Apache-2.0 */
/* manifest: the text that describes the contents of a saved directory. It has a single spelling: a
 * decoded text encodes to the same bytes. README.md shows one. Thread: the caller's. */
#pragma once

#include "base/shape.h"
#include "saved/file.h"
#include "saved/saved.h"
#include "wire/head.h"

#define WF_MANIFEST_FILE "manifest"
/* The manifest of a save that is being written, created first and removed at the end: it names the
 * files without sizes and checksums. */
#define WF_MANIFEST_DRAFT ".draft"
/* The version of the format, 1 to 128: 1, and for what it has besides: */
#define WF_MANIFEST_FORMAT 1u
#define WF_MANIFEST_FORMAT_TABLES 1u  /* tables */
#define WF_MANIFEST_FORMAT_BATCH 2u   /* the batches of a pass that is not complete */
#define WF_MANIFEST_FORMAT_SHAPES 4u  /* shapes of tensors */
#define WF_MANIFEST_FORMAT_ASIDES 8u  /* arrays that are kept for other programs */
#define WF_MANIFEST_FORMAT_PARTS 16u  /* a snapshot of pservers: parts in place of files */
#define WF_MANIFEST_FORMAT_BASE 32u   /* ... of tables only what has changed since another one */
#define WF_MANIFEST_FORMAT_VECTOR 64u /* ... whose slices have versions of their own */
#define WF_MANIFEST_FORMAT_ALL 127u
#define WF_MANIFEST_BYTES_MAX (4u << 20)
#define WF_TENSOR_HEADER_BYTES 16u          /* of a parameter file */
#define WF_MANIFEST_POSITION_BYTES_MAX 260u /* WF_POSITION_BYTES_MAX of wire/messages.h */
#define WF_MANIFEST_PART_NAME_BYTES 24u

struct wf_manifest_tensor {
	char name[WF_SAVED_NAME_BYTES];
	uint64_t rows, cols;
	char shape[WF_SHAPE_TEXT_BYTES]; /* "": it is not known */
	uint32_t state_count;
	uint32_t crc[1 + WF_SAVED_STATE_MAX]; /* CRC32C of each file: values, then states */
};

struct wf_manifest_table {
	char name[WF_SAVED_NAME_BYTES];
	char optimizer[32];
	uint32_t dim;
	uint64_t rows;
	uint64_t bytes; /* of the file, and its CRC32C */
	uint32_t crc;
	/* From the header of the file, not in the manifest; known once the file has been
	 * checked. */
	struct wf_rows_head head;
};

struct wf_manifest_aside {
	char name[WF_SAVED_NAME_BYTES];
	enum wf_array_type type;
	char shape[WF_SHAPE_TEXT_BYTES];
	uint64_t bytes; /* of the file, and its CRC32C */
	uint32_t crc;
};

/* Where a trainer was in its data at the step of a snapshot. */
struct wf_manifest_position {
	/* In a vector: the last step of the trainer that every slice has, and how many steps of the
	 * trainer that are, over all passes; else 0. */
	uint64_t step, made;
	uint32_t trainer;
	uint32_t bytes; /* of the position, which is the trainer's; 0: it gave none */
	uint8_t position[WF_MANIFEST_POSITION_BYTES_MAX];
};

/* The file of one lane: part.h. */
struct wf_manifest_part {
	char name[WF_MANIFEST_PART_NAME_BYTES];
	uint32_t pserver;
	uint32_t crc; /* CRC32C of the file */
	uint64_t bytes;
};

/* What only a snapshot has; zeroed in the manifest of a pass. */
struct wf_manifest_parts {
	uint64_t epoch;
	/* The step of the snapshot of the same epoch of which this one is a delta: its parts have
	 * only those rows that have changed since. 0: it is complete. */
	uint64_t base_step;
	uint32_t dense_lanes, sparse_lanes; /* of each pserver */
	uint32_t pserver_count;
	uint32_t trainer_count;
	/* Slices have versions of their own, and trainers steps of their own: each trainer has a
	 * position. Else all is of one step. */
	bool is_vector;
	uint32_t position_count;
	struct wf_manifest_position *position; /* [position_count], trainers ascending */
	uint32_t part_count;                   /* one for each lane of all pservers */
	struct wf_manifest_part *part; /* [part_count]; dense ones, then sparse ones, by lane */
};

/* Something is in it: tensors, tables or asides. With parts, tensors and tables have no files of
 * their own, so the checksums of tensors and the bytes, checksums and heads of tables are 0. */
struct wf_manifest {
	struct wf_saved_about about;
	struct wf_manifest_parts parts;
	uint32_t tensor_count;
	struct wf_manifest_tensor *tensor; /* [tensor_count], names ascending */
	uint32_t table_count;
	struct wf_manifest_table *table; /* [table_count], names ascending */
	uint32_t aside_count;
	struct wf_manifest_aside
		*aside; /* [aside_count], names ascending, none of them a tensor's */
};

/* Bytes of each of the tensor's files; 0: more than a file can have. */
uint64_t wf_manifest_file_bytes(uint64_t rows, uint64_t cols);
/* Name of file `idx` of a tensor, 0: values. `out` is [WF_SAVED_NAME_BYTES + 16]. */
#define WF_MANIFEST_NAME_BYTES (WF_SAVED_NAME_BYTES + 16u)
void wf_manifest_file_name(const char *tensor, unsigned idx, char *out);
/* Bytes of such an array's file; false: it is no shape, or more than a file can have. */
bool wf_manifest_aside_bytes(enum wf_array_type type, const char *shape, uint64_t *out);
/* Name of a table's file. */
void wf_manifest_rows_name(const char *table, char *out);
/* Name of a lane's part, "dense-0" or "sparse-12" by its global number. `out` is
 * [WF_MANIFEST_PART_NAME_BYTES]. */
void wf_manifest_part_name(enum wf_service service, uint32_t lane, char *out);
/* The lane of a part's name; false: no part has that name. */
bool wf_manifest_part_lane(const char *name, enum wf_service *service, uint32_t *lane);
/* The part that stands at `idx`: its name, and the pserver of its lane. */
void wf_manifest_part_at(const struct wf_manifest_parts *parts, uint32_t idx,
			 struct wf_manifest_part *out);
/* Whether it is that of a snapshot. */
bool wf_manifest_is_snapshot(const struct wf_manifest *manifest);
/* Whether a file of that name is one of a tensor or a table, or a part; a zeroed manifest has
 * none. */
bool wf_manifest_has_file(const struct wf_manifest *manifest, const char *file);

/**
 * @param out ends with wf_manifest_fini
 * @return WEFT_OK; WEFT_DATA: line and what is wrong with it; WEFT_NOMEM
 */
enum weft_status wf_manifest_decode(struct wf_env *env, const char *text, size_t bytes,
				    struct wf_manifest *out) WEFT_MUST_CHECK;
void wf_manifest_fini(struct wf_env *env, struct wf_manifest *manifest); /* accepts a zeroed one */
/* As snprintf: writes what fits in `room`, and returns the number of bytes of the whole text. */
size_t wf_manifest_encode(const struct wf_manifest *manifest, char *out, size_t room);
/* Decodes a manifest, or the draft of one, that has been opened. WEFT_DATA: file and line; WEFT_IO;
 * WEFT_NOMEM. wf_manifest_fini ends `out`. */
enum weft_status wf_manifest_read(struct wf_env *env, struct wf_saved_file *file,
				  struct wf_manifest *out) WEFT_MUST_CHECK;
/* The manifest of a pass or snapshot, whose directory has this path; the directory, and the file in
 * it, may be links. As above. */
enum weft_status wf_manifest_load(struct wf_env *env, const struct wf_saved_calls *calls,
				  const char *path, struct wf_manifest *out) WEFT_MUST_CHECK;
/* Writes it in its current state into a new file. WEFT_INVALID: it is too long to be read back;
 * WEFT_IO; WEFT_NOMEM */
enum weft_status wf_manifest_write(struct wf_env *env, const struct wf_saved_spot *spot,
				   const struct wf_manifest *manifest) WEFT_MUST_CHECK;
