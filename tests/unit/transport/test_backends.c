/* SPDX-License-Identifier: Apache-2.0 */
/* The backends of the product: the lists of transport/backends.c, which this program is linked
 * with. Thread: one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "transport/ops.h"
#include "wire/path.h"

static const struct wf_backend *
find(const char *name, size_t bytes)
{
	for (unsigned i = 0; wf_backends[i] != NULL; i++) {
		const char *known = wf_backends[i]->name;
		if (strlen(known) == bytes && strncmp(known, name, bytes) == 0) {
			return wf_backends[i];
		}
	}
	return NULL;
}

/* Each item of a setting is a path, built in or not; the first is a bootstrap, and is. */
static void
a_setting_of_paths_begins_with_a_bootstrap_and_goes_on_with_others(void **state)
{
	(void)state;
	for (const struct wf_path_setting *s = wf_path_settings; s->name != NULL; s++) {
		const char *item = s->items;
		for (unsigned i = 0; *item != '\0'; i++) {
			size_t bytes = strcspn(item, ",");
			const struct wf_backend *backend = find(item, bytes);
			assert_non_null(backend);
			if (backend == NULL) {
				return; /* compilers do not know that the line above ends the test
					 */
			}
			assert_true(backend->is_path);
			assert_true((backend->path_id == WF_PATH_BOOTSTRAP) == (i == 0));
			assert_true((backend->path_retry_ns > 0) == (i == 0));
			assert_true(backend->open != NULL || i > 0);
			item += bytes + (item[bytes] == ',' ? 1 : 0);
		}
	}
}

static void
no_two_paths_have_one_number(void **state)
{
	(void)state;
	for (unsigned i = 0; wf_backends[i] != NULL; i++) {
		for (unsigned k = 0; k < i && wf_backends[i]->is_path; k++) {
			assert_false(wf_backends[k]->is_path &&
				     wf_backends[k]->path_id == wf_backends[i]->path_id);
		}
	}
}

static void
the_product_knows_no_medium_of_tests(void **state)
{
	struct wf_env *env = NULL;
	struct wf_transport *transport = NULL;
	(void)state;
	assert_int_equal(wf_env_system_create(WF_LOG_ERROR, -1, &env), WEFT_OK);
	struct wf_transport_opts opts = {.env = env, .paths = "sim"};
	assert_int_equal(wf_transport_open("sim", &opts, &transport), WEFT_UNSUPPORTED);
	assert_non_null(strstr(weft_last_error(), "\"sim\" is not built in; there are: tcp, shm"));
	assert_null(strstr(weft_last_error(), ", sim"));
	assert_int_equal(wf_transport_open("paths", &opts, &transport), WEFT_UNSUPPORTED);
	assert_non_null(strstr(weft_last_error(), "\"sim\" is none"));
	opts.paths = "sim-auto";
	assert_int_equal(wf_transport_open("paths", &opts, &transport), WEFT_UNSUPPORTED);
	for (unsigned i = 0; wf_backends[i] != NULL; i++) {
		assert_false(wf_backends[i]->is_path && wf_backends[i]->path_id == WF_PATH_OTHER);
	}
	wf_env_system_destroy(env);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_setting_of_paths_begins_with_a_bootstrap_and_goes_on_with_others),
		cmocka_unit_test(no_two_paths_have_one_number),
		cmocka_unit_test(the_product_knows_no_medium_of_tests),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
