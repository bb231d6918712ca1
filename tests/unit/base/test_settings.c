/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the table of settings: it names each field of the public struct once, and is consistent.
 * tests/unit/trainer/test_options.c checks the defaults and limits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/options_internal.h"
#include "base/settings.h"

#define BYTES_MAX sizeof(struct wf_session_values)

/* Marks the bytes of a field; how many were marked already. */
static unsigned
mark(unsigned char *map, size_t offset, size_t bytes)
{
	unsigned twice = 0;
	for (size_t i = offset; i < offset + bytes; i++) {
		twice += map[i];
		map[i] = 1;
	}
	return twice;
}

#define MARK(opts, field)                                                                          \
	mark(map, offsetof(struct opts, field), sizeof(((struct opts *)NULL)->field))

/* What the settings of a kind have of the first `bytes` bytes of their struct; none has two rows.
 */
static void
mark_rows(enum weft_settings_kind kind, unsigned char *map, size_t bytes)
{
	unsigned count = 0;
	const struct wf_option *table = wf_settings_rows(kind, &count);
	memset(map, 0, BYTES_MAX);
	assert_true(count > 0);
	for (unsigned i = 0; i < count; i++) {
		if (table[i].offset >= bytes) { /* by name alone */
			assert_true(table[i].offset + table[i].bytes <= BYTES_MAX);
			assert_true(kind != WEFT_SETTINGS_TABLE);
			continue;
		}
		assert_true(table[i].offset + table[i].bytes <= bytes);
		assert_int_equal(mark(map, table[i].offset, table[i].bytes), 0);
	}
}

/* What is left is padding, which is there between fields of less than 8 bytes only. */
static void
only_padding_is_left(const unsigned char *map, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++) {
		size_t end = i;
		while (end < bytes && map[end] == 0) {
			end++;
		}
		assert_true(end - i < sizeof(uint64_t));
		assert_true(end == i || end % sizeof(uint32_t) == 0);
		i = end > i ? end : i;
	}
}

/* A field that has no row would keep what is in the caller's memory, and be checked by nobody. */
static void
each_field_of_a_struct_has_one_row(void **state)
{
	unsigned char map[BYTES_MAX];
	mark_rows(WEFT_SETTINGS_SESSION, map, sizeof(struct weft_session_opts));
	/* What is no setting. */
	assert_int_equal(MARK(weft_session_opts, struct_bytes) + MARK(weft_session_opts, log) +
				 MARK(weft_session_opts, log_arg) +
				 MARK(weft_session_opts, interrupted) +
				 MARK(weft_session_opts, interrupted_arg) +
				 MARK(weft_session_opts, settings),
			 0);
	only_padding_is_left(map, sizeof(struct weft_session_opts));
	mark_rows(WEFT_SETTINGS_TENSOR, map, sizeof(struct weft_tensor_opts));
	assert_int_equal(MARK(weft_tensor_opts, name) + MARK(weft_tensor_opts, rows) +
				 MARK(weft_tensor_opts, cols) + MARK(weft_tensor_opts, settings),
			 0);
	only_padding_is_left(map, sizeof(struct weft_tensor_opts));
	mark_rows(WEFT_SETTINGS_TABLE, map, sizeof(struct weft_table_opts));
	assert_int_equal(MARK(weft_table_opts, struct_bytes) + MARK(weft_table_opts, name) +
				 MARK(weft_table_opts, dim) + MARK(weft_table_opts, settings),
			 0);
	only_padding_is_left(map, sizeof(struct weft_table_opts));
}

/* A tensor's struct has no function that fills in its defaults: programs write what differs. */
static void
all_defaults_of_a_tensor_are_zero(void **state)
{
	struct wf_tensor_values values;
	unsigned count = 0;
	const struct wf_option *table = wf_settings_rows(WEFT_SETTINGS_TENSOR, &count);
	memset(&values, 0x5a, sizeof(values));
	wf_option_defaults(table, count, &values);
	for (unsigned i = 0; i < count; i++) {
		if (table[i].offset < sizeof(values.opts)) {
			assert_true(wf_option_number(&table[i], &values) == 0);
		}
	}
	assert_string_equal(values.shape, "");
	assert_int_equal(wf_settings_check(WEFT_SETTINGS_TENSOR, &values), WEFT_OK);
}

