/* SPDX-License-Identifier: Apache-2.0 */
/* pserver_options: the table behind parser, environment, help and the "understood as" text of `weft
 * pserver`: its own options, the settings that both ends have (base/settings.c), and the
 * original's. Names and defaults are the original's, except that the port is the one that every
 * document of the original passes (7164). Thread: any. */
#include "tools/pserver_options.h"

#include <inttypes.h>
#include <string.h>

#include "base/assert.h"
#include "base/limits.h"
#include "base/role.h"
#include "tools/command.h"
#include "transport/fault/fault.h"

#define FIELD(name) offsetof(struct wf_pserver_settings, name)
#define NO_EFFECT "accepted, without effect"

/* Of settings that trainers have, too: those that differ here in default, limits or meaning. */
static const struct wf_option own[] = {
	{.name = "port",
	 .type = WF_OPTION_U64,
	 .offset = FIELD(session.port),
	 .bytes = sizeof(uint16_t),
	 .initial = "7164",
	 .means = "port of the first lane",
	 .max = 65535,
	 .help = "Port of the first lane; lane i listens on port + i. With 0 the system "
		 "picks each port."},
	{.name = "num_gradient_servers",
	 .type = WF_OPTION_U64,
	 .offset = FIELD(session.num_gradient_servers),
	 .bytes = sizeof(uint32_t),
	 .initial = "1",
	 .means = "trainers of the job",
	 .max = 65536,
	 .help = "Number of trainers of the job; a job with another number is refused. With "
		 "0 the first trainer decides, up to --max_trainers."},
	{.name = "max_trainers",
	 .type = WF_OPTION_U64,
	 .offset = FIELD(max_trainers),
	 .initial = "1024",
	 .min = 1,
	 .max = 65536,
	 .help = "The most trainers of a job if --num_gradient_servers=0 leaves their "
		 "number to the first one that connects. Each takes memory."},
	{.name = "listen",
	 .type = WF_OPTION_STRING,
	 .offset = FIELD(listen),
	 .metavar = "ADDR",
	 .help = "Address to listen on; 127.0.0.1 unless given, or ::1 on a host that has no "
		 "IPv4 address. 0.0.0.0 or :: opens the pserver to every network of this host, and "
		 "whoever reaches the port can "
		 "take part."},
	{.name = "once",
	 .type = WF_OPTION_BOOL,
	 .offset = FIELD(once),
	 .help = "End with the first job: with 0 when all its trainers said goodbye, "
		 "otherwise with the exit code of what ended it. Without this option the pserver "
		 "waits for the next job."},
	{.name = "ready_file",
	 .type = WF_OPTION_STRING,
	 .offset = FIELD(ready_file),
	 .metavar = "FILE",
	 .help = "Write the address of the first lane to this file when all lanes listen, as "
		 "--pservers of a trainer accepts it, and remove the file at the end. If systemd "
		 "waits for it (Type=notify), it is notified as well."},
	{.name = "status",
	 .type = WF_OPTION_STRING,
	 .offset = FIELD(status),
	 .metavar = "[ADDR:]PORT",
	 .help = "Serve a page about the running job over HTTP, with /api/v1/status for programs, "
		 "/metrics for Prometheus, /healthz and /readyz: on loopback, unless ADDR opens it "
		 "to others. It only shows, nothing can be changed there, and it holds no values "
		 "of "
		 "parameters. weft status and weft top need no such port."},
	{.name = "job_name",
	 .type = WF_OPTION_STRING,
	 .offset = FIELD(job_name),
	 .metavar = "NAME",
	 .means = "name of the job",
	 .help = "A name of the job, at most 63 letters, digits, dots, underscores and dashes. It "
		 "stands in the log and on the command line in lists of processes; nothing else "
		 "depends on it."},
	{.name = "save_on_term",
	 .type = WF_OPTION_BOOL,
	 .offset = FIELD(save_on_term),
	 .help = "After SIGTERM stay until the job has ended, so that trainer 0, which got "
		 "SIGTERM as well, can save."},
	{.name = "term_grace",
	 .type = WF_OPTION_DURATION,
	 .offset = FIELD(term_grace_ns),
	 .initial = "30s",
	 .min = WF_NS_PER_MS,
	 .max = 86400 * WF_NS_PER_S,
	 .help = "With --save_on_term: how long the job may go on after SIGTERM."},
	{.name = "slot_count",
	 .type = WF_OPTION_U64,
	 .offset = FIELD(slot_count),
	 .initial = "0",
	 .min = 0,
	 .max = 256,
	 .help = "Number of gradient slices that a lane accepts from one trainer at a time; a "
		 "power of two. 0: 8, and over shared memory, where slices stay in the trainer's "
		 "memory, as many as it pushes in a step, at most 128."},
	{.name = "max_shard_bytes",
	 .type = WF_OPTION_BYTES,
	 .offset = FIELD(max_shard_bytes),
	 .initial = "64GiB",
	 .min = 4096,
	 .help = "The most memory for parameters and optimizer state of one lane. A job "
		 "that needs more is refused."},
	{.name = "inbox_bytes",
	 .type = WF_OPTION_BYTES,
	 .offset = FIELD(inbox_bytes),
	 .initial = "0",
	 .help = "The most memory for gradients that a dense lane keeps until those of all "
		 "trainers have arrived. If it is less than they push in a step, a trainer "
		 "announces each push, and makes it when there is room for that of every "
		 "trainer; the bits are the same, and each push takes one more message in "
		 "each direction. The least is room for one slice of each trainer. 0: as "
		 "much as they push. Tensors that are applied as they arrive need none."},
	{.name = "snapshot_dir",
	 .type = WF_OPTION_STRING,
	 .offset = FIELD(snapshot_dir),
	 .metavar = "DIR",
	 .help = "Write snapshots of the job (parameters, the optimizer's state, the trainers' "
		 "positions in their data) to this directory while it trains, from which it can "
		 "go on if it is stopped: --resume. Give --snapshot_period or --snapshot_steps, "
		 "too."},
	{.name = "registrar",
	 .type = WF_OPTION_STRING,
	 .offset = FIELD(registrar),
	 .metavar = "HOST:PORT",
	 .help = "Where pserver 0 of the job listens, for snapshots of a job with several "
		 "pservers: it decides when they are taken, and all of them write to one "
		 "--snapshot_dir, in a directory that they share. weft launch sets it, and the "
		 "first pserver of a launcher's list counts. --on_trainer_death=drop needs it "
		 "likewise. It is not used otherwise."},
	{.name = "snapshot_period",
	 .type = WF_OPTION_DURATION,
	 .offset = FIELD(snapshot_period_ns),
	 .initial = "0",
	 .help = "Time between two snapshots. 0: they are not taken by time."},
	{.name = "snapshot_steps",
	 .type = WF_OPTION_U64,
	 .offset = FIELD(snapshot_steps),
	 .initial = "0",
	 .help = "Take a snapshot after each step whose number is a multiple of this, unless "
		 "the one before it is still being written. 0: not by steps."},
	{.name = "snapshot_bytes",
	 .type = WF_OPTION_BYTES,
	 .offset = FIELD(snapshot_bytes),
	 .initial = "0",
	 .help = "Memory of each lane for what a snapshot has copied and the disk has not "
		 "written yet. When it is full, a step waits for the disk, which waits_snapshot "
		 "in the lines of --stats_period counts. 0: as much as the lane keeps, so that no "
		 "step waits."},
	{.name = "snapshot_rate",
	 .type = WF_OPTION_BYTES,
	 .offset = FIELD(snapshot_rate),
	 .initial = "0",
	 .help = "The most bytes per second that each lane writes to its snapshots. 0: no limit."},
	{.name = "snapshot_full",
	 .type = WF_OPTION_U64,
	 .offset = FIELD(snapshot_full),
	 .initial = "1",
	 .min = 1,
	 .max = 1000,
	 .help = "Of the snapshots of a job with tables, each of so many has all rows, and the "
		 "others only the rows that have changed since the one before. They take less "
		 "time and space, but are read together with all those before them down to the "
		 "one that has all rows. 1: each has all rows."},
	{.name = "keep",
	 .type = WF_OPTION_U64,
	 .offset = FIELD(keep),
	 .initial = "2",
	 .min = 1,
	 .max = 1000000,
	 .help = "The number of newest snapshots that are kept, with those that they need; older "
		 "ones are removed."},
	{.name = "resume",
	 .type = WF_OPTION_ENUM,
	 .offset = FIELD(resume),
	 .initial = "ask",
	 .choices = "ask|auto|never",
	 .help = "What to do where --snapshot_dir has snapshots of a job that did not end. auto: "
		 "the job goes on from the newest one that is whole, so the same command line "
		 "serves for the first start and for each restart. never: it begins anew, and they "
		 "stay. ask: refuse to start, with their names."},
	{.name = "on_trainer_death",
	 .type = WF_OPTION_ENUM,
	 .offset = FIELD(on_trainer_death),
	 .initial = "end",
	 .choices = "end|wait|drop",
	 .help = "What becomes of the job when a trainer, or another pserver, is lost. end: it "
		 "ends. wait: all members that are left go back to the newest snapshot as soon as "
		 "the lost one has been started again, and until then they wait, up to "
		 "--rejoin_timeout; this needs --snapshot_dir. drop: the job goes on without a "
		 "trainer that is lost, from a step on that the log names, trainers may leave and "
		 "join (weft train --join), and it ends if a pserver is lost; several pservers "
		 "need --registrar. The same on all pservers."},
	{.name = "min_trainers",
	 .type = WF_OPTION_U64,
	 .offset = FIELD(min_trainers),
	 .initial = "1",
	 .min = 1,
	 .max = WF_TRAINER_COUNT_MAX,
	 .help = "With --on_trainer_death=drop: the job ends when fewer trainers than this are "
		 "left."},
	{.name = "stall_timeout",
	 .type = WF_OPTION_DURATION,
	 .offset = FIELD(session.stall_timeout_ns),
	 .initial = "1800s",
	 .help = "How long to wait for a trainer that takes no turns (stopped, starved, in "
		 "a debugger). It is named in the log meanwhile. A trainer with "
		 "--progress=caller may be away for as long as it likes. 0: no limit."},
	{.name = "log_level",
	 .type = WF_OPTION_ENUM,
	 .offset = FIELD(log_level),
	 .initial = "info",
	 .choices = "debug|info|warn|error",
	 .help = "The least level of the lines on stderr."},
};

