/* SPDX-License-Identifier: Apache-2.0 */
/* pserver_options: the one table behind parser, environment, help and the "understood as" text of
 * `weft pserver`. The original's names and defaults, except that the port is what every document of
 * the original passes (7164). Thread: any, it is constant. */
#include "tools/pserver_options.h"

#include "base/assert.h"
#include "base/env.h"

#define FIELD(name) offsetof(struct wf_pserver_settings, name)
#define NO_EFFECT "accepted, without effect"

static const struct wf_option table[] = {
	{.name = "port",
	 .type = WF_OPTION_U64,
	 .offset = FIELD(port),
	 .initial = "7164",
	 .means = "port of the first lane",
	 .max = 65535,
	 .help = "Port of the first lane; lane i listens on port + i. 0: the system\n"
		 "picks each."},
	{.name = "ports_num",
	 .type = WF_OPTION_U64,
	 .offset = FIELD(ports_num),
	 .initial = "1",
	 .means = "dense lanes of this pserver",
	 .min = 1,
	 .max = 256,
	 .help = "Dense lanes: one thread, one core, one port each."},
	{.name = "ports_num_for_sparse",
	 .type = WF_OPTION_U64,
	 .offset = FIELD(ports_num_for_sparse),
	 .initial = "0",
	 .means = "sparse lanes, on the ports after the dense ones",
	 .max = 255,
	 .help = "Sparse lanes, each with a thread and a port of its own, after the dense\n"
		 "ones. They keep the rows of sparse tables; a job without tables leaves\n"
		 "them idle."},
	{.name = "num_gradient_servers",
	 .type = WF_OPTION_U64,
	 .offset = FIELD(num_gradient_servers),
	 .initial = "1",
	 .means = "trainers of the job",
	 .max = 65536,
	 .help = "Number of trainers of the job. A job that says another number is refused.\n"
		 "0: as the first trainer says, up to --max_trainers."},
	{.name = "max_trainers",
	 .type = WF_OPTION_U64,
	 .offset = FIELD(max_trainers),
	 .initial = "1024",
	 .min = 1,
	 .max = 65536,
	 .help = "Most trainers of a job where --num_gradient_servers=0 leaves their number to\n"
		 "the first one that comes; each takes memory."},
	{.name = "listen",
	 .type = WF_OPTION_STRING,
	 .offset = FIELD(listen),
	 .metavar = "ADDR",
	 .help = "Address to listen on; 127.0.0.1 unless given. 0.0.0.0 or :: opens it to\n"
		 "every network of this host: whoever reaches the port can take part."},
	{.name = "once",
	 .type = WF_OPTION_BOOL,
	 .offset = FIELD(once),
	 .help = "End with the first job: 0 when all its trainers said goodbye, else the\n"
		 "code of what ended it. Without it the next job is awaited."},
	{.name = "pin",
	 .type = WF_OPTION_STRING,
	 .offset = FIELD(pin),
	 .initial = "off",
	 .metavar = "auto|auto:I/N|off|CPULIST",
	 .help = "Bind lanes to cores, and their memory to the node of the core. auto takes one\n"
		 "core each, near the RDMA device that serves it; auto:I/N as process I of N on\n"
		 "this host (weft launch sees to that itself); \"0,2-5\" these CPUs in this\n"
		 "order. weft topo shows what it comes to."},
	{.name = "transport",
	 .type = WF_OPTION_STRING,
	 .offset = FIELD(transport),
	 .initial = "auto",
	 .metavar = "auto|tcp|shm|verbs",
	 .help = "How bytes move. auto takes shared memory with each trainer of this host, RDMA\n"
		 "with others where both have it, and else TCP; the log says what and why. tcp\n"
		 "takes TCP only; shm and verbs (RDMA) refuse whoever cannot use them. With\n"
		 "auto and an address of loopback, nothing listens for RDMA. For tests,\n"
		 "fault(SPEC)+auto injects faults: transport/fault/README.md."},
	{.name = "tcp_congestion",
	 .type = WF_OPTION_STRING,
	 .offset = FIELD(tcp_congestion),
	 .metavar = "NAME",
	 .help = "Congestion control of TCP sockets, cubic or bbr, say; the system's unless "
		 "given.\n"
		 "One that this host or user has not is refused, with the list."},
	{.name = "verbs",
	 .type = WF_OPTION_STRING,
	 .offset = FIELD(verbs),
	 .metavar = "KEY=VALUE[,KEY=VALUE...]",
	 .help = "Settings of RDMA: device=mlx5_0,port=1,gid=3,retry=5 and more; a key or value\n"
		 "that does not exist is refused with what does. transport/verbs/README.md."},
	{.name = "slot_count",
	 .type = WF_OPTION_U64,
	 .offset = FIELD(slot_count),
	 .initial = "8",
	 .min = 1,
	 .max = 256,
	 .help = "Gradient slices that a lane takes from one trainer at a time; a power of\n"
		 "two."},
	{.name = "max_shard_bytes",
	 .type = WF_OPTION_BYTES,
	 .offset = FIELD(max_shard_bytes),
	 .initial = "64GiB",
	 .min = 4096,
	 .help = "Most memory for parameters and optimizer state of one lane; a job that\n"
		 "needs more is refused."},
	{.name = "inbox_bytes",
	 .type = WF_OPTION_BYTES,
	 .offset = FIELD(inbox_bytes),
	 .initial = "0",
	 .help = "Most memory for gradients that a dense lane keeps until those of all\n"
		 "trainers are there. With less than they push in a step, a trainer\n"
		 "announces each push and makes it when there is room for that of every\n"
		 "trainer: same bits, one message each way more. Room for one slice of\n"
		 "each is the least. 0: all that they push, taken as needed. Tensors\n"
		 "applied as they come need none."},
	{.name = "reconnect_timeout",
	 .type = WF_OPTION_DURATION,
	 .offset = FIELD(reconnect_timeout_ns),
	 .initial = "3s",
	 .help = "How long a trainer whose connection broke has to come back, and one that was\n"
		 "refused before the first step to come as it should be; then the job ends,\n"
		 "naming it."},
	{.name = "peer_timeout",
	 .type = WF_OPTION_DURATION,
	 .offset = FIELD(peer_timeout_ns),
	 .initial = "10s",
	 .min = WF_NS_PER_MS,
	 .help = "How long a host may be silent before it counts as gone."},
	{.name = "stall_timeout",
	 .type = WF_OPTION_DURATION,
	 .offset = FIELD(stall_timeout_ns),
	 .initial = "1800s",
	 .help = "How long a trainer that takes no turns (stopped, starved, in a debugger) is\n"
		 "waited for; it is named in the log meanwhile. One with progress=caller may\n"
		 "be away for as long as it likes. 0: no limit."},
	{.name = "connect_timeout",
	 .type = WF_OPTION_DURATION,
	 .offset = FIELD(connect_timeout_ns),
	 .initial = "300s",
	 .min = WF_NS_PER_MS,
	 .help = "From the first trainer of a job to the last; with --once also until the\n"
		 "first one comes."},
	{.name = "spin",
	 .type = WF_OPTION_DURATION,
	 .offset = FIELD(spin_ns),
	 .initial = "0",
	 .max = WF_NS_PER_S,
	 .help = "How long a lane polls before it sleeps. More than 0 only where each lane\n"
		 "has a core of its own."},
	{.name = "stats_period",
	 .type = WF_OPTION_DURATION,
	 .offset = FIELD(stats_period_ns),
	 .initial = "0",
	 .help = "Log what each lane did, so often and at the end of a job: rates, waits,\n"
		 "where its time went. 0: never."},
	{.name = "log_level",
	 .type = WF_OPTION_CHOICE,
	 .offset = FIELD(log_level),
	 .initial = "info",
	 .choices = "debug|info|warn|error",
	 .help = "Least level of the lines on stderr."},
	{.name = "nics",
	 .type = WF_OPTION_STRING,
	 .offset = FIELD(nics),
	 .metavar = "NAME",
	 .means = "listen on the address of this network device",
	 .help = "Of the original: listen on the IPv4 address of this network device.\n"
		 "--listen wins."},
	{.name = "rdma_tcp",
	 .type = WF_OPTION_CHOICE,
	 .offset = FIELD(rdma_tcp),
	 .initial = "tcp",
	 .choices = "tcp|rdma",
	 .means = "transport",
	 .help = "Of the original, for tcp; RDMA is asked for with --transport."},
	{.name = "use_gpu",
	 .type = WF_OPTION_BOOL,
	 .offset = FIELD(use_gpu),
	 .means = "compute on the CPU",
	 .help = "Of the original: false is accepted; true is refused, there is no GPU code."},
	{.name = "comment",
	 .type = WF_OPTION_STRING,
	 .offset = FIELD(comment),
	 .metavar = "TEXT",
	 .help = "Of the original: free text that shows in the process list."},
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

WF_STATIC_ASSERT(WF_ARRAY_COUNT(table) <= WF_PSERVER_OPTION_MAX, "callers' arrays hold the table");

const struct wf_option *
wf_pserver_options(unsigned *count)
{
	*count = (unsigned)WF_ARRAY_COUNT(table);
	return table;
}