static void
a_table_has_the_defaults_of_its_header(void **state)
{
	struct weft_table_opts opts;
	memset(&opts, 0x5a, sizeof(opts));
	wf_table_defaults(&opts);
	assert_int_equal(opts.struct_bytes, sizeof(opts));
	assert_int_equal(opts.batch_keys_max, 65536);
	assert_string_equal(opts.optimizer.method, "sgd");
	assert_string_equal(opts.init, "zero");
	assert_null(opts.name);
	assert_null(opts.settings);
	assert_int_equal(opts.dim, 0);
	assert_int_equal(wf_settings_check(WEFT_SETTINGS_TABLE, &opts), WEFT_OK);
}

static void
no_two_settings_have_one_name(void **state)
{
	for (enum weft_settings_kind kind = WEFT_SETTINGS_SESSION; kind <= WEFT_SETTINGS_TABLE;
	     kind++) {
		unsigned count = 0;
		const struct wf_option *table = wf_settings_rows(kind, &count);
		assert_null(weft_settings_name(kind, count));
		assert_null(weft_settings_name(kind, UINT32_MAX));
		for (unsigned i = 0; i < count; i++) {
			assert_string_equal(weft_settings_name(kind, i), table[i].name);
			for (unsigned k = 0; k < i; k++) {
				assert_string_not_equal(table[i].name, table[k].name);
			}
		}
	}
	assert_null(weft_settings_name((enum weft_settings_kind)3, 0));
}

static void
what_is_no_setting_is_zero_in_the_defaults(void **state)
{
	struct wf_session_values values;
	const struct weft_session_opts *opts = &values.opts;
	memset(&values, 0x5a, sizeof(values));
	wf_session_defaults(&values);
	assert_int_equal(opts->struct_bytes, sizeof(*opts));
	assert_null(opts->log);
	assert_null(opts->log_arg);
	assert_null(opts->interrupted);
	assert_null(opts->interrupted_arg);
	assert_null(opts->settings);
	assert_int_equal(wf_settings_check(WEFT_SETTINGS_SESSION, &values), WEFT_OK);
}

static void
texts_are_found_where_they_stand(void **state)
{
	struct wf_session_values values;
	const char **text[WF_SETTING_TEXTS_MAX];
	wf_session_defaults(&values);
	unsigned count = wf_session_texts(&values, text);
	unsigned seen = 0;
	for (unsigned i = 0; i < count; i++) {
		seen += text[i] == &values.opts.pservers || text[i] == &values.opts.compared ||
			text[i] == &values.opts.optimizer.method ||
			text[i] == &values.opts.optimizer.schedule ||
			text[i] == &values.opts.optimizer.schedule_args ||
			text[i] == &values.opts.transport || text[i] == &values.opts.pin ||
			text[i] == &values.opts.numerics ||
			text[i] == &values.opts.tcp_congestion || text[i] == &values.opts.verbs ||
			text[i] == &values.secret_file;
	}
	assert_int_equal(seen, 11);
	assert_int_equal(count, 11);
}

static void
has_value(struct weft_settings *settings, const char *name, const char *value)
{
	char text[64];
	assert_int_equal(weft_settings_get(settings, name, text, sizeof(text)), WEFT_OK);
	assert_string_equal(text, value);
}

