/* SPDX-License-Identifier: Apache-2.0 */
/* Settings by name as a program gives them: to a session, to its tensors and to its tables, whose
 * structs say nothing but what is declared. Nothing is connected. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "sparse/client/session.h"
#include "weft/sparse.h"

static struct weft_session *
open_session(void)
{
	struct weft_session_opts opts;
	struct weft_session *session = NULL;
	weft_session_opts_init(&opts);
	opts.ports_num_for_sparse = 1;
	assert_int_equal(weft_session_open(&opts, &session), WEFT_OK);
	return session;
}

static struct weft_settings *
create(enum weft_settings_kind kind)
{
	struct weft_settings *settings = NULL;
	assert_int_equal(weft_settings_create(kind, &settings), WEFT_OK);
	return settings;
}

static void
set(struct weft_settings *settings, const char *name, const char *value)
{
	char text[128]; /* gone when it is used */
	(void)snprintf(text, sizeof(text), "%s", value);
	assert_int_equal(weft_settings_set(settings, name, text), WEFT_OK);
	memset(text, 'x', sizeof(text));
}

static void
assert_text(const char *text)
{
	if (strstr(weft_last_error(), text) == NULL) {
		print_error("'%s' is not in '%s'\n", text, weft_last_error());
	}
	assert_non_null(strstr(weft_last_error(), text));
}

static void
refuses(struct weft_settings *settings, const char *name, const char *value, const char *text)
{
	assert_int_equal(weft_settings_set(settings, name, value), WEFT_INVALID);
	assert_text(text);
}

static bool
is(double a, double b)
{
	return a >= b && a <= b;
}

static void
a_tensor_gets_its_settings_by_name(void **state)
{
	struct weft_session *session = open_session();
	struct weft_settings *settings = create(WEFT_SETTINGS_TENSOR);
	struct weft_tensor *tensor = NULL;
	(void)state;
	set(settings, "mode", "bounded");
	set(settings, "staleness", "3");
	set(settings, "discard-ratio", "1.5");
	set(settings, "priority", "-7");
	set(settings, "rate_multiplier", "0.25");
	set(settings, "l2", "-1"); /* the original's name of decay: none */
	set(settings, "clip", "2");
	set(settings, "clip", "4");
	struct weft_tensor_opts opts = {.name = "w",
					.rows = 3,
					.mode = WEFT_TENSOR_ASYNC, /* the name wins */
					.l1 = 0.5,
					.settings = settings};
	assert_int_equal(weft_tensor_add(session, &opts, &tensor), WEFT_OK);
	weft_settings_destroy(settings);
	const struct wf_job_tensor *own = &session->core.job.tensor[0];
	assert_int_equal(own->mode, WEFT_TENSOR_BOUNDED);
	assert_int_equal(own->staleness, 3);
	assert_int_equal(own->priority, -7);
	assert_true(is(own->discard_ratio, 1.5) && is(own->rate_multiplier, 0.25));
	assert_true(is(own->decay, 0) && is(own->clip, 4) && is(own->l1, 0.5));
	assert_false(own->is_static || own->is_reduced);
	assert_int_equal(weft_session_close(session), WEFT_OK);
}

static void
a_reduced_tensor_may_be_answered_in_place(void **state)
{
	struct weft_session *session = open_session();
	struct weft_settings *settings = create(WEFT_SETTINGS_TENSOR);
	struct weft_tensor_opts w = {.name = "w", .rows = 4, .settings = settings};
	struct weft_tensor *tensor = NULL, *other = NULL;
	(void)state;
	set(settings, "in_place", "1");
	assert_int_equal(weft_tensor_add(session, &w, &tensor), WEFT_INVALID);
	assert_text("tensor w: in_place: the answers to a tensor that is not reduced are");
	w.is_reduced = 1;
	assert_int_equal(weft_tensor_add(session, &w, &tensor), WEFT_OK);
	weft_settings_destroy(settings);
	w = (struct weft_tensor_opts){.name = "x", .rows = 4, .is_reduced = 1};
	assert_int_equal(weft_tensor_add(session, &w, &other), WEFT_OK);
	assert_int_equal(weft_session_seal(session), WEFT_OK);
	assert_ptr_equal(weft_tensor_grad(tensor), weft_tensor_param(tensor));
	assert_ptr_not_equal(weft_tensor_grad(other), weft_tensor_param(other));
	assert_int_equal(weft_session_close(session), WEFT_OK);
}

