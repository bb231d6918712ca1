/* SPDX-License-Identifier: Apache-2.0 */
/* settings: each setting of a session, of a tensor and of a table, declared once: name, type,
 * default, limits, help. From here come the defaults of weft_session_opts and weft_table_opts, what
 * is allowed in them, and what can be set by name. Thread: any; the tables are constant. */
#pragma once

#include "base/env.h"
#include "base/options.h"
#include "weft/sparse.h"
#include "weft/weft.h"

#define WF_SETTING_TEXTS_MAX 16u /* settings that are texts */

/* Headings of the help pages of all programs that have these settings. */
#define WF_HEADING_OPTIMIZER "Optimizer"
#define WF_HEADING_TRANSPORT "Transport and CPUs"
#define WF_HEADING_TIME_LIMITS "Time limits"

/* Settings that have no field in weft_session_opts, which does not grow any more: programs set them
 * by name. A line is X(type of the value, name, type of the option, default, the rest of its row);
 * times are nanoseconds. */
#define WF_SETTINGS_BY_NAME(X)                                                                     \
	X(uint64_t, path_retry, WF_OPTION_DURATION, "0", .max = 3600 * WF_NS_PER_S,                \
	  .heading = WF_HEADING_TIME_LIMITS,                                                       \
	  .help = "How long a path (shared memory, RDMA) that broke is not used, and twice as "    \
		  "long after each further break. 0: 10 s.")                                       \
	X(uint64_t, rejoin_timeout, WF_OPTION_DURATION, "300s", .min = WF_NS_PER_MS,               \
	  .max = 7 * 86400 * WF_NS_PER_S, .of_pserver = true, .heading = WF_HEADING_TIME_LIMITS,   \
	  .help = "How long a job that has lost a member waits until all members are there again " \
		  "and it can go back to its newest snapshot, if the pservers have "               \
		  "--on_trainer_death=wait.")                                                      \
	X(bool, join, WF_OPTION_BOOL, "false",                                                     \
	  .help = "Take the empty place of this trainer_id in a job that runs, which the trainer " \
		  "before it has left, or was dropped from; the pservers need "                    \
		  "--on_trainer_death=drop. At a job that begins this has no effect.")             \
	X(bool, sparse_look_ahead, WF_OPTION_BOOL, "true", .heading = WF_HEADING_TRANSPORT,        \
	  .help = "Let sparse lanes send the rows of the next batch before the step under way "    \
		  "is applied, and correct those that it changes. No bit of any row depends on "   \
		  "it. For synchronous tables.")                                                   \
	X(uint64_t, all_reduce_ring, WF_OPTION_BYTES, "0", .max = 1ull << 30, .is_shared = true)   \
	X(const char *, secret_file, WF_OPTION_STRING, "", .of_pserver = true,                     \
	  .heading = WF_HEADING_TRANSPORT, .metavar = "FILE",                                      \
	  .help = "File with the secret of the job, 32 to 4096 bytes, the same on all pservers "   \
		  "and trainers. A connection then begins with a proof of both ends that they "    \
		  "have it, and a peer without it is refused. The file has to be the user's own "  \
		  "or root's, with mode 0400 or 0600, and no link. Every byte counts, a newline "  \
		  "at the end, too. Data travels unencrypted: docs/security.md.")

/* The same of a tensor. in_place: the result of a tensor that is only reduced replaces its
 * gradient, and weft_tensor_param and weft_tensor_grad are one array. It is the trainer's own
 * matter. */
#define WF_TENSOR_SETTINGS_BY_NAME(X)                                                              \
	X(const char *, shape, WF_OPTION_STRING, "", .help = NULL)                                 \
	X(bool, in_place, WF_OPTION_BOOL, "0", .help = NULL)

/* The values of a session's settings. */
struct wf_session_values {
	struct weft_session_opts opts; /* first: a setting has one offset in both */
#define WF_SETTING_FIELD(type, name, ...) type name;
	WF_SETTINGS_BY_NAME(WF_SETTING_FIELD)
};

