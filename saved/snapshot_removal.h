/* SPDX-License-Identifier: Apache-2.0 */
/* snapshot_removal: what making and removing snapshots share. Private to this folder. Thread: the
 * caller's. */
#pragma once

#include "saved/snapshot.h"

/* Whether the directory of that name in the folder has a manifest, or may have one; a link and a
 * file have none. */
bool wf_snapshot_has_manifest(const struct wf_saved_calls *calls, int folder, const char *name);
