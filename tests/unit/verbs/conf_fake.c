/* SPDX-License-Identifier: Apache-2.0 */
/* conf_fake: the fake as a backend of the cases of tests/conformance: "fake-KIND". Thread: one. */
#include "fake.h"
#include "fake_world.h"
#include "tests/conformance/conformance.h"

static bool
begin(const char *kind)
{
	fake_reset();
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
