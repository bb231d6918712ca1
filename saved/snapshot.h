/* SPDX-License-Identifier: Apache-2.0 */
/* snapshot: the folder of snapshots that pservers make of themselves. A snapshot is a directory
 * `epoch-00001-step-0000000180` with one part for each lane (part.h) and a manifest, which is
 * written last and names only parts that are durable. snapshots.md has the rules.
 *
 * Several pservers may share the folder, or each has its own. Nothing is locked: no two lanes of an
 * epoch have a name in common, and no file gets a name that exists.
 * Thread: any, one at a time for each folder object. Blocks on the disk. */
#pragma once

#include "saved/manifest.h"
#include "saved/part.h"
#include "saved/saved.h"
#include "saved/walk.h"

#define WF_SNAPSHOT_LEAF_BYTES 64u
#define WF_SNAPSHOT_LIST_MAX 65536u
#define WF_SNAPSHOT_CHAIN_MAX 1000u /* that build on each other */

struct wf_snapshot_id {
	uint64_t epoch, step;
};

/* The snapshot's name; `out` is [WF_SNAPSHOT_LEAF_BYTES]. */
void wf_snapshot_name(struct wf_snapshot_id id, char *out);
/* The snapshot of a name; false: none has this name. */
bool wf_snapshot_of_name(const char *name, struct wf_snapshot_id *out);

/* Opens the folder for writing, and creates it if it does not exist (not its parents). Its name is
 * durable afterwards. wf_saved_folder_close ends it. WEFT_IO: path and reason; WEFT_NOMEM */
enum weft_status wf_snapshot_folder_open(const struct wf_saved_place *place,
					 struct wf_saved_folder **out) WEFT_MUST_CHECK;

/* A file of a snapshot on its way. It must not move. */
struct wf_snapshot_file {
	struct wf_saved_folder *folder; /* borrowed */
	struct wf_saved_spot spot;      /* where to create the file */
	char directory[WF_SNAPSHOT_LEAF_BYTES];
	char leaf[WF_MANIFEST_PART_NAME_BYTES]; /* its name at the end */
	char temporary[WF_MANIFEST_NAME_BYTES]; /* and now */
	char path[WF_SAVED_PATH_BYTES];         /* of the temporary name */
	char directory_path[WF_SAVED_PATH_BYTES];
};

/* Makes the snapshot's directory, if it does not exist, and makes its name durable. Then the caller
 * creates a part at `out->spot` (wf_part_create), finishes it, and calls wf_snapshot_part_end with
 * the result, whatever that is. `leaf`: wf_manifest_part_name. WEFT_IO; WEFT_INVALID: the path is
 * too long */
enum weft_status wf_snapshot_part_begin(struct wf_saved_folder *folder, struct wf_snapshot_id id,
					const char *leaf,
					struct wf_snapshot_file *out) WEFT_MUST_CHECK;
/* After WEFT_OK the part has its name, and content and name are durable. Otherwise nothing is left
 * of it. WEFT_IO: another reason than `st`, such as a file that has the name already, which stays
 * as it is. */
enum weft_status wf_snapshot_part_end(struct wf_snapshot_file *file,
				      enum weft_status st) WEFT_MUST_CHECK;
/* Writes the manifest, of the same epoch and step, in the same way. All its parts are durable.
 * WEFT_INVALID: it could not be read back; WEFT_IO; WEFT_NOMEM */
enum weft_status wf_snapshot_manifest_write(struct wf_saved_folder *folder,
					    struct wf_snapshot_id id,
					    const struct wf_manifest *manifest) WEFT_MUST_CHECK;

struct wf_snapshot_list {
	uint32_t count;
	uint32_t room;
	struct wf_snapshot_id *id; /* [count], newest first: by epoch, then step */
};

/* The snapshots with a manifest. The caller chooses among them by the history of epochs. WEFT_IO:
 * the folder and the reason, or more than WF_SNAPSHOT_LIST_MAX; WEFT_NOMEM */
enum weft_status wf_snapshot_list(struct wf_env *env, const struct wf_saved_calls *calls,
				  const char *dir, struct wf_snapshot_list *out) WEFT_MUST_CHECK;