/* Each type of setting once, with what a command line would take. */
static void
settings_are_set_and_read_by_name(void **state)
{
	static const struct {
		const char *name;
		const char *value;
		const char *initial;
		const char *read; /* NULL: as it was set */
	} rows[] = {
		{"pservers", "a,b:7000", "127.0.0.1", NULL},
		{"port", "65535", "7164", NULL},
		{"skip_nonfinite", "yes", "false", "true"},
		{"slice_bytes", "65536", "256KiB", "64KiB"},
		{"spin", "0.02ms", "auto", "20us"},
		{"optimizer", "adam", "sgd", NULL},
		{"learning_rate", "1e-2", "0.001", "0.01"},
		{"grad_reduce", "mean", "sum", NULL},
		{"dense_mode", "bounded", "sync", NULL},
		{"connect-timeout", "2m", "5m", NULL},
		{"path_retry", "250ms", "0s", NULL},
		{"secret_file", "/run/weft/secret", "", NULL},
	};
	struct weft_settings *settings;
	assert_int_equal(weft_settings_create(WEFT_SETTINGS_SESSION, &settings), WEFT_OK);
	for (unsigned i = 0; i < WF_ARRAY_COUNT(rows); i++) {
		char value[64]; /* the caller's, and gone afterwards */
		has_value(settings, rows[i].name, rows[i].initial);
		(void)snprintf(value, sizeof(value), "%s", rows[i].value);
		assert_int_equal(weft_settings_set(settings, rows[i].name, value), WEFT_OK);
		memset(value, 'x', sizeof(value));
		has_value(settings, rows[i].name,
			  rows[i].read != NULL ? rows[i].read : rows[i].value);
	}
	for (unsigned i = 0; i < WF_ARRAY_COUNT(rows); i++) {
		assert_int_equal(weft_settings_set(settings, rows[i].name, NULL), WEFT_OK);
		has_value(settings, rows[i].name, rows[i].initial);
	}
	weft_settings_destroy(settings);
	weft_settings_destroy(NULL);
}

static void
names_of_the_original_are_known(void **state)
{
	static const char *const rows[][3] = {
		{"adam_beta1", "0.5", "beta1"},
		{"adam_beta2", "0.75", "beta2"},
		{"ada_epsilon", "0.125", "epsilon"},
		{"adam-epsilon", "0.25", "epsilon"},
		{"ada_rou", "0.5", "rho"},
		{"l2", "0.5", "decay"},
		{"gradient_clipping_threshold", "2", "clip"},
		{"global_norm_clipping_threshold", "3", "clip_norm"},
		{"learning_method", "rmsprop", "optimizer"},
		{"learning_rate_schedule", "manual", "schedule"},
		{"learning_rate_decay_a", "1.5", "schedule_a"},
		{"learning_rate_decay_b", "2.5", "schedule_b"},
		{"learning_rate_args", "1:2", "schedule_args"},
	};
	struct weft_settings *settings;
	assert_int_equal(weft_settings_create(WEFT_SETTINGS_SESSION, &settings), WEFT_OK);
	for (unsigned i = 0; i < WF_ARRAY_COUNT(rows); i++) {
		assert_int_equal(weft_settings_set(settings, rows[i][0], rows[i][1]), WEFT_OK);
		has_value(settings, rows[i][2], rows[i][1]);
		has_value(settings, rows[i][0], rows[i][1]);
	}
	weft_settings_destroy(settings);
}

