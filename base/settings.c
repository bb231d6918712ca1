/* SPDX-License-Identifier: Apache-2.0 */
/* settings: the tables of settings: of sessions, of tensors, of tables. Thread: any; they are
 * constant. */
#include "base/settings.h"

#include <string.h>

#include "base/assert.h"
#include "base/env.h"
#include "base/limits.h"
#include "base/options_internal.h"
#include "base/url.h"

#define IN(opts, field)                                                                            \
	.offset = offsetof(struct opts, field), .bytes = sizeof(((struct opts *)NULL)->field)
#define AT(field) IN(weft_session_opts, field)
/* Offset and size as in wire/protocol.md, "The job" and "TABLE". */
#define WIRE(at, count) .wire = {(at), (count)}

static const struct wf_option session_rows[] = {
	/* The job. */
	{.name = "pservers",
	 .type = WF_OPTION_STRING,
	 AT(pservers),
	 .initial = WF_LOOPBACK,
	 .metavar = "HOST[:PORT],...",
	 .help = "The pservers, in the same order on all trainers. 127.0.0.1 alone is ::1 "
		 "on a host that has no IPv4 address.",
	 .means = "the pservers"},
	{.name = "port",
	 .type = WF_OPTION_U64,
	 AT(port),
	 .initial = "7164",
	 .min = 1,
	 .max = 65535,
	 .help = "First port of pservers that name none.",
	 .means = "first port of each pserver"},
	{.name = "ports_num",
	 .type = WF_OPTION_U64,
	 AT(ports_num),
	 WIRE(8, 4),
	 .initial = "1",
	 .min = 1,
	 .max = WF_PSERVER_LANES_MAX,
	 .of_pserver = true,
	 .help = "Number of dense lanes of each pserver. Each has its own thread, core and "
		 "port.",
	 .means = "dense lanes of each pserver"},
	{.name = "ports_num_for_sparse",
	 .type = WF_OPTION_U64,
	 AT(ports_num_for_sparse),
	 .initial = "0",
	 .max = WF_PSERVER_LANES_MAX - 1,
	 .of_pserver = true,
	 .help = "Number of sparse lanes of each pserver, each with its own thread and "
		 "port, after the dense ones. They keep the rows of sparse tables; a job "
		 "without tables does not use them.",
	 .means = "sparse lanes of each pserver"},
	{.name = "num_gradient_servers",
	 .type = WF_OPTION_U64,
	 AT(num_gradient_servers),
	 WIRE(0, 4),
	 .initial = "1",
	 .min = 1,
	 .max = WF_TRAINER_COUNT_MAX,
	 .help = "Number of trainers in the job.",
	 .means = "number of trainers"},
	{.name = "grad_reduce",
	 .type = WF_OPTION_ENUM,
	 AT(grad_reduce),
	 WIRE(20, 1),
	 .initial = "sum",
	 .choices = "sum|mean",
	 .is_shared = true},
	{.name = "skip_nonfinite",
	 .type = WF_OPTION_BOOL,
	 AT(skip_nonfinite),
	 WIRE(21, 1),
	 .is_shared = true},
	{.name = "slice_bytes",
	 .type = WF_OPTION_BYTES,
	 AT(slice_bytes),
	 WIRE(12, 8),
	 .initial = "256KiB",
	 .min = WF_SLICE_BYTES_MIN,
	 .max = WF_SLICE_BYTES_MAX,
	 .step = WF_SLICE_BYTES_MIN,
	 .is_shared = true,
	 .help = "Size of the slices into which tensors are cut."},
	{.name = "compared", .type = WF_OPTION_STRING, AT(compared), .initial = ""},

	/* The optimizer: kernels/optimizer.h has the limits, which depend on the method. */
	{.name = "optimizer",
	 .type = WF_OPTION_STRING,
	 AT(optimizer.method),
	 .initial = "sgd",
	 .is_shared = true},
	{.name = "learning_rate",
	 .type = WF_OPTION_F64,
	 AT(optimizer.learning_rate),
	 WIRE(30, 8),
	 .initial = "0.001",
	 .is_shared = true},
	{.name = "momentum",
	 .type = WF_OPTION_F64,
	 AT(optimizer.momentum),
	 WIRE(38, 8),
	 .initial = "0",
	 .is_shared = true},
	{.name = "beta1",
	 .type = WF_OPTION_F64,
	 AT(optimizer.beta1),
	 WIRE(46, 8),
	 .initial = "0.9",
	 .fmin = 0,
	 .fmax = 1,
	 .is_shared = true,
	 .help = "First beta of the optimizers adam, torch_adam, adamw, torch_adamw and adamax. "
		 "Must be less than 1."},
	{.name = "beta2",
	 .type = WF_OPTION_F64,
	 AT(optimizer.beta2),
	 WIRE(54, 8),
	 .initial = "0.999",
	 .fmin = 0,
	 .fmax = 1,
	 .is_shared = true,
	 .help = "Second beta of the optimizers adam, torch_adam, adamw, torch_adamw and adamax. "
		 "Must be less than 1."},
	{.name = "rho",
	 .type = WF_OPTION_F64,
	 AT(optimizer.rho),
	 WIRE(127, 8),
	 .initial = "0.95",
	 .fmin = 0,
	 .fmax = 1,
	 .is_shared = true,
	 .help = "Share of their running means that the optimizers decayed_adagrad, rmsprop "
		 "and adadelta keep in each step. Must be less than 1."},
	{.name = "epsilon",
	 .type = WF_OPTION_F64,
	 AT(optimizer.epsilon),
	 WIRE(62, 8),
	 .initial = "1e-8",
	 .is_shared = true},
	{.name = "decay",
	 .type = WF_OPTION_F64,
	 AT(optimizer.decay),
	 WIRE(70, 8),
	 .initial = "0",
	 .fmin = 0,
	 .fmax = 1e30,
	 .is_shared = true,
	 .help = "Weight decay of all parameters: L2, which adamw and torch_adamw decouple from "
		 "the gradient."},
	{.name = "l1",
	 .type = WF_OPTION_F64,
	 AT(optimizer.l1),
	 WIRE(135, 8),
	 .initial = "0",
	 .fmin = 0,
	 .fmax = 1e30,
	 .is_shared = true,
	 .help = "L1 of all parameters: after each step a parameter moves towards 0 by the "
		 "learning rate times this."},
	{.name = "clip",
	 .type = WF_OPTION_F64,
	 AT(optimizer.clip),
	 WIRE(78, 8),
	 .initial = "0",
	 .fmin = 0,
	 .fmax = 1e30,
	 .is_shared = true,
	 .help = "Clip each element of the reduced gradient to this value. 0: off."},
	{.name = "clip_norm",
	 .type = WF_OPTION_F64,
	 AT(optimizer.clip_norm),
	 WIRE(167, 8),
	 .initial = "0",
	 .fmin = 0,
	 .fmax = 1e30,
	 .is_shared = true,
	 .help = "Scale the whole reduced gradient down to this norm if it is longer, "
		 "before anything else. It takes one more round trip. 0: off. Not with "
		 "tables."},
	{.name = "schedule",
	 .type = WF_OPTION_CHOICE,
	 AT(optimizer.schedule),
	 .initial = "constant",
	 .choices = "constant|linear|warmup|poly|caffe_poly|exp|discexp|manual|pass_manual",
	 .is_shared = true,
	 .help = "Learning-rate schedule. linear: max(rate - a * samples, b); warmup: rate "
		 "* min(1, samples / a); poly: rate * (1 + a * samples)^-b; caffe_poly: "
		 "rate * (1 - samples / a)^b, and 0 from a on; exp: rate * a^(samples / b); "
		 "discexp: the same with whole powers; manual, pass_manual: see "
		 "--learning_rate_args, for models without tables."},
	{.name = "schedule_a",
	 .type = WF_OPTION_F64,
	 AT(optimizer.schedule_a),
	 WIRE(86, 8),
	 .initial = "0",
	 .is_shared = true,
	 .help = "Parameter a of the schedule."},
	{.name = "schedule_b",
	 .type = WF_OPTION_F64,
	 AT(optimizer.schedule_b),
	 WIRE(94, 8),
	 .initial = "0",
	 .is_shared = true,
	 .help = "Parameter b of the schedule."},
	{.name = "schedule_args",
	 .type = WF_OPTION_STRING,
	 AT(optimizer.schedule_args),
	 .metavar = "N:F,N:F...",
	 .is_shared = true,
	 .help = "For the schedule manual: up to N samples the rate is multiplied by F; for "
		 "pass_manual: up to pass N, counted from 0. After the last N its F stays."},
	{.name = "first_pass",
	 .type = WF_OPTION_U64,
	 AT(optimizer.first_pass),
	 WIRE(159, 8),
	 .initial = "0",
	 .is_shared = true},
	{.name = "average_window",
	 .type = WF_OPTION_F64,
	 AT(optimizer.average_window),
	 WIRE(143, 8),
	 .initial = "0",
	 .fmin = 0,
	 .fmax = 1,
	 .is_shared = true,
	 .heading = WF_HEADING_OPTIMIZER,
	 .help = "Test at the end of each pass with averages of the parameters over the "
		 "last steps. The value is the share of all steps that the averages cover. "
		 "They are saved as well, as passes in the folder average of --save_dir. 0: "
		 "test with the parameters, as --test_period always does. Not with tables."},
	{.name = "max_average_window",
	 .type = WF_OPTION_U64,
	 AT(optimizer.max_average_window),
	 WIRE(151, 8),
	 .initial = "0",
	 .is_shared = true,
	 .heading = WF_HEADING_OPTIMIZER,
	 .help = "The most steps in an average. 0: no limit."},

	/* When pushes are applied, and the format in which they travel. */
	{.name = "dense_mode",
	 .type = WF_OPTION_ENUM,
	 AT(dense_mode),
	 WIRE(102, 1),
	 .initial = "sync",
	 .choices = "sync|async|bounded|local|elastic",
	 .is_shared = true,
	 .help = "When pushes of tensors are applied. sync: those of all trainers together, "
		 "with reproducible bits. async: each by itself as it arrives. bounded: as "
		 "async, but a trainer that is ahead waits. local: trainers step by "
		 "themselves, and average their parameters every --local_steps steps. "
		 "elastic: as local, but each trainer keeps its own parameters and is drawn "
		 "towards a center (EASGD)."},
	{.name = "dense_staleness",
	 .type = WF_OPTION_U64,
	 AT(dense_staleness),
	 WIRE(103, 4),
	 .initial = "0",
	 .is_shared = true},
	{.name = "dense_discard_ratio",
	 .type = WF_OPTION_F64,
	 AT(dense_discard_ratio),
	 WIRE(107, 8),
	 .initial = "0",
	 .fmax = 1e6,
	 .is_shared = true},
	{.name = "local_steps",
	 .type = WF_OPTION_U64,
	 AT(local_steps),
	 WIRE(115, 4),
	 .initial = "0",
	 .max = 1000000000,
	 .is_shared = true,
	 .help = "With --dense_mode=local or elastic: number of steps between two "
		 "exchanges. Above 0 it implies --dense_mode=local if no mode is given."},
	{.name = "elastic_rate",
	 .type = WF_OPTION_F64,
	 AT(elastic_rate),
	 WIRE(119, 8),
	 .initial = "0",
	 .fmax = 1,
	 .is_shared = true,
	 .help = "With --dense_mode=elastic: the share of their distance by which a trainer "
		 "and the center move in an exchange. 0: 0.9 / num_gradient_servers."},
	{.name = "dense_wire",
	 .type = WF_OPTION_ENUM,
	 AT(dense_wire),
	 WIRE(175, 1),
	 .initial = "f32",
	 .choices = "f32|bf16|f16",
	 .is_shared = true,
	 .help = "The format in which gradients and values of tensors travel. In 16 bits "
		 "they are rounded once in each direction. Pservers sum and apply in f32, "
		 "which is also what is saved."},
	{.name = "dense_rounding",
	 .type = WF_OPTION_ENUM,
	 AT(dense_rounding),
	 WIRE(176, 1),
	 .initial = "nearest",
	 .choices = "nearest|stochastic",
	 .is_shared = true,
	 .help = "With --dense_wire=bf16 or f16: how gradients are rounded: to nearest, "
		 "ties to even, or at random (from --seed), so that small ones are not "
		 "lost. Values are always rounded to nearest."},
	{.name = "rounding_seed", .type = WF_OPTION_U64, AT(rounding_seed), .initial = "0"},
	{.name = "sparse_mode",
	 .type = WF_OPTION_ENUM,
	 AT(sparse_mode),
	 .initial = "sync",
	 .choices = "sync|async|bounded",
	 .help = "When pushes to tables are applied. sync: those of all trainers together, "
		 "with reproducible bits. async: as they arrive. bounded: as async, but a "
		 "trainer that is ahead waits."},
	{.name = "sparse_staleness", .type = WF_OPTION_U64, AT(sparse_staleness), .initial = "0"},
	{.name = "sparse_discard_ratio",
	 .type = WF_OPTION_F64,
	 AT(sparse_discard_ratio),
	 .initial = "0"},

	/* This trainer. */
	{.name = "trainer_id",
	 .type = WF_OPTION_U64,
	 AT(trainer_id),
	 .initial = "0",
	 .help = "Number of this trainer, from 0.",
	 .means = "number of this trainer"},
	{.name = "transport",
	 .type = WF_OPTION_STRING,
	 AT(transport),
	 .heading = WF_HEADING_TRANSPORT,
	 .initial = "auto",
	 .metavar = "auto|tcp|shm|verbs",
	 .of_pserver = true,
	 .help = "What carries the data. auto: shared memory between processes of one host, "
		 "RDMA between hosts that both have it, otherwise TCP; the log of a pserver "
		 "says which and why. tcp: TCP only. shm, verbs (RDMA): only that; a "
		 "pserver refuses trainers that cannot use it, and a trainer that cannot "
		 "use it ends with 64, or with 69 if there is no RDMA device. With auto and "
		 "a loopback address a pserver does not listen for RDMA. For tests, "
		 "fault(SPEC)+auto injects faults: transport/fault/README.md."},
	{.name = "tcp_congestion",
	 .type = WF_OPTION_STRING,
	 AT(tcp_congestion),
	 .heading = WF_HEADING_TRANSPORT,
	 .initial = "",
	 .metavar = "NAME",
	 .of_pserver = true,
	 .help = "Congestion control of TCP sockets, for example cubic or bbr; the system's "
		 "unless given. If it is not available to this host or user it is refused, "
		 "with a list of those that are."},
	{.name = "verbs",
	 .type = WF_OPTION_STRING,
	 AT(verbs),
	 .heading = WF_HEADING_TRANSPORT,
	 .initial = "",
	 .metavar = "KEY=VALUE[,KEY=VALUE...]",
	 .of_pserver = true,
	 .help = "Settings of RDMA: device=mlx5_0,port=1,gid=3,retry=5 and more. An unknown "
		 "key or value is refused, with a list of those there are: "
		 "transport/verbs/README.md."},
	{.name = "progress",
	 .type = WF_OPTION_ENUM,
	 AT(progress),
	 .heading = WF_HEADING_TRANSPORT,
	 .initial = "thread",
	 .choices = "thread|caller",
	 .help = "What transfers data while the program computes. thread: a thread of the "
		 "session. caller: nothing; data moves only inside the calls that wait."},
	{.name = "pin",
	 .type = WF_OPTION_STRING,
	 AT(pin),
	 .heading = WF_HEADING_TRANSPORT,
	 .initial = "off",
	 .metavar = "auto|auto:I/N|off|CPULIST",
	 .of_pserver = true,
	 .help = "Bind threads to cores, and their memory to the NUMA node of the core: the "
		 "lanes of a pserver; the compute threads of a trainer and then its "
		 "progress thread. auto: one core each, near the RDMA device that serves "
		 "it. auto:I/N: as process I of N on this host (weft launch passes this "
		 "itself). \"0,2-5\": these CPUs in this order. weft topo shows the result."},
	{.name = "spin",
	 .type = WF_OPTION_DURATION,
	 AT(spin_ns),
	 .heading = WF_HEADING_TRANSPORT,
	 .initial = "auto",
	 .word = "auto",
	 .metavar = "TIME|auto",
	 .of_pserver = true,
	 .max = WF_NS_PER_S,
	 .help = "How long to poll before sleeping. auto: as long as recent waits make it "
		 "worthwhile, up to 100us, if each polling thread of this process has a "
		 "CPU."},
	{.name = "connect_timeout",
	 .type = WF_OPTION_DURATION,
	 AT(connect_timeout_ns),
	 .heading = WF_HEADING_TIME_LIMITS,
	 .initial = "300s",
	 .min = WF_NS_PER_US,
	 .of_pserver = true,
	 .help = "How long a trainer waits until every pserver has answered once, and a "
		 "pserver from the first trainer of a job to the last; with --once also "
		 "until the first one connects."},
	{.name = "reconnect_timeout",
	 .type = WF_OPTION_DURATION,
	 AT(reconnect_timeout_ns),
	 .heading = WF_HEADING_TIME_LIMITS,
	 .initial = "3s",
	 .min = WF_NS_PER_US,
	 .of_pserver = true,
	 .help = "How long a broken connection may take to come back. A pserver waits as "
		 "long for a trainer that it refused before the first step to come back as "
		 "it should be; then the job ends, naming it."},
	{.name = "peer_timeout",
	 .type = WF_OPTION_DURATION,
	 AT(peer_timeout_ns),
	 .heading = WF_HEADING_TIME_LIMITS,
	 .initial = "10s",
	 .of_pserver = true,
	 .min = WF_NS_PER_MS,
	 .help = "How long a host may be silent before it counts as gone."},
	{.name = "step_timeout",
	 .type = WF_OPTION_DURATION,
	 AT(step_timeout_ns),
	 .heading = WF_HEADING_TIME_LIMITS,
	 .initial = "1800s",
	 .help = "The longest wait for a step, pull or reduce, other trainers included. 0: "
		 "no limit."},
	{.name = "stall_timeout",
	 .type = WF_OPTION_DURATION,
	 AT(stall_timeout_ns),
	 .heading = WF_HEADING_TIME_LIMITS,
	 .initial = "0",
	 .help = "How long to wait for a pserver that takes no turns (stopped, starved, in "
		 "a debugger). It is named in the log meanwhile. 0: as long as "
		 "--step_timeout."},
	{.name = "stats_period",
	 .type = WF_OPTION_DURATION,
	 AT(stats_period_ns),
	 .initial = "0",
	 .of_pserver = true,
	 .help = "How often, and at the end, to log what the exchange did: rates, waits, "
		 "and where its time went. 0: never."},
	{.name = "keep_state", .type = WF_OPTION_BOOL, AT(keep_state)},
	{.name = "keep_arrays", .type = WF_OPTION_BOOL, AT(keep_arrays)},
	{.name = "numerics", .type = WF_OPTION_STRING, AT(numerics), .initial = ""},

#define ROW_OF(values, ctype, field, kind, text, ...)                                              \
	{.name = #field,                                                                           \
	 .type = (kind),                                                                           \
	 .offset = offsetof(struct values, field),                                                 \
	 .bytes = sizeof(ctype),                                                                   \
	 .initial = (text),                                                                        \
	 __VA_ARGS__},
#define ROW(...) ROW_OF(wf_session_values, __VA_ARGS__)
	WF_SETTINGS_BY_NAME(ROW)
#undef ROW
};

