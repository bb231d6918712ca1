/* SPDX-License-Identifier: Apache-2.0 */
/* plan: see plan.h. */
#include "tools/launch/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/options.h"

#define LIST_BYTES 6144 /* of the text of --pservers; two of them fit into a wf_args */

static uint32_t
ports_each(const struct wf_plan_opts *opts)
{
	return opts->ports_num + opts->ports_num_for_sparse;
}

uint32_t
wf_plan_port_count(const struct wf_plan_opts *opts)
{
	return opts->pservers * ports_each(opts);
}

static struct wf_host
address_of(const struct wf_plan_opts *opts, uint32_t pserver_idx)
{
	struct wf_host at = opts->listen;

	if (opts->pserver_at != NULL) {
		return opts->pserver_at[pserver_idx];
	}
	/* A pserver that listens everywhere is reached over loopback. */
	if (strcmp(at.name, "0.0.0.0") == 0) {
		snprintf(at.name, sizeof(at.name), "127.0.0.1");
	} else if (strcmp(at.name, "::") == 0) {
		snprintf(at.name, sizeof(at.name), "::1");
	}
	at.port = (uint16_t)(opts->listen.port + pserver_idx * ports_each(opts));
	return at;
}

static enum weft_status
list_pservers(const struct wf_plan_opts *opts, char *out, size_t bytes)
{
	size_t used = 0;

	for (uint32_t i = 0; i < opts->pservers; i++) {
		char text[WF_HOST_BYTES + 8];
		struct wf_host at = address_of(opts, i);
		wf_host_format(&at, text, sizeof(text));
		int wanted = snprintf(out + used, bytes - used, "%s%s", i > 0 ? "," : "", text);
		if (wanted < 0 || (size_t)wanted >= bytes - used) {
			return wf_fail(WEFT_INVALID, "the list of %u pservers is too long",
				       opts->pservers);
		}
		used += (size_t)wanted;
	}
	return WEFT_OK;
}

void
wf_plan_variable(struct wf_args *variables, const char *name, const char *value)
{
	char variable[WF_OPTION_VARIABLE_BYTES];

	wf_option_variable("WEFT_", name, variable);
	wf_args_add(variables, "%s=%s", variable, value);
}

enum weft_status
wf_plan_set(struct wf_child_spec *spec, const char *name, const char *value)
{
	if (spec->program != NULL) {
		wf_plan_variable(&spec->variables, name, value);
		return wf_args_check(&spec->variables);
	}
	wf_args_add(&spec->args, "--%s=%s", name, value);
	return wf_args_check(&spec->args);
}

/* Its name in lines and files of the log, and in the system's list of processes. */
static void
name_child(struct wf_child_spec *spec, const char *role, uint32_t idx)
{
	snprintf(spec->name, sizeof(spec->name), "%s %u", role, idx);
	wf_args_init(&spec->variables);
	wf_args_add(&spec->variables, "WEFT_ROLE=%s", role);
	wf_args_add(&spec->variables, "WEFT_RANK=%u", idx);
}

static void
plan_pserver(const struct wf_plan_opts *opts, uint32_t idx, struct wf_child_spec *spec)
{
	struct wf_args *args = &spec->args;
	struct wf_host at = address_of(opts, idx);

	name_child(spec, "pserver", idx);
	wf_args_init(args);
	wf_args_add(args, "weft");
	wf_args_borrow_all(args, opts->pserver_args);
	wf_args_add(args, "--listen=%s", opts->pserver_at != NULL ? at.name : opts->listen.name);
	wf_args_add(args, "--port=%u", at.port);
	wf_args_add(args, "--ports_num=%u", opts->ports_num);
	wf_args_add(args, "--ports_num_for_sparse=%u", opts->ports_num_for_sparse);
	wf_args_add(args, "--num_gradient_servers=%u", opts->trainers);
	if (opts->pservers > 1) {
		char registrar[WF_HOST_BYTES + 8];
		at = address_of(opts, 0);
		wf_host_format(&at, registrar, sizeof(registrar));
		wf_args_add(args, "--registrar=%s", registrar);
	}
	wf_args_add(args, "--once");
	spec->again = opts->pserver_again;
}

