/* SPDX-License-Identifier: Apache-2.0 */
/* paths_broken: the paths, and rails, that broke: towards which peer, why, and until when they are
 * left out. Thread: the transport's owner. */
#include "transport/paths/paths_internal.h"

#include <stdio.h>
#include <string.h>

static bool
is_same_host(const struct wf_host *a, const struct wf_host *b)
{
	return a->port == b->port && strcmp(a->name, b->name) == 0;
}

const struct wf_paths_broken *
wf_paths_broken_find(const struct wf_paths_broken_list *list, const struct wf_path *path,
		     const struct wf_host *peer)
{
	for (unsigned i = 0; i < WF_PATHS_BROKEN_MAX; i++) {
		const struct wf_paths_broken *broken = &list->at[i];
		if (broken->path == path && is_same_host(&broken->peer, peer)) {
			return broken;
		}
	}
	return NULL;
}

bool
wf_paths_is_broken(const struct wf_paths *t, const struct wf_path *path, const struct wf_host *peer)
{
	const struct wf_paths_broken *broken = wf_paths_broken_find(&t->broken, path, peer);
	return broken != NULL && wf_now_ns(t->transport.env) < broken->until_ns;
}

/* A free entry, or the oldest one. */
static struct wf_paths_broken *
place_for(struct wf_paths_broken_list *list)
{
	struct wf_paths_broken *oldest = &list->at[0];
	for (unsigned i = 0; i < WF_PATHS_BROKEN_MAX; i++) {
		if (list->at[i].path == NULL) {
			return &list->at[i];
		}
		if (list->at[i].at_ns < oldest->at_ns) {
			oldest = &list->at[i];
		}
	}
	return oldest;
}

const struct wf_paths_broken *
wf_paths_broken_add(struct wf_paths_broken_list *list, const struct wf_paths_breaking *what)
{
	const struct wf_paths_broken *before = wf_paths_broken_find(list, what->path, what->peer);
	struct wf_paths_broken *broken = NULL;
	unsigned times = 0;
	if (before == NULL) {
		broken = place_for(list);
	} else {
		bool held = what->up_ns > 0 &&
			    what->now_ns - what->up_ns > before->until_ns - before->at_ns;
		broken = &list->at[before - list->at];
		times = held ? 0 : before->times; /* for as long as it was left out */
	}
	*broken = (struct wf_paths_broken){
		.peer = *what->peer,
		.path = what->path,
		.times = times < WF_PATHS_BROKEN_DOUBLINGS ? times + 1 : times,
		.number = ++list->count,
		.at_ns = what->now_ns,
		.until_ns = what->now_ns + (what->retry_ns << times),
	};
	(void)snprintf(broken->why, sizeof(broken->why), "%.*s", WF_PATHS_WHY_BYTES - 1, what->why);
	return broken;
}

void
wf_paths_broken_forgive(struct wf_paths_broken_list *list, uint64_t number)
{
	for (unsigned i = 0; i < WF_PATHS_BROKEN_MAX && number != 0; i++) {
		if (list->at[i].number == number) {
			list->at[i] = (struct wf_paths_broken){0};
		}
	}
}
