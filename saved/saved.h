/* SPDX-License-Identifier: Apache-2.0 */
/* saved: a model that outlives its job: a directory `pass-00000` with a manifest and one file for
 * each array, in the original's parameter format. A save exists as a whole or not at all: it is
 * written beside its final name, synced, and renamed. A load uses nothing before every file has
 * been checked. README.md has the format.
 *
 * Thread: any, one at a time for each folder. Blocks on the disk. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/env.h"
#include "base/settings.h"
#include "saved/array_type.h"
#include "saved/names.h"
#include "saved/rows.h"

#define WF_SAVED_STATE_MAX 5u

/* What a save knows of its job. */
struct wf_saved_about {
	uint64_t pass;    /* the last one applied, from 0 */
	uint64_t batch;   /* in the middle of that pass: batches of trainer 0 so far; 0: all */
	uint64_t step;    /* steps applied so far */
	uint64_t samples; /* over which these ran, of all trainers */
	char version[32]; /* of the weft that wrote it: one word */
	char optimizer[32];
	char settings[512]; /* printable, for people and for comparison as a whole */
};

struct wf_saved_tensor {
	const char *name; /* lent; wf_saved_name_settle makes it a file's */
	uint64_t rows, cols;
	float *value; /* [rows, cols] */
	uint32_t state_count;
	float *state[WF_SAVED_STATE_MAX]; /* [rows, cols] each */
	const char *shape; /* lent; base/shape.h, of as many elements; NULL or "": not known */
};

/* A sparse table to save. */
struct wf_saved_table {
	const char *name;      /* lent; as a tensor's; no tensor has it */
	const char *optimizer; /* one word: what the state belongs to */
	struct wf_rows_head head;
	/* Puts all partitions and their rows: wf_rows_begin and wf_rows_put. */
	enum weft_status (*fill)(const struct wf_saved_table *table, struct wf_rows_writer *to);
	void *source; /* fill's */
};

/* An array that is kept as it is, for a program that exports it again: what another program had
 * beside its tensors of f32. */
struct wf_saved_aside {
	const char *name; /* lent; as a tensor's; neither tensor nor table has it */
	enum wf_array_type type;
	const char *shape; /* lent; base/shape.h */
	const void *bytes; /* lent; little-endian, row by row */
};

struct wf_saved_content {
	const struct wf_saved_tensor *tensor; /* [tensor_count] */
	uint32_t tensor_count;
	const struct wf_saved_table
		*table; /* [table_count]; something there is of one of the three */
	uint32_t table_count;
	const struct wf_saved_aside *aside; /* [aside_count] */
	uint32_t aside_count;
};

/* Where passes are saved. */
struct wf_saved_place {
	struct wf_env *env;
	const struct wf_saved_calls *calls; /* wf_saved_posix() */
	const char *dir;                    /* may be a link to a folder */
};

/* Fills in optimizer and settings: those of the session that all trainers have alike, where they
 * are not at their defaults; of these, those that the bits depend on. */
void wf_saved_describe(const struct wf_session_values *values, struct wf_saved_about *about);
/* "dir/pass-00003". `out` is [WF_SAVED_PATH_BYTES]. WEFT_INVALID: too long. */
enum weft_status wf_saved_pass_path(const char *dir, uint64_t pass, char *out) WEFT_MUST_CHECK;
/* The folder, open and locked: no other process saves there while it is open. */
struct wf_saved_folder;

/**
 * Creates the folder if it does not exist (not its parents), locks it, and checks that files can be
 * created in it. What an interrupted save left there is removed, or gets its name back.
 * @return WEFT_OK; WEFT_UNAVAILABLE: the process that saves there; WEFT_IO: path and reason;
 *         WEFT_NOMEM
 */
enum weft_status wf_saved_folder_open(const struct wf_saved_place *place,
				      struct wf_saved_folder **out) WEFT_MUST_CHECK;
void wf_saved_folder_close(struct wf_saved_folder *folder); /* accepts NULL */
/* Checks that passes `first` to `end` - 1 can be saved: nothing that weft did not make has one of
 * their names. WEFT_IO: path, what it is, remedy. */
enum weft_status wf_saved_folder_check(const struct wf_saved_folder *folder, uint64_t first,
				       uint64_t end) WEFT_MUST_CHECK;

/**
 * Saves a pass; one of the same number is replaced. What an interrupted save left in the folder is
 * removed first.
 * @return WEFT_OK: it is on the disk; WEFT_IO: path and reason, nothing of the new save is left and
 *         the older ones are as they were; WEFT_INVALID: a name or text that cannot be saved;
 *         WEFT_NOMEM
 */
enum weft_status wf_saved_write(struct wf_saved_folder *folder, const struct wf_saved_about *about,
				const struct wf_saved_tensor *tensor,
				uint32_t tensor_count) WEFT_MUST_CHECK;
/* The same, with tables; a failure of `fill` is the save's. */
enum weft_status wf_saved_write_all(struct wf_saved_folder *folder,
				    const struct wf_saved_about *about,
				    const struct wf_saved_content *content) WEFT_MUST_CHECK;
/* Removes all saves of passes before `pass`. WEFT_IO: path and reason, of the first one that
 * stays. */
enum weft_status wf_saved_remove_older(struct wf_saved_folder *folder,
				       uint64_t pass) WEFT_MUST_CHECK;

