/* SPDX-License-Identifier: Apache-2.0 */
/* half: see half.h. Thread: one. */
#include "tests/cluster/half.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static char text[1 << 20]; /* of the log */

static void
fill_server(const struct crew *crew, struct wf_server_opts *out)
{
	(void)crew;
	out->snapshots.registrar = "ps0";
	out->min_trainers = 1;
}

void
half_delay(struct wf_world *world, const char *from, const char *to, uint64_t begin_ns,
	   uint64_t end_ns)
{
	const struct wf_world_partition partition = {
		.from = from, .to = to, .begin_ns = begin_ns, .end_ns = end_ns};
	wf_world_partition(world, &partition);
}

void
half_disturb(struct crew *crew, struct wf_world *world, struct wf_proc *const *proc)
{
	half_delay(world, "tr1", "ps1", HALF_LAST * HALF_STEP_NS - HALF_STEP_NS / 2,
		   HALF_LOST_NS + 4 * WF_NS_PER_S);
	wf_world_kill_at(world, proc[crew->pservers + 1], HALF_KILL_NS);
}

void
half_begin(struct crew *crew)
{
	*crew = (struct crew){
		.seed = 1,
		.transport = "sim",
		.pservers = 2,
		.trainers = 2,
		.lanes = 1,
		.fill_server = fill_server,
		.disturb = half_disturb,
		.ends_badly = true,
		.world = {.seed = 1,
			  .delay_min_ns = WF_NS_PER_US,
			  .delay_max_ns = WF_NS_PER_MS,
			  .log_level = WF_LOG_WARN,
			  .log_fd = memfd_create("log", MFD_CLOEXEC)},
	};
}

void
half_wait_until(struct wf_env *env, uint64_t when_ns)
{
	while (wf_now_ns(env) < when_ns) {
		wf_wait(env, -1, when_ns);
	}
}

static size_t
read_log(const struct crew *crew)
{
	ssize_t bytes = pread(crew->world.log_fd, text, sizeof(text) - 1, 0);
	size_t count = bytes > 0 ? (size_t)bytes : 0;
	text[count] = '\0';
	return count;
}

bool
half_has_line(const struct crew *crew, const char *line)
{
	(void)read_log(crew);
	return strstr(text, line) != NULL;
}

void
half_end(const struct crew *crew)
{
	if (getenv("WEFT_CLUSTER_LOG") != NULL) {
		(void)fwrite(text, 1, read_log(crew), stderr);
	}
	(void)close(crew->world.log_fd);
}