#undef AT

/* Settings of a tensor: all defaults are 0, so that an initialiser needs only what differs. */
#define AT(field) .name = #field, IN(weft_tensor_opts, field)

static const struct wf_option tensor_rows[] = {
	{AT(rate_multiplier), .type = WF_OPTION_F64},
	{AT(decay), .type = WF_OPTION_F64},
	{AT(clip), .type = WF_OPTION_F64},
	{AT(l1), .type = WF_OPTION_F64},
	{AT(is_static), .type = WF_OPTION_BOOL},
	{AT(is_reduced), .type = WF_OPTION_BOOL},
	{AT(mode), .type = WF_OPTION_ENUM, .initial = "session",
	 .choices = "session|sync|async|bounded"},
	{AT(staleness), .type = WF_OPTION_U64},
	{AT(discard_ratio), .type = WF_OPTION_F64, .fmax = 1e6},
	{AT(priority), .type = WF_OPTION_I32},
#define ROW(...) ROW_OF(wf_tensor_values, __VA_ARGS__)
	WF_TENSOR_SETTINGS_BY_NAME(ROW)
#undef ROW
#undef ROW_OF
};

#undef AT
#define AT(field) .name = #field, IN(weft_table_opts, field)
#define OPTIMIZER(field) .name = #field, IN(weft_table_opts, optimizer.field)

