/* SPDX-License-Identifier: Apache-2.0 */
/* conf_fake: the fake as a backend of the cases of tests/conformance: "fake-KIND", and
 * "fake-KIND-late" with all that leaves every sentence of the contract true. Thread: one. */
#include "conf_fake.h"

#include <stdlib.h>
#include <string.h>

#include "fake.h"
#include "fake_world.h"

#define LATE_SUFFIX "-late"

static bool
begin(const char *url, uint64_t seed)
{
	const struct fake_knobs late = {
		.seed = seed,
		.work_ns = 200 * WF_NS_PER_US,
		.completion_ns = 2 * WF_NS_PER_MS,
		.cm_ns = 5 * WF_NS_PER_MS,
		.late_per_mille = 500,
		.dry_per_mille = 100,
		.unwoken_per_mille = 20,
		.cm_twice_per_mille = 300,
	};
	char kind[32] = "";
	const char *suffix = strstr(url, LATE_SUFFIX);
	size_t bytes = suffix != NULL ? (size_t)(suffix - url) : strlen(url);
	if (bytes < sizeof(kind)) {
		memcpy(kind, url, bytes);
	}
	fake_reset();
	fake_turn_knobs(suffix != NULL ? &late : NULL);
	return fake_be(kind);
}

static const char *
end(void)
{
	static char text[512];
	return fake_left_over(text, sizeof(text));
}

static const struct conf_extra extra = {.prefix = "fake-",
					.transport = "verbs",
					.begin = begin,
					.enter = fake_world_enter,
					.end = end};

/* Before main: the cases ask for it by URL. */
__attribute__((constructor)) static void
register_fake(void)
{
	conf_extra = &extra;
}

bool
conf_fake_run(const char *url, bool (*body)(struct conf *t))
{
	const char *seed = getenv("WEFT_SEED");
	return conf_run(url, seed != NULL ? strtoull(seed, NULL, 0) : 1, body);
}

void
conf_fake_pass(struct conf *t, uint64_t span_ns)
{
	uint64_t until_ns = wf_now_ns(t->env) + span_ns;
	while (wf_now_ns(t->env) < until_ns) {
		conf_pump(t);
	}
}