static void
what_cannot_be_set_is_refused_and_changes_nothing(void **state)
{
	static const char *const rows[][3] = {
		{"spinn", "1", "a session has no setting \"spinn\"; did you mean spin?"},
		{"", "1", "a session has no setting \"\""},
		{"struct_bytes", "8", "a session has no setting \"struct_bytes\""},
		{"log", "x", "a session has no setting \"log\""},
		{"ports_num", "0", "ports_num=0: must be a whole number, from 1 to 256"},
		{"ports_num", "", "ports_num=: must be a whole number, from 1 to 256"},
		{"port", "65536", "port=65536: must be a whole number, from 1 to 65535"},
		{"spin", "fast", "spin=fast: must be a duration like"},
		{"dense_mode", "2",
		 "dense_mode=2: must be one of sync|async|bounded|local|elastic"},
		{"elastic_rate", "1.5", "elastic_rate=1.5: must be a number, from 0 to 1"},
		{"schedule", "never", "schedule=never: must be one of constant|linear|warmup|"},
		{"adam_beta1", "half", "adam_beta1=half: must be a number, from 0 to 1"},
	};
	struct weft_settings *settings;
	assert_int_equal(weft_settings_create(WEFT_SETTINGS_SESSION, &settings), WEFT_OK);
	for (unsigned i = 0; i < WF_ARRAY_COUNT(rows); i++) {
		assert_int_equal(weft_settings_set(settings, rows[i][0], rows[i][1]), WEFT_INVALID);
		assert_non_null(strstr(weft_last_error(), rows[i][2]));
	}
	char text[8] = "kept";
	assert_int_equal(weft_settings_get(settings, "spinn", text, sizeof(text)), WEFT_INVALID);
	assert_string_equal(text, "kept");
	struct wf_session_values values;
	wf_session_defaults(&values);
	values.opts.ports_num = 7;
	values.opts.optimizer.beta1 = 0.25;
	assert_int_equal(wf_settings_apply(settings, WEFT_SETTINGS_SESSION, &values), WEFT_OK);
	assert_int_equal(values.opts.ports_num, 7);
	assert_true(values.opts.optimizer.beta1 >= 0.25 && values.opts.optimizer.beta1 <= 0.25);
	/* A text that is longer than the caller's room. */
	assert_int_equal(weft_settings_set(settings, "pservers", "a.very.long.name"), WEFT_OK);
	assert_int_equal(weft_settings_get(settings, "pservers", text, sizeof(text)), WEFT_OK);
	assert_string_equal(text, "a.very.");
	weft_settings_destroy(settings);
}

/* From a program's own struct into a session's, as from a program that gives them by name. */
static void
values_without_a_field_go_by_name(void **state)
{
	struct wf_session_values from, to;
	struct weft_settings *settings;
	wf_session_defaults(&from);
	wf_session_defaults(&to);
	from.path_retry = 12345678;
	from.secret_file = "s";
	from.opts.port = 99; /* has a field, and stays where it is */
	assert_int_equal(weft_settings_create(WEFT_SETTINGS_SESSION, &settings), WEFT_OK);
	assert_int_equal(wf_settings_set_named(settings, &from), WEFT_OK);
	assert_int_equal(wf_settings_apply(settings, WEFT_SETTINGS_SESSION, &to), WEFT_OK);
	assert_true(to.path_retry == 12345678);
	assert_string_equal(to.secret_file, "s");
	assert_int_equal(to.opts.port, 7164);
	weft_settings_destroy(settings);
}

/* As a pserver offers them: its own rows stay, and what only trainers have is not there. */
static void
a_pserver_is_offered_the_settings_of_both_ends(void **state)
{
	struct target {
		uint64_t own;
		struct wf_session_values values;
	} target;
	struct wf_option rows[32] = {
		{.name = "pin",
		 .type = WF_OPTION_U64,
		 .offset = offsetof(struct target, own),
		 .initial = "5"},
	};
	unsigned count = wf_settings_offer_pserver(rows, 1, 32, offsetof(struct target, values));
	const struct wf_options options = {.table = rows, .option_count = count};
	unsigned both = 1;
	unsigned all = 0;
	const struct wf_option *table = wf_settings_rows(WEFT_SETTINGS_SESSION, &all);
	for (unsigned i = 0; i < all; i++) {
		both += table[i].of_pserver && strcmp(table[i].name, "pin") != 0;
		assert_true(table[i].help != NULL || !table[i].of_pserver);
		assert_false(table[i].is_shared && table[i].of_pserver);
	}
	assert_int_equal(count, both);
	wf_session_defaults(&target.values);
	wf_option_defaults(rows, count, &target);
	assert_int_equal(target.own, 5);
	const struct wf_option *row = wf_option_find(&options, "tcp_congestion", 14);
	assert_non_null(row);
	assert_true(wf_option_store(row, "cubic", &target));
	assert_string_equal(target.values.opts.tcp_congestion, "cubic");
	assert_string_equal(target.values.opts.pin, "off");
	assert_null(wf_option_find(&options, "learning_rate", 13));
	assert_null(wf_option_find(&options, "trainer_id", 10));
}