static const struct wf_option originals[] = {
	{.name = "nics",
	 .type = WF_OPTION_STRING,
	 .offset = FIELD(nics),
	 .metavar = "NAME",
	 .means = "listen on the address of this network device",
	 .help = "The original's: listen on the IPv4 address of this network device. "
		 "--listen wins."},
	{.name = "rdma_tcp",
	 .type = WF_OPTION_CHOICE,
	 .offset = FIELD(rdma_tcp),
	 .initial = "tcp",
	 .choices = "tcp|rdma",
	 .means = "transport",
	 .help = "The original's, for tcp; use --transport to choose RDMA."},
	{.name = "use_gpu",
	 .type = WF_OPTION_BOOL,
	 .offset = FIELD(use_gpu),
	 .means = "compute on the CPU",
	 .help = "The original's: false is accepted, and true is refused because there is "
		 "no GPU code."},
	{.name = "comment",
	 .type = WF_OPTION_STRING,
	 .offset = FIELD(comment),
	 .metavar = "TEXT",
	 .help = "The original's: a free text that shows in the process list."},
	{.name = "small_messages",
	 .type = WF_OPTION_BOOL,
	 .offset = FIELD(small_messages),
	 .means = NO_EFFECT ": messages are never delayed",
	 .help = "Of the original: " NO_EFFECT "; messages are never delayed."},
	{.name = "sock_send_buf_size",
	 .type = WF_OPTION_BYTES,
	 .offset = FIELD(sock_send_buf_size),
	 .means = NO_EFFECT ": the kernel sizes socket buffers",
	 .help = "Of the original: " NO_EFFECT "; the kernel sizes socket buffers."},
	{.name = "sock_recv_buf_size",
	 .type = WF_OPTION_BYTES,
	 .offset = FIELD(sock_recv_buf_size),
	 .means = NO_EFFECT ": the kernel sizes socket buffers",
	 .help = "Of the original: " NO_EFFECT "; the kernel sizes socket buffers."},
	{.name = "sock_listen_queue_size",
	 .type = WF_OPTION_U64,
	 .offset = FIELD(sock_listen_queue_size),
	 .means = NO_EFFECT,
	 .help = "Of the original: " NO_EFFECT "."},
	{.name = "pserver_num_threads",
	 .type = WF_OPTION_U64,
	 .offset = FIELD(pserver_num_threads),
	 .means = NO_EFFECT ": one thread per lane, see ports_num",
	 .help = "Of the original: " NO_EFFECT "; there is one thread per lane."},
	{.name = "log_period_server",
	 .type = WF_OPTION_U64,
	 .offset = FIELD(log_period_server),
	 .means = NO_EFFECT,
	 .help = "Of the original: " NO_EFFECT "."},
};

