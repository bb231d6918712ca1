/* SPDX-License-Identifier: Apache-2.0 */
/* session_greeting: a readable description of a session's tables, sent when it connects to a sparse
 * lane: it shows which setting differs if trainers do not agree. Thread: the core's. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/settings.h"
#include "sparse/client/session.h"

/* Room for the description of one table: a longer one ends with WF_SETTINGS_MORE. */
#define TABLE_BYTES 256

/* Writes "words=8" and, after commas, the settings that are not at their defaults. Returns how much
 * of `out` that needs; more than `bytes`: it was truncated. */
static size_t
describe_table(const struct wf_table_desc *desc, char *out, size_t bytes)
{
	char settings[TABLE_BYTES];
	wf_settings_describe(WEFT_SETTINGS_TABLE, &desc->set, ',', settings, sizeof(settings));
	return (size_t)snprintf(out, bytes, " %s=%" PRIu32 "%s%s", desc->name, desc->set.dim,
				settings[0] != '\0' ? "," : "", settings);
}

void
wf_client_describe(const struct wf_client *client, char *out, size_t bytes)
{
	static const char *const mode[] = {[WEFT_SPARSE_SYNC] = "sync",
					   [WEFT_SPARSE_ASYNC] = "async",
					   [WEFT_SPARSE_BOUNDED] = "bounded"};
	const struct weft_session_opts *opts = &client->core->opts;
	size_t used = (size_t)snprintf(out, bytes, "sparse_mode=%s", mode[opts->sparse_mode]);
	if (opts->sparse_mode != WEFT_SPARSE_SYNC) {
		used += (size_t)snprintf(out + used, bytes - used, ",%" PRIu32 ",%.9g",
					 opts->sparse_staleness, opts->sparse_discard_ratio);
	}
	for (uint32_t i = 0; i < client->tables.count && used < bytes; i++) {
		used += describe_table(&client->tables.desc[i], out + used, bytes - used);
	}
}
