/* SPDX-License-Identifier: Apache-2.0 */
/* hosts: the hosts of a job as users list them: "gpu1", "root@10.0.0.7:2222", "[fe80::1%eth0]:22".
 * A host that is listed several times, or has slots, gets as many pservers and trainers.
 * Thread: any one. */
#pragma once

#include "base/url.h"

#define WF_HOSTS_MAX 256u          /* different hosts, and entries */
#define WF_HOSTS_FILE_BYTES 65536u /* of a host file */
#define WF_HOSTS_USER_BYTES 64u

struct wf_launch_host {
	char user[WF_HOSTS_USER_BYTES]; /* "": none is given */
	struct wf_host at;              /* port 0: none is given */
};

struct wf_hosts {
	struct wf_launch_host host[WF_HOSTS_MAX]; /* in the order of their first entry */
	unsigned count;
	uint16_t entry[WF_HOSTS_MAX]; /* [entry_count] index into host */
	unsigned entry_count;
};

/* Entries with commas between them. WEFT_INVALID: the text has the entry and what is wrong. */
enum weft_status wf_hosts_parse(const char *list, struct wf_hosts *out) WEFT_MUST_CHECK;
/* One entry a line, which may be followed by slots=N; '#' begins a comment. WEFT_INVALID, with the
 * number of the line; WEFT_IO. */
enum weft_status wf_hosts_read(const char *path, struct wf_hosts *out) WEFT_MUST_CHECK;
/* As wf_hosts_read, of a text in memory. `path` is for messages. */
enum weft_status wf_hosts_parse_file(const char *path, const char *text,
				     struct wf_hosts *out) WEFT_MUST_CHECK;
/* Whether the path of a program there goes through a shell as it is. WEFT_INVALID: it does not. */
enum weft_status wf_hosts_check_path(const char *path) WEFT_MUST_CHECK;
