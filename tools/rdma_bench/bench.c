/* SPDX-License-Identifier: Apache-2.0 */
/* bench: see bench.h. */
#include "tools/rdma_bench/bench.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/env.h"
#include "base/pin.h"

#define QUICK_PAIRS 2u
#define QUICK_NS (5 * WF_NS_PER_MS)

static const struct {
	const char *name;
	enum weft_status (*run)(struct wf_bench *bench);
} items[] = {
	{"fused_sum_sgd", wf_items_kernel},
	{"exchange_bandwidth", wf_items_bandwidth},
	{"exchange_latency", wf_items_latency},
	{"scaling", wf_items_scaling},
	{"async", wf_items_async},
	{"crowd", wf_items_crowd},
	{"idle_cpu", wf_items_idle},
	{"table", wf_items_table},
	{"rows", wf_items_rows},
	{"merge", wf_items_merge},
	{"lanes", wf_items_lanes},
};

/* Whether `name` is one of the words of a comma list. */
static bool
lists(const char *list, const char *name)
{
	size_t bytes = strlen(name);
	for (const char *at = list; *at != '\0';) {
		size_t word = strcspn(at, ",");
		if (word == bytes && strncmp(at, name, bytes) == 0) {
			return true;
		}
		at += word + (at[word] == ',' ? 1 : 0);
	}
	return false;
}

static bool
wants_item(const struct wf_bench *bench, const char *name)
{
	return bench->set.only == NULL || bench->set.only[0] == '\0' ||
	       lists(bench->set.only, name);
}

static enum weft_status
check_only(const char *only)
{
	for (const char *at = only; at != NULL && *at != '\0';) {
		size_t word = strcspn(at, ",");
		bool known = false;
		for (size_t i = 0; i < WF_ARRAY_COUNT(items); i++) {
			known = known || (strlen(items[i].name) == word &&
					  strncmp(at, items[i].name, word) == 0);
		}
		if (!known) {
			return wf_fail(
				WEFT_INVALID,
				"--only=%.100s: there is no '%.*s'; there are: " WF_BENCH_FIGURES,
				only, (int)word, at);
		}
		at += word + (at[word] == ',' ? 1 : 0);
	}
	return WEFT_OK;
}

static enum weft_status
choose_cpus(struct wf_bench *bench)
{
	struct wf_pin *pin = NULL;
	if (wf_pin_cpu_count() < 2) {
		return wf_fail(
			WEFT_UNSUPPORTED,
			"two CPUs are needed, and this process may use %u: try taskset -c 0,1",
			wf_pin_cpu_count());
	}
	enum weft_status st = wf_pin_create(bench->env, bench->set.cpus, 2, &pin);
	if (st != WEFT_OK) {
		return st;
	}
	bench->cpu[0] = wf_pin_place_of(pin, 0).cpu;
	bench->cpu[1] = wf_pin_place_of(pin, 1).cpu;
	wf_pin_destroy(pin);
	if (bench->cpu[0] < 0 || bench->cpu[0] == bench->cpu[1]) {
		return wf_fail(WEFT_INVALID,
			       "--cpus=%s: two different CPUs are needed, as in --cpus=0,1",
			       bench->set.cpus);
	}
	return WEFT_OK;
}

enum weft_status
wf_bench_open(struct wf_bench *bench, const struct wf_self_settings *set)
{
	*bench = (struct wf_bench){.set = *set};
	enum weft_status st = check_only(set->only);
	if (st == WEFT_OK) {
		st = wf_env_system_create(WF_LOG_WARN, STDERR_FILENO, &bench->env);
	}
	if (st == WEFT_OK) {
		st = choose_cpus(bench);
	}
	if (st == WEFT_OK) {
		st = wf_bench_congestion(set->congestion, bench->congestion);
	}
	if (st != WEFT_OK) {
		return st;
	}
	if (set->quick) {
		bench->set.pairs = QUICK_PAIRS;
		bench->set.seconds_ns = QUICK_NS;
	}
	bench->deadline_ns = wf_now_ns(bench->env) + set->limit_ns;
	return WEFT_OK;
}

void
wf_bench_close(struct wf_bench *bench)
{
	if (bench->probing) {
		wf_probe_end(&bench->probe);
	}
	bench->probing = false;
	wf_env_system_destroy(bench->env);
	bench->env = NULL;
}

enum weft_status
wf_bench_run(struct wf_bench *bench)
{
	enum weft_status st = WEFT_OK;
	unsigned wanted = 0, begun = 0;
	for (size_t i = 0; i < WF_ARRAY_COUNT(items); i++) {
		wanted += wants_item(bench, items[i].name);
	}
	for (size_t i = 0; i < WF_ARRAY_COUNT(items) && st == WEFT_OK; i++) {
		if (!wants_item(bench, items[i].name)) {
			continue;
		}
		begun++;
		fprintf(stderr, "rdma_bench: measuring %s (%u of %u)\n", items[i].name, begun,
			wanted);
		st = items[i].run(bench);
	}
	return st;
}

bool
wf_bench_wants_transport(const struct wf_bench *bench, const char *name)
{
	return strcmp(bench->set.transport, "both") == 0 || strcmp(bench->set.transport, name) == 0;
}

enum weft_status
wf_bench_left(const struct wf_bench *bench, uint64_t *out)
{
	uint64_t now_ns = wf_now_ns(bench->env);
	if (now_ns >= bench->deadline_ns) {
		return wf_fail(WEFT_TIMEOUT,
			       "%u s have passed with %u figures done; allow more time with "
			       "--limit, or measure less with --only or --pairs",
			       (unsigned)(bench->set.limit_ns / WF_NS_PER_S), bench->result_count);
	}
	*out = bench->deadline_ns - now_ns;
	return WEFT_OK;
}

struct wf_result *
wf_bench_add(struct wf_bench *bench)
{
	WF_ASSERT(bench->result_count < WF_RESULTS_MAX);
	return &bench->result[bench->result_count++];
}

const char *
wf_bench_keep_text(struct wf_bench *bench, const char *text)
{
	WF_ASSERT(bench->text_count < WF_TEXTS_MAX);
	char *kept = bench->text[bench->text_count++];
	snprintf(kept, WF_TEXT_BYTES, "%s", text);
	return kept;
}

struct wf_limit_opts
wf_bench_limit_opts(const struct wf_bench *bench)
{
	return (struct wf_limit_opts){
		.client_cpu = bench->cpu[1],
		.server_cpu = bench->cpu[0],
		.either = {bench->cpu[0], bench->cpu[1]},
		.congestion = bench->congestion,
	};
}

struct wf_product_opts
wf_bench_product_opts(const struct wf_bench *bench, const char *transport)
{
	return (struct wf_product_opts){
		.transport = transport,
		.slice_bytes = WF_BENCH_SLICE_BYTES,
		.pserver_count = 1,
		.trainer_count = 1,
		.pserver_cpu = bench->cpu[0],
		.trainer_cpu = bench->cpu[1],
		.either = {bench->cpu[0], bench->cpu[1]},
		.progress = WEFT_PROGRESS_THREAD,
		.congestion = bench->congestion,
		.batch = 1,
	};
}