/* Rows of a program that repeat none of what the table says. */
static void
rows_of_a_program_are_completed_by_the_table(void **state)
{
	struct target {
		uint64_t trainers;
		uint16_t port;
		enum weft_progress progress;
		const char *verbs;
	} target;
	struct wf_option rows[] = {
		{.name = "trainers", .type = WF_OPTION_U64, .initial = "3", .help = "Own."},
		{.name = "port",
		 .is_setting = true,
		 .offset = offsetof(struct target, port),
		 .bytes = sizeof(uint16_t),
		 .help = "Own."},
		{.name = "progress",
		 .is_setting = true,
		 .offset = offsetof(struct target, progress),
		 .bytes = sizeof(uint32_t)},
		{.name = "verbs", .is_setting = true, .offset = offsetof(struct target, verbs)},
	};
	const unsigned count = WF_ARRAY_COUNT(rows);
	memset(&target, 0x5a, sizeof(target));
	wf_settings_complete(rows, count);
	wf_option_defaults(rows, count, &target);
	assert_int_equal(target.trainers, 3);
	assert_int_equal(target.port, 7164);
	assert_int_equal(target.progress, WEFT_PROGRESS_THREAD);
	assert_string_equal(target.verbs, "");
	assert_string_equal(rows[0].help, "Own.");
	assert_string_equal(rows[1].help, "Own.");
	assert_non_null(strstr(rows[2].help, "What transfers data"));
	assert_false(wf_option_store(&rows[1], "65536", &target));
	assert_true(wf_option_store(&rows[1], "65535", &target));
	assert_true(wf_option_store(&rows[2], "caller", &target));
	assert_int_equal(target.port, 65535);
	assert_int_equal(target.progress, WEFT_PROGRESS_CALLER);
	assert_string_equal(target.verbs, "");
}

/* What HELLO says, as far as there is room: no word is cut. */
static void
what_is_not_at_its_default_is_said(void **state)
{
	struct wf_session_values values;
	char text[256];
	wf_session_defaults(&values);
	wf_settings_describe(WEFT_SETTINGS_SESSION, &values, ' ', text, sizeof(text));
	assert_string_equal(text, "");
	values.opts.optimizer.learning_rate = 0.125;
	values.opts.optimizer.decay = 1e-4;
	values.opts.dense_mode = WEFT_DENSE_BOUNDED;
	values.opts.dense_staleness = 3;
	values.opts.skip_nonfinite = 1;
	values.opts.trainer_id = 7; /* its own affair, like the next two */
	values.opts.spin_ns = 1;
	values.path_retry = 1;
	wf_settings_describe(WEFT_SETTINGS_SESSION, &values, ' ', text, sizeof(text));
	assert_string_equal(text, "skip_nonfinite=true learning_rate=0.125 l2=0.0001 "
				  "dense_mode=bounded dense_staleness=3");
	wf_settings_describe(WEFT_SETTINGS_SESSION, &values, ' ', text, 44);
	assert_string_equal(text, "skip_nonfinite=true learning_rate=0.125 ...");
	wf_settings_describe(WEFT_SETTINGS_SESSION, &values, ' ', text, 43);
	assert_string_equal(text, "skip_nonfinite=true l2=0.0001 ...");
	wf_settings_describe(WEFT_SETTINGS_SESSION, &values, ' ', text, 4);
	assert_string_equal(text, "...");
	wf_settings_describe(WEFT_SETTINGS_SESSION, &values, ' ', text, 1);
	assert_string_equal(text, "");
}

static void
settings_of_a_table_are_described_by_their_own_names(void **state)
{
	struct weft_table_opts opts;
	char text[64];
	wf_table_defaults(&opts);
	wf_settings_describe(WEFT_SETTINGS_TABLE, &opts, ',', text, sizeof(text));
	assert_string_equal(text, "");
	opts.optimizer.method = "adam";
	opts.optimizer.decay = 0.5;
	opts.optimizer.l2 = 0.25; /* decay is another one here */
	opts.rest = WEFT_VALUES_F16;
	opts.batch_keys_max = 7; /* its own affair, like the next */
	opts.raw_keys = 1;
	wf_settings_describe(WEFT_SETTINGS_TABLE, &opts, ',', text, sizeof(text));
	assert_string_equal(text, "rest=f16,optimizer=adam,decay=0.5,l2=0.25");
	wf_settings_describe(WEFT_SETTINGS_TABLE, &opts, ',', text, 37);
	assert_string_equal(text, "rest=f16,optimizer=adam,l2=0.25,...");
}