/* Settings of a table; kernels/rows.h has the limits of its optimizer, which depend on the method.
 */
static const struct wf_option table_rows[] = {
	{AT(vocabulary), WIRE(4, 8), .is_shared = true, .type = WF_OPTION_U64},
	{AT(memory_cap_bytes), WIRE(12, 8), .is_shared = true, .type = WF_OPTION_BYTES},
	{AT(batch_keys_max), .type = WF_OPTION_U64, .initial = "65536", .min = 1,
	 .max = WF_BATCH_KEYS_MAX},
	{AT(rest), WIRE(20, 1), .is_shared = true, .type = WF_OPTION_ENUM, .initial = "f32",
	 .choices = "f32|bf16|f16"},
	{AT(wire), WIRE(21, 1), .is_shared = true, .type = WF_OPTION_ENUM, .initial = "f32",
	 .choices = "f32|bf16|f16"},
	{AT(raw_keys), .type = WF_OPTION_BOOL},
	{.name = "optimizer",
	 IN(weft_table_opts, optimizer.method),
	 .is_shared = true,
	 .type = WF_OPTION_STRING,
	 .initial = "sgd"},
	{OPTIMIZER(learning_rate), WIRE(68, 8), .is_shared = true, .type = WF_OPTION_F64,
	 .initial = "0.001"},
	{OPTIMIZER(momentum), WIRE(76, 8), .is_shared = true, .type = WF_OPTION_F64},
	{OPTIMIZER(beta1), WIRE(84, 8), .is_shared = true, .type = WF_OPTION_F64, .initial = "0.9",
	 .fmax = 1},
	{OPTIMIZER(beta2), WIRE(92, 8), .is_shared = true, .type = WF_OPTION_F64,
	 .initial = "0.999", .fmax = 1},
	{OPTIMIZER(rho), WIRE(100, 8), .is_shared = true, .type = WF_OPTION_F64, .initial = "0.95",
	 .fmax = 1},
	{OPTIMIZER(epsilon), WIRE(108, 8), .is_shared = true, .type = WF_OPTION_F64,
	 .initial = "1e-6"},
	{OPTIMIZER(decay), WIRE(116, 8), .is_shared = true, .type = WF_OPTION_F64, .fmax = 1e30},
	{OPTIMIZER(clip), WIRE(124, 8), .is_shared = true, .type = WF_OPTION_F64, .fmax = 1e30},
	{OPTIMIZER(l1), WIRE(132, 8), .is_shared = true, .type = WF_OPTION_F64, .fmax = 1e30},
	{OPTIMIZER(l2), WIRE(140, 8), .is_shared = true, .type = WF_OPTION_F64, .fmax = 1e30},
	{OPTIMIZER(l21), WIRE(148, 8), .is_shared = true, .type = WF_OPTION_F64, .fmax = 1e30},
	{OPTIMIZER(ftrl_beta), WIRE(156, 8), .is_shared = true, .type = WF_OPTION_F64,
	 .initial = "1", .fmax = 1e30},
	{OPTIMIZER(schedule), .is_shared = true, .type = WF_OPTION_CHOICE, .initial = "constant",
	 .choices = "constant|linear|warmup|poly|caffe_poly|exp|discexp"},
	{OPTIMIZER(schedule_a), WIRE(164, 8), .is_shared = true, .type = WF_OPTION_F64},
	{OPTIMIZER(schedule_b), WIRE(172, 8), .is_shared = true, .type = WF_OPTION_F64},
	{OPTIMIZER(dense_equivalent), WIRE(22, 1), .is_shared = true, .type = WF_OPTION_BOOL},
	{AT(init), .is_shared = true, .type = WF_OPTION_CHOICE, .initial = "zero",
	 .choices = "zero|uniform|normal"},
	{AT(init_a), WIRE(180, 8), .is_shared = true, .type = WF_OPTION_F64},
	{AT(init_b), WIRE(188, 8), .is_shared = true, .type = WF_OPTION_F64},
	{AT(init_seed), WIRE(36, 8), .is_shared = true, .type = WF_OPTION_U64},
	{AT(admit_count), WIRE(44, 4), .is_shared = true, .type = WF_OPTION_U64,
	 .max = WF_ADMIT_COUNT_MAX},
	{AT(admit_slots), WIRE(48, 4), .is_shared = true, .type = WF_OPTION_U64,
	 .max = WF_ADMIT_SLOTS_MAX},
	{AT(admit_probability), WIRE(196, 8), .is_shared = true, .type = WF_OPTION_F64,
	 .initial = "1", .fmax = 1},
	{AT(evict_age_steps), WIRE(52, 8), .is_shared = true, .type = WF_OPTION_U64,
	 .max = WF_TABLE_STEP_MAX},
	{AT(evict_score_least), WIRE(204, 8), .is_shared = true, .type = WF_OPTION_F64,
	 .fmax = 1e30},
	{AT(evict_show_weight), WIRE(212, 8), .is_shared = true, .type = WF_OPTION_F64,
	 .initial = "0.25"},
	{AT(evict_click_weight), WIRE(220, 8), .is_shared = true, .type = WF_OPTION_F64,
	 .initial = "1"},
	{AT(evict_fade), WIRE(228, 8), .is_shared = true, .type = WF_OPTION_F64, .initial = "1"},
	{AT(evict_fade_steps), WIRE(60, 8), .is_shared = true, .type = WF_OPTION_U64,
	 .initial = "1", .max = WF_TABLE_STEP_MAX},
	{AT(evict_at_cap), WIRE(23, 1), .is_shared = true, .type = WF_OPTION_BOOL},
};

