/* SPDX-License-Identifier: Apache-2.0 */
/* A trainer that carries out the commands on its standard input, a word a line, and answers each
 * with a line. It is linked to the shared library, as a user's program is. Usage: user PSERVERS
 * TRAINER_ID TRAINERS MEBIBYTES. Words: step, push, wait, pull, close. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weft/weft.h>

#define TENSORS 4

static struct weft_session *session;
static struct weft_tensor *tensor[TENSORS];

static enum weft_status
start(char **argv)
{
	struct weft_session_opts opts;
	uint64_t elements = strtoull(argv[4], NULL, 10) << 18; /* f32 of so many MiB */
	weft_session_opts_init(&opts);
	opts.pservers = argv[1];
	opts.trainer_id = (uint32_t)strtoul(argv[2], NULL, 10);
	opts.num_gradient_servers = (uint32_t)strtoul(argv[3], NULL, 10);
	opts.optimizer.method = "adam";
	struct weft_settings *settings = NULL;
	enum weft_status st = weft_settings_create(WEFT_SETTINGS_SESSION, &settings);
	const char *secret = getenv("WEFT_SECRET_FILE"); /* as weft launch gives it */
	if (st == WEFT_OK && secret != NULL) {
		st = weft_settings_set(settings, "secret_file", secret);
	}
	opts.settings = settings;
	st = st != WEFT_OK ? st : weft_session_open(&opts, &session);
	weft_settings_destroy(settings);
	for (unsigned i = 0; i < TENSORS && st == WEFT_OK; i++) {
		char name[8];
		(void)snprintf(name, sizeof(name), "t%u", i);
		struct weft_tensor_opts declared = {.name = name, .rows = elements / TENSORS};
		st = weft_tensor_add(session, &declared, &tensor[i]);
	}
	st = st != WEFT_OK ? st : weft_session_seal(session);
	for (unsigned i = 0; i < TENSORS && st == WEFT_OK; i++) {
		for (uint64_t at = 0; at < weft_tensor_count(tensor[i]); at++) {
			weft_tensor_param(tensor[i])[at] = 1;
			weft_tensor_grad(tensor[i])[at] = (float)(at % 3);
		}
	}
	return st != WEFT_OK ? st : weft_session_start(session);
}

static enum weft_status
push(void)
{
	enum weft_status st = weft_step(session, 1, 0);
	for (unsigned i = 0; i < TENSORS && st == WEFT_OK; i++) {
		st = weft_push(tensor[i]);
	}
	return st;
}

static enum weft_status
obey(const char *word)
{
	if (strcmp(word, "step") == 0) {
		return weft_exchange(session, 1, 0);
	}
	if (strcmp(word, "push") == 0) {
		return push();
	}
	if (strcmp(word, "wait") == 0) {
		return weft_wait_all(session);
	}
	if (strcmp(word, "pull") == 0) {
		return weft_pull_all(session);
	}
	struct weft_session *done = session;
	session = NULL;
	return weft_session_close(done);
}

static int
answer(const char *word, enum weft_status status)
{
	(void)printf("%s: %s%s%s\n", word, weft_status_name(status), status == WEFT_OK ? "" : ": ",
		     status == WEFT_OK ? "" : weft_last_error());
	(void)fflush(stdout);
	return status == WEFT_OK ? 0 : 1;
}

int
main(int argc, char **argv)
{
	char word[32];
	if (argc != 5) {
		(void)fprintf(stderr, "usage: user PSERVERS TRAINER_ID TRAINERS MEBIBYTES\n");
		return 64;
	}
	int failed = answer("start", start(argv));
	while (session != NULL && failed == 0 && fgets(word, sizeof(word), stdin) != NULL) {
		word[strcspn(word, "\n")] = '\0';
		failed = answer(word, obey(word));
	}
	(void)weft_session_close(session);
	return failed;
}
