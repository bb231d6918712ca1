/* SPDX-License-Identifier: Apache-2.0 */
/* submit: see submit.h. */
#include "tools/gen/submit.h"

#include <string.h>

#include "base/assert.h"
#include "base/options.h"

struct client_option {
	const char *name;
	const char *ours;      /* NULL: it has no meaning any more */
	const char *replaced;  /* by what */
	const char *unchanged; /* a value that asks for what is there anyway; NULL: none */
	bool is_switch;        /* has no value of its own */
};

static const struct client_option client[] = {
	{.name = "jobname", .ours = "job_name"},
	{.name = "parallelism", .ours = "trainers"},
	{.name = "cpu", .ours = "cpu"},
	{.name = "gpu", .ours = "gpu"},
	{.name = "memory", .ours = "memory"},
	{.name = "pservers", .ours = "pservers"},
	{.name = "pscpu", .ours = "pscpu"},
	{.name = "psmemory", .ours = "psmemory"},
	{.name = "entry", .ours = "entry"},
	{.name = "passes", .ours = "num_passes"},
	{.name = "image", .ours = "image"},
	{.name = "registry", .ours = "registry"},
	{.name = "env", .ours = "env"},
	{.name = "topology",
	 .unchanged = "",
	 .replaced = "a trainer_config.py was a program of the original's trainer; give a program "
		     "of yours with -entry or behind --, or a built-in model: -- train MODEL"},
	{.name = "datacenter",
	 .replaced = "kubectl chooses the cluster: kubectl --context=NAME apply -f FILE"},
	{.name = "min_instance",
	 .replaced = "trainers cannot join or leave a running job; -parallelism is their number"},
	{.name = "max_instance",
	 .replaced = "trainers cannot join or leave a running job; -parallelism is their number"},
	{.name = "faulttolerant",
	 .is_switch = true,
	 .unchanged = "false",
	 .replaced = "a job that loses a process starts again as a whole, --restarts times"},
};

static const struct client_option *
find_client(const char *name, size_t bytes)
{
	for (size_t i = 0; i < WF_ARRAY_COUNT(client); i++) {
		if (strlen(client[i].name) == bytes && strncmp(client[i].name, name, bytes) == 0) {
			return &client[i];
		}
	}
	return NULL;
}

static enum weft_status
keep(const char *name, const char *value, struct wf_args *out, struct wf_gen_job *job)
{
	if (strcmp(name, "env") == 0) {
		return wf_gen_add_variable(job, value);
	}
	if (strcmp(name, "volume") == 0) {
		return wf_gen_add_volume(job, value);
	}
	wf_args_add(out, "--%s=%s", name, value);
	return WEFT_OK;
}

static enum weft_status
read_client(const struct client_option *option, const char *value, struct wf_args *out,
	    struct wf_gen_job *job)
{
	if (option->ours != NULL) {
		return keep(option->ours, value, out, job);
	}
	if (option->unchanged != NULL && strcmp(option->unchanged, value) == 0) {
		return WEFT_OK;
	}
	return wf_fail(WEFT_INVALID, "-%s has no meaning any more: %s", option->name,
		       option->replaced);
}

/* Reads one option and its value. Returns the number of arguments, 0 if it is another option. */
static int
read_option(int argc, char *const *argv, struct wf_args *out, struct wf_gen_job *job,
	    enum weft_status *st)
{
	const char *name = argv[0] + strspn(argv[0], "-");
	size_t dashes = (size_t)(name - argv[0]);
	size_t bytes = strcspn(name, "=");
	const struct client_option *option = find_client(name, bytes);
	bool is_volume = bytes == strlen("volume") && strncmp(name, "volume", bytes) == 0;

	if (dashes == 0 || dashes > 2 || (option == NULL && !is_volume)) {
		return 0;
	}
	const char *value = name[bytes] == '=' ? name + bytes + 1 : NULL;
	int used = 1;
	if (value == NULL && option != NULL && option->is_switch) {
		value = "true";
	} else if (value == NULL && argc > 1) {
		value = argv[1];
		used = 2;
	}
	if (value == NULL || (used == 2 && strcmp(value, "--") == 0)) {
		*st = wf_fail(WEFT_INVALID, "%s: the value is missing", argv[0]);
		return used;
	}
	*st = option != NULL ? read_client(option, value, out, job)
			     : keep("volume", value, out, job);
	return used;
}

enum weft_status
wf_gen_read_arguments(const struct wf_options *options, int argc, char *const *argv,
		      struct wf_args *out, struct wf_gen_job *job)
{
	enum weft_status st = WEFT_OK;

	wf_args_init(out);
	wf_args_borrow(out, argv[0]);
	for (int at = 1; at < argc && st == WEFT_OK;) {
		bool takes_next = false;
		int used = read_option(argc - at, argv + at, out, job, &st);
		if (used == 0) {
			wf_args_borrow(out, argv[at]);
			used = 1;
			bool is_option = strncmp(argv[at], "--", 2) == 0;
			if (is_option && wf_options_knows(options, argv[at], &takes_next) &&
			    takes_next && at + 1 < argc) {
				wf_args_borrow(out, argv[at + 1]);
				used = 2;
			}
		}
		at += used;
	}
	return st == WEFT_OK ? wf_args_check(out) : st;
}