static const struct {
	const struct wf_option *rows;
	unsigned count;
} kinds[] = {
	[WEFT_SETTINGS_SESSION] = {session_rows, WF_ARRAY_COUNT(session_rows)},
	[WEFT_SETTINGS_TENSOR] = {tensor_rows, WF_ARRAY_COUNT(tensor_rows)},
	[WEFT_SETTINGS_TABLE] = {table_rows, WF_ARRAY_COUNT(table_rows)},
};

/* The original's name, and ours. */
static const char *const original[][2] = {
	{"learning_method", "optimizer"},
	{"adam_beta1", "beta1"},
	{"adam_beta2", "beta2"},
	{"adam_epsilon", "epsilon"},
	{"ada_epsilon", "epsilon"},
	{"ada_rou", "rho"},
	{"l2", "decay"},
	{"gradient_clipping_threshold", "clip"},
	{"global_norm_clipping_threshold", "clip_norm"},
	{"learning_rate_schedule", "schedule"},
	{"learning_rate_decay_a", "schedule_a"},
	{"learning_rate_decay_b", "schedule_b"},
	{"learning_rate_args", "schedule_args"},
};

const char *
wf_setting_of_original(const char *name, size_t bytes)
{
	for (unsigned i = 0; i < WF_ARRAY_COUNT(original); i++) {
		const struct wf_option alias = {.name = original[i][0]};
		if (wf_option_is_named(&alias, name, bytes)) {
			return original[i][1];
		}
	}
	return NULL;
}