/* The job's settings for the session of a user's program, by weft's names and by the original's.
 * They come last, because they override those of the session. Python buffers its output unless it
 * is configured otherwise, and lines of a log should appear when they are printed. */
static void
plan_variables(const struct wf_plan_opts *opts, uint32_t idx, const char *pservers,
	       struct wf_args *variables)
{
	static const char *const prefixes[] = {"WEFT", "PADDLE_INIT"};

	wf_args_borrow_all(variables, opts->variables);
	for (size_t i = 0; i < WF_ARRAY_COUNT(prefixes); i++) {
		const char *prefix = prefixes[i];
		wf_args_add(variables, "%s_TRAINER_ID=%u", prefix, idx);
		wf_args_add(variables, "%s_NUM_GRADIENT_SERVERS=%u", prefix, opts->trainers);
		wf_args_add(variables, "%s_PSERVERS=%s", prefix, pservers);
		wf_args_add(variables, "%s_PORT=%u", prefix, address_of(opts, 0).port);
		wf_args_add(variables, "%s_PORTS_NUM=%u", prefix, opts->ports_num);
		wf_args_add(variables, "%s_PORTS_NUM_FOR_SPARSE=%u", prefix,
			    opts->ports_num_for_sparse);
	}
	if (getenv("PYTHONUNBUFFERED") == NULL) {
		wf_args_add(variables, "PYTHONUNBUFFERED=1");
	}
}

static void
plan_trainer(const struct wf_plan_opts *opts, uint32_t idx, const char *pservers,
	     struct wf_child_spec *spec)
{
	struct wf_args *args = &spec->args;

	name_child(spec, "trainer", idx);
	spec->is_worker = true;
	spec->owns_stdout = idx == 0;
	if (opts->trainers_join) {
		spec->again = opts->program != NULL ? "WEFT_JOIN=1" : "--join";
	}
	wf_args_init(args);
	if (opts->program != NULL) {
		spec->program = opts->program;
		wf_args_borrow_all(args, opts->trainer_args);
		plan_variables(opts, idx, pservers, &spec->variables);
		return;
	}
	wf_args_add(args, "weft");
	wf_args_borrow_all(args, opts->trainer_args);
	/* These override the environment: the trainers belong to one job. */
	wf_args_add(args, "--no-local");
	wf_args_add(args, "--no-sequential");
	wf_args_add(args, "--trainer_id=%u", idx);
	wf_args_add(args, "--num_gradient_servers=%u", opts->trainers);
	wf_args_add(args, "--pservers=%s", pservers);
	wf_args_add(args, "--ports_num=%u", opts->ports_num);
	wf_args_add(args, "--ports_num_for_sparse=%u", opts->ports_num_for_sparse);
}

enum weft_status
wf_plan_job(const struct wf_plan_opts *opts, struct wf_child_spec *spec)
{
	char pservers[LIST_BYTES];

	WF_ASSERT(opts->pservers >= 1 && opts->pservers <= WF_PLAN_PSERVERS_MAX);
	WF_ASSERT(opts->trainers >= 1 && opts->trainers <= WF_PLAN_TRAINERS_MAX);
	enum weft_status st = list_pservers(opts, pservers, sizeof(pservers));
	if (st != WEFT_OK) {
		return st;
	}
	for (uint32_t i = 0; i < opts->pservers + opts->trainers && st == WEFT_OK; i++) {
		if (i < opts->pservers) {
			plan_pserver(opts, i, &spec[i]);
		} else {
			plan_trainer(opts, i - opts->pservers, pservers, &spec[i]);
		}
		st = wf_args_check(&spec[i].args);
		if (st == WEFT_OK) {
			st = wf_args_check(&spec[i].variables);
		}
	}
	return st;
}

enum weft_status
wf_plan_alone(const char *name, const struct wf_args *with, struct wf_child_spec *spec)
{
	snprintf(spec->name, sizeof(spec->name), "%s", name);
	spec->is_worker = true;
	spec->owns_stdout = true;
	wf_args_init(&spec->variables);
	wf_args_init(&spec->args);
	wf_args_add(&spec->args, "weft");
	wf_args_borrow_all(&spec->args, with);
	return wf_args_check(&spec->args);
}

unsigned
wf_plan_thread_count(const struct wf_plan_opts *opts)
{
	return wf_plan_port_count(opts) + opts->trainers;
}
