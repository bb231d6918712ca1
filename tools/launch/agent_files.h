/* SPDX-License-Identifier: Apache-2.0 */
/* agent_files: what an agent keeps in files on its host: the workspace of the job, which is its
 * current folder, and the job's secret. Thread: main. */
#pragma once

#include <sys/types.h>

#include "base/status.h"
#include "tools/launch/frame.h"

#define WF_AGENT_PATH_BYTES 4096

struct wf_agent_files {
	char workspace[WF_AGENT_PATH_BYTES]; /* "": there is none */
	int lock_fd;                         /* of the node file, which is locked; -1: none */
	char secret_dir[256];                /* "": there is none */
	pid_t keeper_pid;                    /* the process that removes the secret */
	int keeper_fd;                       /* its end is the sign for that; -1: none */
};

void wf_agent_files_init(struct wf_agent_files *files);
/* Starts the process that removes the secret when this one ends, even by SIGKILL. The caller has no
 * other thread yet. */
enum weft_status wf_agent_files_keep(struct wf_agent_files *files) WEFT_MUST_CHECK;
/* Makes or enters the workspace, with log/, output/ on the first host, and nodefile in it.
 * WEFT_INVALID, WEFT_IO; WEFT_UNAVAILABLE: another job or host is using it. */
enum weft_status wf_agent_workspace(struct wf_agent_files *files, enum wf_workspace kind,
				    const char *path, uint32_t node) WEFT_MUST_CHECK;
/* Makes a folder in the workspace, unless it is there. */
enum weft_status wf_agent_folder(const char *name) WEFT_MUST_CHECK;
/* Writes the secret to a file of mode 0400, in a new folder of mode 0700 in TMPDIR or /tmp, and
 * names it in the environment, WEFT_SECRET_FILE. */
enum weft_status wf_agent_secret(struct wf_agent_files *files, const void *secret,
				 size_t bytes) WEFT_MUST_CHECK;
/* Removes the secret; the workspace stays. */
void wf_agent_files_fini(struct wf_agent_files *files);