static void
a_tensor_keeps_a_shape_of_its_number_of_elements(void **state)
{
	static const struct {
		const char *shape, *text;
	} refused[] = {
		{"4,3,3", "tensor w: shape 4,3,3 has 36 elements, rows and cols are 108"},
		{"(4,3,3,3)", "tensor w: shape (4,3,3,3): must be up to 32 dimensions like"},
		{"4, 27", "tensor w: shape 4, 27: must be"},
		{"()", "tensor w: shape () has 1 elements"},
		{"4,3,3,3,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1", "must be"},
		{"108,0", "has 0 elements"},
	};
	struct weft_session *session = open_session();
	struct weft_settings *settings = create(WEFT_SETTINGS_TENSOR);
	struct weft_tensor_opts w = {.name = "w", .rows = 4, .cols = 27, .settings = settings};
	struct weft_tensor_opts s = {.name = "s", .rows = 1, .settings = settings};
	struct weft_tensor *tensor = NULL;
	(void)state;
	for (size_t i = 0; i < WF_ARRAY_COUNT(refused); i++) {
		set(settings, "shape", refused[i].shape);
		assert_int_equal(weft_tensor_add(session, &w, &tensor), WEFT_INVALID);
		assert_text(refused[i].text);
	}
	set(settings, "shape", "4,3,3,3");
	assert_int_equal(weft_tensor_add(session, &w, &tensor), WEFT_OK);
	assert_string_equal(tensor->shape, "4,3,3,3");
	set(settings, "shape", "()");
	assert_int_equal(weft_tensor_add(session, &s, &tensor), WEFT_OK);
	assert_string_equal(tensor->shape, "()");
	assert_int_equal(weft_settings_set(settings, "shape", NULL), WEFT_OK);
	s.name = "none";
	assert_int_equal(weft_tensor_add(session, &s, &tensor), WEFT_OK);
	assert_string_equal(tensor->shape, "");
	weft_settings_destroy(settings);
	assert_int_equal(weft_session_close(session), WEFT_OK);
}

static void
a_table_gets_its_settings_by_name(void **state)
{
	struct weft_session *session = open_session();
	struct weft_settings *settings = create(WEFT_SETTINGS_TABLE);
	struct weft_table_opts opts;
	struct weft_table *table = NULL;
	(void)state;
	set(settings, "optimizer", "adam");
	set(settings, "adam_beta2", "0.5");
	set(settings, "init", "uniform");
	set(settings, "init_a", "-0.25");
	set(settings, "init_b", "0.25");
	set(settings, "memory_cap_bytes", "64MiB");
	set(settings, "evict_at_cap", "yes");
	set(settings, "wire", "bf16");
	set(settings, "raw_keys", "true");
	set(settings, "batch_keys_max", "100");
	set(settings, "admit_count", "2");
	weft_table_opts_init(&opts);
	opts.name = "words";
	opts.dim = 8;
	opts.admit_count = 9; /* the name wins */
	opts.evict_age_steps = 5;
	opts.settings = settings;
	assert_int_equal(weft_table_add(session, &opts, &table), WEFT_OK);
	weft_settings_destroy(settings);
	const struct wf_table_desc *own = &wf_client_of(session)->tables.desc[0];
	assert_int_equal(own->optimizer, WF_ROW_ADAM);
	assert_true(is(own->set.optimizer.beta2, 0.5) && is(own->set.optimizer.beta1, 0.9));
	assert_true(is(own->set.init_a, -0.25) && is(own->set.init_b, 0.25));
	assert_int_equal(own->set.memory_cap_bytes, 64 << 20);
	assert_true(own->set.evict_at_cap);
	assert_int_equal(own->set.wire, WEFT_VALUES_BF16);
	assert_int_equal(own->set.admit_count, 2);
	assert_int_equal(own->set.evict_age_steps, 5);
	assert_int_equal(table->keys_max, 100);
	assert_false(table->may_delta);
	assert_int_equal(weft_session_close(session), WEFT_OK);
}

static void
an_unknown_name_is_refused_with_the_nearest(void **state)
{
	struct weft_settings *tensor = create(WEFT_SETTINGS_TENSOR);
	struct weft_settings *table = create(WEFT_SETTINGS_TABLE);
	(void)state;
	refuses(tensor, "priorty", "1",
		"a tensor has no setting \"priorty\"; did you mean priority?");
	refuses(tensor, "connect_timeout", "1", "a tensor has no setting \"connect_timeout\"");
	refuses(tensor, "rows", "1", "a tensor has no setting \"rows\"");
	refuses(table, "admit_slot", "1",
		"a table has no setting \"admit_slot\"; did you mean admit_slots?");
	refuses(table, "dim", "1", "a table has no setting \"dim\"");
	weft_settings_destroy(tensor);
	weft_settings_destroy(table);
}