const struct wf_option *
wf_settings_rows(enum weft_settings_kind kind, unsigned *count)
{
	if ((unsigned)kind >= WF_ARRAY_COUNT(kinds)) {
		*count = 0;
		return NULL;
	}
	*count = kinds[kind].count;
	return kinds[kind].rows;
}

void
wf_session_defaults(struct wf_session_values *out)
{
	*out = (struct wf_session_values){.opts.struct_bytes = sizeof(out->opts)};
	wf_option_defaults(session_rows, WF_ARRAY_COUNT(session_rows), out);
}

void
wf_table_defaults(struct weft_table_opts *out)
{
	*out = (struct weft_table_opts){.struct_bytes = sizeof(*out)};
	wf_option_defaults(table_rows, WF_ARRAY_COUNT(table_rows), out);
}

enum weft_status
wf_settings_check(enum weft_settings_kind kind, const void *values)
{
	unsigned count = 0;
	const struct wf_option *rows = wf_settings_rows(kind, &count);
	return wf_option_check(rows, count, values);
}

enum weft_status
wf_settings_check_wire(enum weft_settings_kind kind, const void *values)
{
	unsigned count = 0;
	const struct wf_option *rows = wf_settings_rows(kind, &count);
	enum weft_status st = WEFT_OK;
	for (unsigned i = 0; i < count && st == WEFT_OK; i++) {
		if (rows[i].wire.bytes > 0) {
			st = wf_option_check(&rows[i], 1, values);
		}
	}
	return st;
}

enum weft_status
wf_settings_check_pserver(const struct wf_session_values *values)
{
	enum weft_status st = WEFT_OK;
	for (unsigned i = 0; i < WF_ARRAY_COUNT(session_rows) && st == WEFT_OK; i++) {
		if (session_rows[i].of_pserver) {
			st = wf_option_check(&session_rows[i], 1, values);
		}
	}
	return st;
}

unsigned
wf_session_texts(struct wf_session_values *values, const char **text[])
{
	unsigned count = 0;
	for (unsigned i = 0; i < WF_ARRAY_COUNT(session_rows); i++) {
		if (wf_option_is_text(&session_rows[i])) {
			WF_ASSERT(count < WF_SETTING_TEXTS_MAX);
			text[count++] = (const char **)((char *)values + session_rows[i].offset);
		}
	}
	return count;
}

const char *
wf_setting_option_name(const char *name)
{
	for (unsigned i = 0; i < WF_ARRAY_COUNT(original); i++) {
		if (strcmp(original[i][1], name) == 0) {
			return original[i][0];
		}
	}
	return name;
}