/* The last pass in a folder, one that an interrupted save put aside included. WEFT_DATA: there is
 * none; WEFT_IO: the folder and the reason */
enum weft_status wf_saved_find_last(const struct wf_saved_calls *calls, const char *dir,
				    uint64_t *out) WEFT_MUST_CHECK;

/* The last one before pass `end`. As above. */
enum weft_status wf_saved_find_before(const struct wf_saved_calls *calls, const char *dir,
				      uint64_t end, uint64_t *out) WEFT_MUST_CHECK;

struct wf_saved;

/**
 * Opens a save and checks every byte of it.
 * @param path of the directory, "dir/pass-00003"; it, and files in it, may be links
 * @return WEFT_OK; WEFT_DATA: file and what is wrong with it (missing, size, checksum, format);
 *         WEFT_IO: file and the system's reason; WEFT_NOMEM
 */
enum weft_status wf_saved_open(struct wf_env *env, const struct wf_saved_calls *calls,
			       const char *path, struct wf_saved **out) WEFT_MUST_CHECK;
/* The same of a pass or of a snapshot of pservers (snapshot.h), whose blocks are put together as
 * they are read. WEFT_DATA: also file, block and reason */
enum weft_status wf_saved_open_any(struct wf_env *env, const struct wf_saved_calls *calls,
				   const char *path, struct wf_saved **out) WEFT_MUST_CHECK;
/* The same, and of a folder of snapshots the newest one that is whole, of the history that remains,
 * with which a job would go on; after a job that has ended well, of its own. Those that are not
 * whole are named in the log. */
enum weft_status wf_saved_open_newest(struct wf_env *env, const struct wf_saved_calls *calls,
				      const char *path, struct wf_saved **out) WEFT_MUST_CHECK;
void wf_saved_close(struct wf_saved *saved); /* accepts NULL */
const struct wf_saved_about *wf_saved_about(const struct wf_saved *saved);
struct wf_snapshot_id;
/* Whether it is a snapshot, and then which one. */
bool wf_saved_snapshot(const struct wf_saved *saved, struct wf_snapshot_id *out);
/* Of its directory. Lent until close. */
const char *wf_saved_path(const struct wf_saved *saved);
/**
 * Fills the arrays of a model whose tensors are those of the save, in any order. Shapes are
 * compared where model and save both have one; a snapshot has none, and rows and columns neither,
 * but the number of elements.
 * @param with_state the state arrays too; otherwise `state_count` is ignored
 * @return WEFT_OK; WEFT_DATA: the tensor and how it differs, nothing was written; or a file changed
 *         since it was opened, arrays may have been written; WEFT_IO
 */
enum weft_status wf_saved_load(const struct wf_saved *saved, const struct wf_saved_tensor *tensor,
			       uint32_t tensor_count, bool with_state) WEFT_MUST_CHECK;
/**
 * Reads a table of the save.
 * @param table name, optimizer and head of the table that gets the rows; the step is not compared.
 *        optimizer NULL: only values are read, so only dim and vocabulary must be the same
 * @param out ends with wf_rows_close
 * @return WEFT_OK; WEFT_DATA: the table and how it differs; WEFT_IO; WEFT_NOMEM
 */
enum weft_status wf_saved_open_table(const struct wf_saved *saved,
				     const struct wf_saved_table *table,
				     struct wf_rows_reader **out) WEFT_MUST_CHECK;
/* How many tables it has. */
uint32_t wf_saved_table_count(const struct wf_saved *saved);
/* How many arrays it keeps aside. */
uint32_t wf_saved_aside_count(const struct wf_saved *saved);
/**
 * Writes the save's tensors as one safetensors file, which appears whole or not at all; a file of
 * that name is replaced. A table is NAME.keys (u64) and NAME.values, by partition and key.
 * @param with_state state arrays too, as NAME.state0; of a table NAME.state, NAME.stamp, NAME.born,
 *        and NAME.show and NAME.click where it has them
 * @return WEFT_OK; WEFT_DATA, WEFT_IO: file and reason; WEFT_NOMEM; WEFT_INVALID: the path is
 *         a device, a pipe or a link, or a file of the save
 */
enum weft_status wf_saved_export_safetensors(const struct wf_saved *saved, const char *path,
					     bool with_state) WEFT_MUST_CHECK;
/* The same arrays as one npz file: a zip of npy files, as numpy.load reads it. WEFT_DATA also for
 * an array of bf16, which NumPy does not have. */
enum weft_status wf_saved_export_npz(const struct wf_saved *saved, const char *path,
				     bool with_state) WEFT_MUST_CHECK;
/* The values as a tar of parameters, as the original's Parameters.to_tar wrote it: for each tensor
 * NAME, a parameter file, and NAME.protobuf, its ParameterConfig with name, size and dims.
 * WEFT_DATA and so on as above; WEFT_INVALID: state is wanted, or it has tables or arrays
 * aside. */
enum weft_status wf_saved_export_tar(const struct wf_saved *saved, const char *path,
				     bool with_state) WEFT_MUST_CHECK;
/* Writes the values as a folder of parameter files with a file `done`, as the original's trainer
 * saved a pass. It replaces an empty folder, and nothing else: WEFT_IO. WEFT_INVALID as for the
 * tar. */
enum weft_status wf_saved_export_paddle(const struct wf_saved *saved, const char *path,
					bool with_state) WEFT_MUST_CHECK;