/* The values of a tensor's settings. */
struct wf_tensor_values {
	struct weft_tensor_opts opts; /* first */
	WF_TENSOR_SETTINGS_BY_NAME(WF_SETTING_FIELD)
};
#undef WF_SETTING_FIELD

/* The values of any kind. */
union wf_settings_values {
	struct wf_session_values session;
	struct wf_tensor_values tensor;
	struct weft_table_opts table;
};

/* The settings of a kind. Offsets are those in struct wf_session_values, in wf_tensor_values and in
 * weft_table_opts, which does not grow any more either: a later setting goes into a struct of ours
 * behind it, as it is done for the others. `*count`: how many. NULL: there is no such kind. */
const struct wf_option *wf_settings_rows(enum weft_settings_kind kind, unsigned *count);

/* Appends the settings that programs offer as options to the program's own rows: those that have a
 * help text and no row there, under the original's name for them. `shift` is the offset of struct
 * wf_session_values in the program's target. Returns the new number of rows, at most `max`. */
unsigned wf_settings_offer(struct wf_option *rows, unsigned count, unsigned max, size_t shift);
/* The same for a pserver: the settings that both ends have. */
unsigned wf_settings_offer_pserver(struct wf_option *rows, unsigned count, unsigned max,
				   size_t shift);

/* Completes rows of a program that have is_setting: name, offset and width in its target, and a
 * help text if there is one, are the program's; the rest is copied from the setting of that name.
 */
void wf_settings_complete(struct wf_option *rows, unsigned count);

/* Sets every setting to its default, in a struct of the library's size; the rest of it is 0. */
void wf_session_defaults(struct wf_session_values *out);
void wf_table_defaults(struct weft_table_opts *out);

/* Checks each setting by itself; rules between settings are checked elsewhere. `values` is the
 * struct of that kind. WEFT_INVALID: the text names setting, value and what is allowed. */
enum weft_status wf_settings_check(enum weft_settings_kind kind,
				   const void *values) WEFT_MUST_CHECK;

/* The same, only for the settings that travel in descriptions. */
enum weft_status wf_settings_check_wire(enum weft_settings_kind kind,
					const void *values) WEFT_MUST_CHECK;

/* The same for the settings that pservers have. */
enum weft_status wf_settings_check_pserver(const struct wf_session_values *values) WEFT_MUST_CHECK;

/* The setting that the original calls `name`, if its name differs; otherwise NULL. */
const char *wf_setting_of_original(const char *name, size_t bytes);
/* The name of a setting in programs: the original's if there is one. */
const char *wf_setting_option_name(const char *name);

/* Copies a caller's struct of options, which begins with its size, into one of the library's size:
 * `own` holds the defaults, which stay for fields that the caller's struct lacks. A smaller struct
 * comes from an older header. A larger one comes from a newer header, and must be 0 behind the
 * fields that this library knows. WEFT_INVALID: it has fewer bytes than `least`, or is not 0 there.
 */
enum weft_status wf_opts_read(const char *name, const void *given, size_t least, void *own,
			      size_t own_bytes) WEFT_MUST_CHECK;

/* Copies defaults into a caller's struct of `out_bytes` bytes, whatever the size of the library's
 * struct. */
void wf_opts_give(void *out, size_t out_bytes, const void *opts, size_t bytes);

/* Writes what was set by name over `values`, the struct of that kind. Texts are those of
 * `settings`; NULL: nothing was set. WEFT_INVALID: the settings are of another kind. */
enum weft_status wf_settings_apply(const struct weft_settings *settings,
				   enum weft_settings_kind kind, void *values) WEFT_MUST_CHECK;
/* Adds the values that have no field in weft_session_opts as if they had been set by name.
 * WEFT_NOMEM. */
enum weft_status wf_settings_set_named(struct weft_settings *settings,
				       const struct wf_session_values *values) WEFT_MUST_CHECK;
/* Sets the env of a session with these settings; NULL, the default: this process's. It has to
 * outlive the session. */
