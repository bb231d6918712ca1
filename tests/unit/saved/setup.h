/* SPDX-License-Identifier: Apache-2.0 */
/* setup: what the tests of saved models share: a folder of their own, a small model, a look at a
 * save. Thread: the test's. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/assert.h"
#include "saved/folder.h"
#include "tests/support/failing_env.h"

/* Fails with the recorded error. */
#define assert_ok(call)                                                                            \
	do {                                                                                       \
		enum weft_status assert_ok_status = (call);                                        \
		if (assert_ok_status != WEFT_OK) {                                                 \
			fail_msg("%s: %s: %s", #call, weft_status_name(assert_ok_status),          \
				 weft_last_error());                                               \
		}                                                                                  \
	} while (0)

/* The call is refused with `status`, and the text has `part` in it. */
#define assert_refused(call, status, part)                                                         \
	do {                                                                                       \
		assert_int_equal((call), (status));                                                \
		if (strstr(weft_last_error(), (part)) == NULL) {                                   \
			fail_msg("\"%s\" is not in \"%s\"", (part), weft_last_error());            \
		}                                                                                  \
	} while (0)

#define BIAS_COUNT 3
#define W_COUNT 20000 /* more than one chunk of a file */

struct model {
	float bias[2][BIAS_COUNT]; /* value, state */
	float w[2][W_COUNT];
	struct wf_saved_tensor tensor[2]; /* names descending */
};

struct scene {
	struct wf_env *env;
	struct wf_failing_env failing; /* around env */
	char dir[64];
	struct model model, loaded;
};

static inline struct wf_saved_about
about_pass(uint64_t pass, uint64_t step)
{
	return (struct wf_saved_about){
		.pass = pass,
		.step = step,
		.samples = 10 * step,
		.version = "0.1.0",
		.optimizer = "momentum",
		.settings = "rate=1",
	};
}

static inline void
model_init(struct model *model, float first)
{
	*model = (struct model){0};
	for (unsigned s = 0; s < 2; s++) {
		for (unsigned i = 0; i < BIAS_COUNT; i++) {
			model->bias[s][i] = first + (float)(s * 100 + i);
		}
		for (unsigned i = 0; i < W_COUNT; i++) {
			model->w[s][i] = -first - (float)(s * W_COUNT + i);
		}
	}
	model->tensor[0] = (struct wf_saved_tensor){
		.name = "w",
		.rows = 2,
		.cols = W_COUNT / 2,
		.value = model->w[0],
		.state_count = 1,
		.state = {model->w[1]},
	};
	model->tensor[1] = (struct wf_saved_tensor){
		.name = "bias",
		.rows = BIAS_COUNT,
		.cols = 1,
		.value = model->bias[0],
		.state_count = 1,
		.state = {model->bias[1]},
	};
}

static inline bool
model_equals(const struct model *a, const struct model *b)
{
	return memcmp(a->bias, b->bias, sizeof(a->bias)) == 0 &&
	       memcmp(a->w, b->w, sizeof(a->w)) == 0;
}

static inline int
scene_open(void **state)
{
	struct scene *scene = calloc(1, sizeof(*scene));
	if (scene == NULL) {
		return -1;
	}
	*state = scene;
	snprintf(scene->dir, sizeof(scene->dir), "/tmp/weft-saved-XXXXXX");
	if (mkdtemp(scene->dir) == NULL ||
	    wf_env_system_create(WF_LOG_WARN, -1, &scene->env) != WEFT_OK) {
		return -1;
	}
	wf_failing_env_init(&scene->failing, scene->env);
	model_init(&scene->model, 1.0f);
	return 0;
}

/* Folders of one level, and their contents. */
static inline void
remove_tree(const char *path, unsigned depth)
{
	char inner[800];
	DIR *dir = depth == 0 ? NULL : opendir(path);

	for (struct dirent *e = dir == NULL ? NULL : readdir(dir); e != NULL; e = readdir(dir)) {
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) {
			continue;
		}
		snprintf(inner, sizeof(inner), "%.500s/%.255s", path, e->d_name);
		if (unlink(inner) != 0) {
			remove_tree(inner, depth - 1);
		}
	}
	if (dir != NULL) {
		closedir(dir);
	}
	rmdir(path);
}

static inline int
scene_close(void **state)
{
	struct scene *scene = *state;

	bool is_clean = wf_failing_env_is_clean(&scene->failing);
	remove_tree(scene->dir, 3);
	wf_env_system_destroy(scene->env);
	free(scene);
	return is_clean ? 0 : -1;
}