static void
a_value_that_cannot_be_is_refused_with_what_can(void **state)
{
	struct weft_settings *tensor = create(WEFT_SETTINGS_TENSOR);
	struct weft_settings *table = create(WEFT_SETTINGS_TABLE);
	char text[16];
	(void)state;
	refuses(tensor, "mode", "local", "mode=local: must be one of session|sync|async|bounded");
	refuses(tensor, "priority", "1.5",
		"priority=1.5: must be a whole number, from -2147483648");
	refuses(tensor, "decay", "nan", "decay=nan: must be a finite number");
	refuses(tensor, "discard_ratio", "-1",
		"discard_ratio=-1: must be a number, from 0 to 1e+06");
	refuses(tensor, "staleness", "4294967296", "from 0 to 4294967295");
	refuses(table, "rest", "f64", "rest=f64: must be one of f32|bf16|f16");
	refuses(table, "batch_keys_max", "0", "must be a whole number, from 1 to 4194304");
	refuses(table, "schedule", "manual", "must be one of constant|linear|");
	refuses(table, "init", "ones", "init=ones: must be one of zero|uniform|normal");
	refuses(table, "memory_cap_bytes", "some", "must be a size like");
	assert_int_equal(weft_settings_get(tensor, "mode", text, sizeof(text)), WEFT_OK);
	assert_string_equal(text, "session"); /* nothing has changed */
	weft_settings_destroy(tensor);
	weft_settings_destroy(table);
}

/* Rules between settings hold for what was set by name, too. */
static void
what_two_settings_rule_is_checked_when_they_are_used(void **state)
{
	struct weft_session *session = open_session();
	struct weft_settings *tensor = create(WEFT_SETTINGS_TENSOR);
	struct weft_settings *words = create(WEFT_SETTINGS_TABLE);
	struct weft_tensor_opts w = {.name = "w", .rows = 3, .settings = tensor};
	struct weft_table_opts t;
	struct weft_tensor *added = NULL;
	struct weft_table *table = NULL;
	(void)state;
	set(tensor, "staleness", "3");
	assert_int_equal(weft_tensor_add(session, &w, &added), WEFT_INVALID);
	assert_text("tensor w: staleness 3");
	set(words, "evict_at_cap", "true");
	weft_table_opts_init(&t);
	t.name = "words";
	t.dim = 8;
	t.settings = words;
	assert_int_equal(weft_table_add(session, &t, &table), WEFT_INVALID);
	assert_text("table words: evict_at_cap needs memory_cap_bytes");
	assert_null(added);
	assert_null(table);
	assert_int_equal(weft_settings_set(words, "evict_at_cap", NULL), WEFT_OK);
	assert_int_equal(weft_table_add(session, &t, &table), WEFT_OK);
	weft_settings_destroy(tensor);
	weft_settings_destroy(words);
	assert_int_equal(weft_session_close(session), WEFT_OK);
}

static void
settings_of_another_kind_are_refused(void **state)
{
	struct weft_session *session = open_session();
	struct weft_settings *of_session = create(WEFT_SETTINGS_SESSION);
	struct weft_settings *of_tensor = create(WEFT_SETTINGS_TENSOR);
	struct weft_session_opts opts;
	struct weft_session *another = NULL;
	struct weft_tensor_opts w = {.name = "w", .rows = 3, .settings = of_session};
	struct weft_tensor *tensor = NULL;
	struct weft_table_opts t;
	struct weft_table *table = NULL;
	(void)state;
	assert_int_equal(weft_tensor_add(session, &w, &tensor), WEFT_INVALID);
	assert_text("settings of a session are given to a tensor");
	weft_table_opts_init(&t);
	t.name = "words";
	t.dim = 8;
	t.settings = of_tensor;
	assert_int_equal(weft_table_add(session, &t, &table), WEFT_INVALID);
	assert_text("settings of a tensor are given to a table");
	weft_session_opts_init(&opts);
	opts.settings = of_tensor;
	assert_int_equal(weft_session_open(&opts, &another), WEFT_INVALID);
	assert_text("settings of a tensor are given to a session");
	assert_true(tensor == NULL && table == NULL && another == NULL);
	struct weft_settings *none = NULL;
	assert_int_equal(weft_settings_create((enum weft_settings_kind)3, &none), WEFT_INVALID);
	assert_text("settings of kind 3");
	assert_null(none);
	weft_settings_destroy(of_session);
	weft_settings_destroy(of_tensor);
	assert_int_equal(weft_session_close(session), WEFT_OK);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_tensor_gets_its_settings_by_name),
		cmocka_unit_test(a_reduced_tensor_may_be_answered_in_place),
		cmocka_unit_test(a_tensor_keeps_a_shape_of_its_number_of_elements),
		cmocka_unit_test(a_table_gets_its_settings_by_name),
		cmocka_unit_test(an_unknown_name_is_refused_with_the_nearest),
		cmocka_unit_test(a_value_that_cannot_be_is_refused_with_what_can),
		cmocka_unit_test(what_two_settings_rule_is_checked_when_they_are_used),
		cmocka_unit_test(settings_of_another_kind_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