void wf_snapshot_list_fini(struct wf_env *env, struct wf_snapshot_list *list);
/* Tries the snapshots of a list, the newest first, until `use` can use one; those that it cannot
 * are named in the log. WEFT_DATA: none can be used; WEFT_NOMEM, which says nothing about a
 * snapshot, ends the search. */
enum weft_status wf_snapshot_choose(struct wf_env *env, const char *dir,
				    const struct wf_snapshot_list *list,
				    enum weft_status (*use)(void *arg, struct wf_snapshot_id id),
				    void *arg) WEFT_MUST_CHECK;

struct wf_snapshot;

/* Reads the manifest; no part is opened. WEFT_DATA: file and what is wrong with it, also if it is
 * that of another snapshot; WEFT_IO; WEFT_NOMEM */
enum weft_status wf_snapshot_open(struct wf_env *env, const struct wf_saved_calls *calls,
				  const char *dir, struct wf_snapshot_id id,
				  struct wf_snapshot **out) WEFT_MUST_CHECK;
void wf_snapshot_close(struct wf_snapshot *snapshot); /* accepts NULL */
const struct wf_manifest *wf_snapshot_manifest(const struct wf_snapshot *snapshot);
/* The snapshot of which this one is a delta; false: it is complete. */
bool wf_snapshot_base(const struct wf_snapshot *snapshot, struct wf_snapshot_id *out);
/* Opens that one. WEFT_DATA: this one is complete, or the names of both snapshots, and what is
 * wrong; WEFT_IO; WEFT_NOMEM */
enum weft_status wf_snapshot_open_base(const struct wf_snapshot *snapshot,
				       struct wf_snapshot **out) WEFT_MUST_CHECK;
/* The same for a delta of which only the manifest has been read; the other one is beside it. */
enum weft_status wf_snapshot_open_base_of(const struct wf_block_walk *walk,
					  struct wf_snapshot **out) WEFT_MUST_CHECK;
struct wf_block_walk wf_snapshot_walk(const struct wf_snapshot *snapshot);
/* CRC32C of the manifest's text. WEFT_NOMEM */
enum weft_status wf_snapshot_crc(const struct wf_snapshot *snapshot, uint32_t *out) WEFT_MUST_CHECK;
/* The path of part `idx` of the manifest, for wf_part_open. `out` is [WF_SAVED_PATH_BYTES]. */
enum weft_status wf_snapshot_part_path(const struct wf_snapshot *snapshot, uint32_t idx,
				       char *out) WEFT_MUST_CHECK;
/* Reads part `idx` from end to end and compares it with the manifest. WEFT_DATA: file, block and
 * what is wrong; WEFT_IO; WEFT_NOMEM */
enum weft_status wf_snapshot_verify_part(const struct wf_snapshot *snapshot,
					 uint32_t idx) WEFT_MUST_CHECK;
/* All parts; the failure is that of the first. */
enum weft_status wf_snapshot_verify(const struct wf_snapshot *snapshot) WEFT_MUST_CHECK;
/* All parts of it, and of the snapshots on which it builds, down to a complete one. */
enum weft_status wf_snapshot_verify_chain(const struct wf_snapshot *snapshot) WEFT_MUST_CHECK;

/* Removal, in this order: the manifest, durably; then, on every pserver, the parts. A snapshot in
 * whose directory anything lies that weft does not make is left as it is: WEFT_IO, with its name.
 * None of that id: WEFT_OK. */
enum weft_status wf_snapshot_remove_manifest(struct wf_saved_folder *folder,
					     struct wf_snapshot_id id) WEFT_MUST_CHECK;
/* WEFT_INVALID: it still has its manifest. */
enum weft_status wf_snapshot_remove_parts(struct wf_saved_folder *folder,
					  struct wf_snapshot_id id) WEFT_MUST_CHECK;
/* At the start: removes snapshots without a manifest and what has a temporary name, but for the
 * snapshot `under_way` (NULL: none is). What stays is logged. */
void wf_snapshot_sweep(struct wf_saved_folder *folder, const struct wf_snapshot_id *under_way);