static inline struct wf_saved_place
place_of(struct scene *scene, const struct wf_saved_calls *calls)
{
	return (struct wf_saved_place){
		.env = &scene->failing.env,
		.calls = calls,
		.dir = scene->dir,
	};
}

/* With the folder locked for this call. */
static inline enum weft_status
save_content(struct scene *scene, const struct wf_saved_calls *calls,
	     const struct wf_saved_about *about, const struct wf_saved_content *content)
{
	const struct wf_saved_place place = place_of(scene, calls);
	struct wf_saved_folder *folder = NULL;

	enum weft_status st = wf_saved_folder_open(&place, &folder);
	if (st == WEFT_OK) {
		st = wf_saved_write_all(folder, about, content);
		wf_saved_folder_close(folder);
	}
	return st;
}

static inline enum weft_status
save_pass(struct scene *scene, const struct wf_saved_calls *calls, uint64_t pass, uint64_t step)
{
	const struct wf_saved_about about = about_pass(pass, step);
	const struct wf_saved_content content = {.tensor = scene->model.tensor, .tensor_count = 2};

	return save_content(scene, calls, &about, &content);
}

static inline enum weft_status
remove_older(struct scene *scene, uint64_t pass)
{
	const struct wf_saved_place place = place_of(scene, wf_saved_posix());
	struct wf_saved_folder *folder = NULL;

	enum weft_status st = wf_saved_folder_open(&place, &folder);
	if (st == WEFT_OK) {
		st = wf_saved_remove_older(folder, pass);
		wf_saved_folder_close(folder);
	}
	return st;
}

/* Open, check and load into scene->loaded; `*about` as saved. */
static inline enum weft_status
load_pass(struct scene *scene, uint64_t pass, struct wf_saved_about *about)
{
	char path[WF_SAVED_PATH_BYTES];
	struct wf_saved *saved = NULL;

	model_init(&scene->loaded, 0.0f);
	*about = (struct wf_saved_about){0};
	enum weft_status st = wf_saved_pass_path(scene->dir, pass, path);
	if (st == WEFT_OK) {
		st = wf_saved_open(&scene->failing.env, wf_saved_posix(), path, &saved);
	}
	if (st == WEFT_OK) {
		*about = *wf_saved_about(saved);
		st = wf_saved_load(saved, scene->loaded.tensor, 2, true);
	}
	wf_saved_close(saved);
	return st;
}

/* How many names are in a folder, without its lock; hidden ones only, or all. */
static inline unsigned
names_in(const char *path, bool hidden_only)
{
	unsigned count = 0;
	DIR *dir = opendir(path);

	assert_non_null(dir);
	for (struct dirent *e = readdir(dir); e != NULL; e = readdir(dir)) {
		bool is_dots = strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
			       strcmp(e->d_name, WF_SAVED_LOCK_FILE) == 0;
		count += !is_dots && (!hidden_only || e->d_name[0] == '.');
	}
	closedir(dir);
	return count;
}

/* "the scene's folder/a/b", good until the third call after. */
static inline const char *
at(const struct scene *scene, const char *a, const char *b)
{
	static char text[4][400];
	static unsigned turn;
	char *out = text[turn++ % WF_ARRAY_COUNT(text)];

	snprintf(out, sizeof(text[0]), "%s/%s%s%s", scene->dir, a, b[0] == '\0' ? "" : "/", b);
	return out;
}

static inline void
write_text(const char *path, const char *text)
{
	FILE *file = fopen(path, "we");
	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static inline bool
text_is(const char *path, const char *text)
{
	char bytes[300] = "";
	FILE *file = fopen(path, "re");

	if (file == NULL) {
		return false;
	}
	size_t count = fread(bytes, 1, sizeof(bytes) - 1, file);
	assert_int_equal(fclose(file), 0);
	return count == strlen(text) && strcmp(bytes, text) == 0;
}

static inline void
give_name(const struct scene *scene, const char *from, const char *to)
{
	assert_int_equal(rename(at(scene, from, ""), at(scene, to, "")), 0);
}

/* A whole save that has another name. */
static inline void
save_of(struct scene *scene, const char *name)
{
	assert_ok(save_pass(scene, wf_saved_posix(), 9, 5));
	give_name(scene, "pass-00009", name);
}

#define WITH_SCENE(test) cmocka_unit_test_setup_teardown(test, scene_open, scene_close)