void wf_settings_set_env(struct weft_settings *settings, struct wf_env *env);
struct wf_env *wf_settings_env(const struct weft_settings *settings);

/* As weft_session_open with options that have no settings by name, in this env. */
static inline enum weft_status
wf_session_open_in(struct wf_env *env, const struct weft_session_opts *opts,
		   struct weft_session **out)
{
	struct weft_session_opts own = *opts;
	struct weft_settings *settings = NULL;
	enum weft_status st = weft_settings_create(WEFT_SETTINGS_SESSION, &settings);
	if (st == WEFT_OK) {
		wf_settings_set_env(settings, env);
		own.settings = settings;
		st = weft_session_open(&own, out);
	}
	weft_settings_destroy(settings);
	return st;
}

/* Writes the settings that have to be the same on all trainers and are not at their defaults, for
 * texts, separated by `between`: "learning_rate=0.1 l2=0.5". Those of a session have their names in
 * programs. `out` has `bytes`; if there is no room for all, the last word is WF_SETTINGS_MORE. */
#define WF_SETTINGS_MORE "..."
void wf_settings_describe(enum weft_settings_kind kind, const void *values, char between, char *out,
			  size_t bytes);
/* Writes the default of a setting with such a name; returns false if there is none. */
bool wf_setting_initial(const char *name, size_t name_bytes, char *out, size_t bytes);

/* Checks that a trainer's number is below their number. WEFT_INVALID: the text has both. */
enum weft_status wf_session_place_check(const struct weft_session_opts *opts) WEFT_MUST_CHECK;
/* Checks the rules between settings. WEFT_INVALID: the text names setting, value and remedy. */
enum weft_status wf_session_rules_check(const struct wf_session_values *values) WEFT_MUST_CHECK;
/* The part of these for modes of tensors and the format of their values, */
enum weft_status wf_mode_rules_check(const struct wf_session_values *values) WEFT_MUST_CHECK;
/* and the part for settings that need whole steps. */
enum weft_status wf_step_rules_check(const struct wf_session_values *values) WEFT_MUST_CHECK;
/* The reason why a tensor has to be applied in whole steps: the end of a sentence that names the
 * setting. NULL: it has not. */
const char *wf_whole_steps_why(const struct weft_optimizer_opts *set);
/* Checks that no setting is set that rows of tables do not support. WEFT_INVALID: the text has the
 * setting's name in programs, and its value. */
enum weft_status wf_row_rules_check(const struct wf_session_values *values) WEFT_MUST_CHECK;

/* Replaces the 0 of settings in which it stands for another value by that value, as in
 * descriptions. */
void wf_session_settle(struct weft_session_opts *opts);
/* Checks that this has been done. WEFT_INVALID. */
enum weft_status wf_session_settled_check(const struct wf_session_values *values) WEFT_MUST_CHECK;

/* The value of a setting as text; a longer one is cut. `name` must be in the table. */
struct wf_setting_text {
	char text[64];
};
struct wf_setting_text wf_setting_text(const struct wf_session_values *values, const char *name);

/* How far trainers may be apart, and when a push comes too late, for programs that have one option
 * for tensors and rows: given to those modes that have such a limit. */
void wf_session_set_lag(struct weft_session_opts *opts, uint32_t staleness, double discard_ratio);

/* Elements whose summed gradient is not finite keep their value; else the job ends. */
static inline bool
wf_session_skips(const struct weft_session_opts *opts)
{
	return opts->skip_nonfinite != 0;
}

/* Whether trainers make steps by themselves between exchanges. */
static inline bool
wf_session_has_local_steps(const struct weft_session_opts *opts)
{
	return opts->dense_mode == WEFT_DENSE_LOCAL || opts->dense_mode == WEFT_DENSE_ELASTIC;
}

/* Lists the addresses of the texts in `values`; a text is NULL if the caller left it out. `text`
 * has WF_SETTING_TEXTS_MAX places. Returns their number. */
unsigned wf_session_texts(struct wf_session_values *values, const char **text[]);