static void
is_refused(enum weft_status st, const char *text)
{
	assert_int_equal(st, WEFT_INVALID);
	assert_string_equal(weft_last_error(), text);
}

/* As descriptions have them: what 0 stands for is in its place. */
static void
settings_that_stand_for_others_are_settled(void **state)
{
	struct wf_session_values values;
	struct weft_session_opts *opts = &values.opts;
	wf_session_defaults(&values);
	assert_int_equal(wf_session_settled_check(&values), WEFT_OK);
	opts->dense_mode = WEFT_DENSE_BOUNDED;
	opts->dense_discard_ratio = 1.5;
	is_refused(wf_session_settled_check(&values),
		   "dense_staleness=0 with dense_mode=bounded: it must be above 0");
	wf_session_settle(opts);
	assert_int_equal(opts->dense_mode, WEFT_DENSE_SYNC);
	assert_true(opts->dense_discard_ratio <= 0);
	opts->dense_mode = WEFT_DENSE_BOUNDED;
	opts->dense_staleness = 2;
	wf_session_settle(opts);
	assert_int_equal(opts->dense_mode, WEFT_DENSE_BOUNDED);
	assert_int_equal(wf_session_settled_check(&values), WEFT_OK);
	wf_session_defaults(&values);
	opts->dense_mode = WEFT_DENSE_ELASTIC;
	opts->num_gradient_servers = 3;
	is_refused(wf_session_settled_check(&values),
		   "elastic_rate=0 with dense_mode=elastic: it must be above 0");
	wf_session_settle(opts);
	assert_true(opts->elastic_rate > 0.2999 && opts->elastic_rate < 0.3001);
	assert_int_equal(wf_session_settled_check(&values), WEFT_OK);
}

static void
a_lag_is_given_to_the_modes_that_have_it(void **state)
{
	for (int dense = WEFT_DENSE_SYNC; dense <= WEFT_DENSE_ELASTIC; dense++) {
		for (int sparse = WEFT_SPARSE_SYNC; sparse <= WEFT_SPARSE_BOUNDED; sparse++) {
			struct wf_session_values values;
			struct weft_session_opts *opts = &values.opts;
			wf_session_defaults(&values);
			opts->dense_mode = (enum weft_dense_mode)dense;
			opts->sparse_mode = (enum weft_sparse_mode)sparse;
			opts->local_steps = dense > WEFT_DENSE_BOUNDED ? 1 : 0;
			wf_session_set_lag(opts, 3, 1.5);
			bool bounded = dense == WEFT_DENSE_BOUNDED;
			bool lags = bounded || dense == WEFT_DENSE_ASYNC;
			assert_int_equal(opts->dense_staleness, bounded ? 3 : 0);
			assert_true(opts->dense_discard_ratio == (lags ? 1.5 : 0.0));
			assert_int_equal(opts->sparse_staleness,
					 sparse == WEFT_SPARSE_BOUNDED ? 3 : 0);
			assert_true(opts->sparse_discard_ratio ==
				    (sparse == WEFT_SPARSE_SYNC ? 0.0 : 1.5));
			assert_int_equal(wf_session_rules_check(&values), WEFT_OK);
		}
	}
}

