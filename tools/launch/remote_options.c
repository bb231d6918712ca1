/* SPDX-License-Identifier: Apache-2.0 */
/* remote_options: see remote_options.h. */
#include "tools/launch/remote_options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/assert.h"

#define HEADING "Several hosts"
#define AT(field) .offset = offsetof(struct wf_remote_set, field)
#define SECRET_BYTES 32

static const struct wf_option table[WF_REMOTE_OPTIONS] = {
	{.name = "hosts",
	 .type = WF_OPTION_STRING,
	 AT(hosts),
	 .initial = "",
	 .metavar = "[USER@]HOST[:PORT],...",
	 .heading = HEADING,
	 .help = "Run the processes on these hosts, which ssh reaches without a password. Each "
		 "entry has one pserver and one trainer, unless --pservers or --trainers is "
		 "given; these are then dealt to the entries in turn. A host may be listed "
		 "several times. The port is that of ssh; an IPv6 address stands in brackets."},
	{.name = "hostfile",
	 .type = WF_OPTION_STRING,
	 AT(hostfile),
	 .initial = "",
	 .metavar = "FILE",
	 .heading = HEADING,
	 .help = "Read the hosts from a file, one a line. slots=N behind a host stands for N "
		 "entries, and # begins a comment."},
	{.name = "job_dispatch_package",
	 .type = WF_OPTION_STRING,
	 AT(job_dispatch_package),
	 .initial = "",
	 .metavar = "DIR",
	 .heading = HEADING,
	 .help = "Copy the content of this folder to a new workspace on each host, and start the "
		 "processes there. The workspace stays after the job, with log/ and nodefile in "
		 "it, and output/ on the first host."},
	{.name = "job_workspace",
	 .type = WF_OPTION_STRING,
	 AT(job_workspace),
	 .initial = "",
	 .metavar = "DIR",
	 .heading = HEADING,
	 .help = "Start the processes in this folder, which every host has already. Without a "
		 "package and a workspace they start where ssh does, and their lines are not "
		 "filed there."},
	{.name = "job_root",
	 .type = WF_OPTION_STRING,
	 AT(job_root),
	 .initial = "/tmp",
	 .metavar = "DIR",
	 .heading = HEADING,
	 .help = "The folder on each host in which --job_dispatch_package makes the workspace, "
		 "JOB<time>-<number>."},
	{.name = "thirdparty",
	 .type = WF_OPTION_STRING,
	 AT(thirdparty),
	 .initial = "",
	 .metavar = "DIR",
	 .heading = HEADING,
	 .help = "Copy this folder to thirdparty/ in each workspace, and run its before_hook.sh "
		 "with bash before the processes start. A function private_script that the hook "
		 "defines is called with the paths of thirdparty/ and of the workspace."},
	{.name = "port_range",
	 .type = WF_OPTION_STRING,
	 AT(port_range),
	 .initial = "",
	 .metavar = "LOW-HIGH",
	 .heading = HEADING,
	 .help = "Let the pservers of each host listen on the first consecutive ports that are "
		 "free in this range, instead of on --port and those after it."},
	{.name = "ssh",
	 .type = WF_OPTION_STRING,
	 AT(ssh),
	 .initial = "ssh -T -a -x -o BatchMode=yes -o ConnectTimeout=20 -o ServerAliveInterval=15",
	 .metavar = "COMMAND",
	 .heading = HEADING,
	 .help = "The command that reaches a host, with its options. The port, the host and the "
		 "command there follow it."},
	{.name = "ssh_port",
	 .type = WF_OPTION_U64,
	 AT(ssh_port),
	 .bytes = sizeof(uint16_t),
	 .max = 65535,
	 .heading = HEADING,
	 .help = "The port of ssh on hosts that are listed without one. 0: ssh knows it."},
	{.name = "remote_weft",
	 .type = WF_OPTION_STRING,
	 AT(remote_weft),
	 .initial = "weft",
	 .metavar = "PATH",
	 .heading = HEADING,
	 .help = "The program weft on the other hosts. Its version has to be that of this one."},
	{.name = "secret_file",
	 .type = WF_OPTION_STRING,
	 AT(secret_file),
	 .initial = "",
	 .metavar = "FILE",
	 .heading = HEADING,
	 .help = "File with the secret of the job, for all its processes: see weft pserver "
		 "--help. A job on several hosts gets a new secret if none is given."},
};

void
wf_remote_options(struct wf_option rows[WF_REMOTE_OPTIONS], size_t at)
{
	memcpy(rows, table, sizeof(table));
	for (unsigned i = 0; i < WF_REMOTE_OPTIONS; i++) {
		rows[i].offset += at;
	}
}

bool
wf_remote_set_is_used(const struct wf_remote_set *set)
{
	return set->hosts[0] != '\0' || set->hostfile[0] != '\0';
}

static const char *
or_null(const char *text)
{
	return text[0] != '\0' ? text : NULL;
}