unsigned
wf_pserver_options(struct wf_option table[WF_PSERVER_OPTION_MAX])
{
	WF_STATIC_ASSERT(WF_ARRAY_COUNT(own) + WF_ARRAY_COUNT(originals) < WF_PSERVER_OPTION_MAX,
			 "room for the settings of both ends");
	memcpy(table, own, sizeof(own));
	unsigned count = wf_settings_offer_pserver(
		table, WF_ARRAY_COUNT(own), WF_PSERVER_OPTION_MAX - WF_ARRAY_COUNT(originals),
		FIELD(session));
	memcpy(table + count, originals, sizeof(originals));
	return count + (unsigned)WF_ARRAY_COUNT(originals);
}

static bool
is_transport(const char *name)
{
	static const char *const names[] = {"auto", "tcp", "shm", "verbs"};
	for (size_t i = 0; i < WF_ARRAY_COUNT(names); i++) {
		if (strcmp(name, names[i]) == 0) {
			return true;
		}
	}
	return wf_fault_is_name(name); /* in tests; the rest is checked later */
}

/* Somebody who gives one of these counts on snapshots, and there would be none. */
static enum weft_status
check_snapshots(const struct wf_options *options)
{
	static const char *const names[] = {"snapshot_period", "snapshot_steps", "snapshot_bytes",
					    "snapshot_rate",   "snapshot_full",  "keep",
					    "resume"};
	const struct wf_pserver_settings *set = options->target;

	const bool has_dir = set->snapshot_dir != NULL && set->snapshot_dir[0] != '\0';

	for (size_t i = 0; !has_dir && i < WF_ARRAY_COUNT(names); i++) {
		if (wf_options_origin(options, names[i]) != WF_ORIGIN_DEFAULT) {
			return wf_fail(WEFT_INVALID,
				       "--%s has no effect without --snapshot_dir, because there "
				       "are no snapshots then; give --snapshot_dir=DIR, or leave "
				       "it out",
				       names[i]);
		}
	}
	return WEFT_OK;
}