static void
settings_that_need_whole_steps_are_named_with_the_reason(void **state)
{
	struct wf_session_values values;
	struct weft_optimizer_opts *set = &values.opts.optimizer;
	wf_session_defaults(&values);
	values.opts.dense_mode = WEFT_DENSE_ASYNC;
	assert_null(wf_whole_steps_why(set));
	assert_int_equal(wf_row_rules_check(&values), WEFT_OK);
	assert_int_equal(wf_step_rules_check(&values), WEFT_OK);
	set->average_window = 0.5;
	assert_string_equal(wf_whole_steps_why(set),
			    "with average_window averages are of whole steps");
	is_refused(wf_row_rules_check(&values),
		   "average_window=0.5: rows of tables have no averages");
	is_refused(wf_step_rules_check(&values),
		   "average_window=0.5 with dense_mode=async: averages are kept in the synchronous "
		   "mode only; give 0");
	set->clip_norm = 2;
	assert_string_equal(wf_whole_steps_why(set),
			    "with clip_norm the gradient is of all tensors in one step");
	is_refused(wf_row_rules_check(&values),
		   "global_norm_clipping_threshold=2: gradients of rows are no part of the norm");
	is_refused(
		wf_step_rules_check(&values),
		"clip_norm=2 with dense_mode=async: there is a whole gradient in the synchronous "
		"mode only; give 0");
	values.opts.dense_mode = WEFT_DENSE_BOUNDED; /* by no step: as synchronous */
	assert_int_equal(wf_step_rules_check(&values), WEFT_OK);
}

/* What was set by name stays, and what the launcher says has to be allowed. */
static void
a_launcher_sets_what_is_left_open(void **state)
{
	struct weft_settings *settings = NULL;
	char text[64];

	assert_int_equal(weft_settings_create(WEFT_SETTINGS_TABLE, &settings), WEFT_OK);
	assert_int_equal(weft_settings_set_by_launcher(settings), WEFT_INVALID);
	weft_settings_destroy(settings);
	assert_int_equal(weft_settings_create(WEFT_SETTINGS_SESSION, &settings), WEFT_OK);
	setenv("OMPI_COMM_WORLD_RANK", "2", 1);
	setenv("OMPI_COMM_WORLD_SIZE", "4", 1);
	assert_int_equal(weft_settings_set(settings, "num_gradient_servers", "3"), WEFT_OK);
	assert_int_equal(weft_settings_set_by_launcher(settings), WEFT_OK);
	assert_int_equal(weft_settings_get(settings, "trainer_id", text, sizeof(text)), WEFT_OK);
	assert_string_equal(text, "2");
	assert_int_equal(weft_settings_get(settings, "num_gradient_servers", text, sizeof(text)),
			 WEFT_OK);
	assert_string_equal(text, "3");
	assert_int_equal(weft_settings_set(settings, "num_gradient_servers", NULL), WEFT_OK);
	setenv("OMPI_COMM_WORLD_SIZE", "999999", 1);
	assert_int_equal(weft_settings_set_by_launcher(settings), WEFT_INVALID);
	assert_non_null(strstr(weft_last_error(), "OMPI_COMM_WORLD_SIZE of Open MPI"));
	unsetenv("OMPI_COMM_WORLD_RANK");
	unsetenv("OMPI_COMM_WORLD_SIZE");
	weft_settings_destroy(settings);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_field_of_a_struct_has_one_row),
		cmocka_unit_test(all_defaults_of_a_tensor_are_zero),
		cmocka_unit_test(a_table_has_the_defaults_of_its_header),
		cmocka_unit_test(no_two_settings_have_one_name),
		cmocka_unit_test(what_is_no_setting_is_zero_in_the_defaults),
		cmocka_unit_test(texts_are_found_where_they_stand),
		cmocka_unit_test(settings_are_set_and_read_by_name),
		cmocka_unit_test(a_launcher_sets_what_is_left_open),
		cmocka_unit_test(names_of_the_original_are_known),
		cmocka_unit_test(values_without_a_field_go_by_name),
		cmocka_unit_test(a_pserver_is_offered_the_settings_of_both_ends),
		cmocka_unit_test(rows_of_a_program_are_completed_by_the_table),
		cmocka_unit_test(settings_that_stand_for_others_are_settled),
		cmocka_unit_test(a_lag_is_given_to_the_modes_that_have_it),
		cmocka_unit_test(settings_that_need_whole_steps_are_named_with_the_reason),
		cmocka_unit_test(what_is_not_at_its_default_is_said),
		cmocka_unit_test(settings_of_a_table_are_described_by_their_own_names),
		cmocka_unit_test(what_cannot_be_set_is_refused_and_changes_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