/* An option that makes sense only with hosts; NULL: none is given. */
static const char *
find_misplaced(const struct wf_remote_set *set)
{
	const struct {
		const char *value, *name;
	} all[] = {
		{set->job_dispatch_package, "job_dispatch_package"},
		{set->job_workspace, "job_workspace"},
		{set->thirdparty, "thirdparty"},
		{set->port_range, "port_range"},
	};

	for (size_t i = 0; i < WF_ARRAY_COUNT(all); i++) {
		if (all[i].value[0] != '\0') {
			return all[i].name;
		}
	}
	return NULL;
}

enum weft_status
wf_remote_set_check(const struct wf_remote_set *set, bool local)
{
	bool package = set->job_dispatch_package[0] != '\0';
	bool workspace = set->job_workspace[0] != '\0';
	const char *misplaced = find_misplaced(set);

	if (!wf_remote_set_is_used(set)) {
		if (!local) {
			return wf_fail(WEFT_INVALID, "give --local for a job on this host, or "
						     "--hosts=HOST,HOST or --hostfile=FILE");
		}
		return misplaced == NULL ? WEFT_OK
					 : wf_fail(WEFT_INVALID,
						   "--%s is for a job on several hosts; a job "
						   "with --local runs in this folder",
						   misplaced);
	}
	if (local || (set->hosts[0] != '\0' && set->hostfile[0] != '\0')) {
		return wf_fail(WEFT_INVALID, "give one of --local, --hosts and --hostfile");
	}
	if (package && workspace) {
		return wf_fail(WEFT_INVALID,
			       "give --job_dispatch_package, which makes a workspace, "
			       "or --job_workspace, not both");
	}
	if (set->thirdparty[0] != '\0' && !package && !workspace) {
		return wf_fail(WEFT_INVALID, "--thirdparty needs a workspace: give "
					     "--job_dispatch_package or --job_workspace");
	}
	return wf_hosts_check_path(set->remote_weft);
}

static enum weft_status
parse_range(const char *text, struct wf_remote_job *out)
{
	char *end = NULL;

	errno = 0;
	unsigned long lowest = strtoul(text, &end, 10);
	unsigned long highest = *end == '-' ? strtoul(end + 1, &end, 10) : 0;
	if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 || lowest == 0 ||
	    highest < lowest || highest > UINT16_MAX) {
		return wf_fail(WEFT_INVALID,
			       "--port_range=%.80s: give two ports, as in 20000-20100", text);
	}
	out->lowest_port = (uint16_t)lowest;
	out->opts.highest_port = (uint16_t)highest;
	return WEFT_OK;
}

/* A folder that is copied to the hosts; "": there is none. */
static enum weft_status
check_folder(const char *option, const char *path)
{
	struct stat info;

	if (path[0] == '\0') {
		return WEFT_OK;
	}
	if (stat(path, &info) != 0) {
		return wf_fail(WEFT_INVALID, "--%s=%.300s: %s", option, path, strerror(errno));
	}
	if (!S_ISDIR(info.st_mode)) {
		return wf_fail(WEFT_INVALID, "--%s=%.300s: it is no folder", option, path);
	}
	if (access(path, R_OK | X_OK) != 0) {
		return wf_fail(WEFT_INVALID, "--%s=%.300s: the folder cannot be read: %s", option,
			       path, strerror(errno));
	}
	return WEFT_OK;
}

static enum weft_status
make_secret(const char *path, struct wf_remote_job *out)
{
	if (path[0] != '\0') {
		return wf_secret_read(path, out->secret, &out->opts.secret_bytes);
	}
	if (getrandom(out->secret, SECRET_BYTES, 0) != SECRET_BYTES) {
		return wf_fail_errno(WEFT_IO, errno, "no random bytes for the secret of the job");
	}
	out->opts.secret_bytes = SECRET_BYTES;
	return WEFT_OK;
}

enum weft_status
wf_remote_set_read(const struct wf_remote_set *set, struct wf_remote_job *out)
{
	memset(out, 0, sizeof(*out));
	out->opts = (struct wf_remote_opts){
		.hosts = &out->hosts,
		.ssh = set->ssh,
		.ssh_port = set->ssh_port,
		.weft = set->remote_weft,
		.package = or_null(set->job_dispatch_package),
		.workspace = or_null(set->job_workspace),
		.root = set->job_root,
		.third = or_null(set->thirdparty),
		.secret = out->secret,
	};
	enum weft_status st = check_folder("job_dispatch_package", set->job_dispatch_package);
	if (st == WEFT_OK) {
		st = check_folder("thirdparty", set->thirdparty);
	}
	if (st == WEFT_OK) {
		st = set->hosts[0] != '\0' ? wf_hosts_parse(set->hosts, &out->hosts)
					   : wf_hosts_read(set->hostfile, &out->hosts);
	}
	if (st == WEFT_OK && set->port_range[0] != '\0') {
		st = parse_range(set->port_range, out);
	}
	return st == WEFT_OK ? make_secret(set->secret_file, out) : st;
}