enum weft_status
wf_pserver_options_check(const struct wf_options *options)
{
	const struct wf_pserver_settings *set = options->target;
	uint64_t ports = set->session.ports_num + set->session.ports_num_for_sparse;

	enum weft_status st = wf_role_check_job_name(set->job_name);
	st = st == WEFT_OK ? check_snapshots(options) : st;
	if (st != WEFT_OK) {
		return st;
	}
	if (set->use_gpu && wf_options_origin(options, "use_gpu") == WF_ORIGIN_ARGUMENT) {
		return wf_fail(WEFT_UNSUPPORTED,
			       "--use_gpu=true: there is no GPU code, and parameters are in host "
			       "memory; leave the option out, or give --use_gpu=false");
	}
	if (!is_transport(set->session.transport)) {
		return wf_fail(WEFT_INVALID,
			       "--transport=%s: must be one of auto, tcp, shm and verbs",
			       set->session.transport);
	}
	if (strcmp(set->rdma_tcp, "rdma") == 0) {
		return wf_fail(WEFT_UNSUPPORTED,
			       "--rdma_tcp=rdma: give --transport=verbs (RDMA only) or "
			       "--transport=auto (RDMA where both ends have it) instead");
	}
	if (set->session.port != 0 && set->session.port + ports - 1 > 65535) {
		return wf_fail(WEFT_INVALID,
			       "--port=%" PRIu64 " with %" PRIu64
			       " lanes goes past port 65535; use --port=%" PRIu64 " or lower",
			       (uint64_t)set->session.port, ports, 65536 - ports);
	}
	if ((set->slot_count & (set->slot_count - 1)) != 0) {
		return wf_fail(WEFT_INVALID,
			       "--slot_count=%" PRIu64 " is not a power of two; 4, 8 and 16 are",
			       set->slot_count);
	}
	return wf_command_check_verbs(set->session.verbs);
}
