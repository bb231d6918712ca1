/* SPDX-License-Identifier: Apache-2.0 */
/* The option table of the training program. Thread: the caller's. */
#include "trainer/program/command.h"

#include <string.h>

#include "base/assert.h"
#include "base/settings.h"
#include "base/status.h"
#include "kernels/rows.h"
#include "trainer/program/compute.h"
#include "trainer/program/kind.h"

#define AT(field) offsetof(struct wf_train_opts, field)
#define OPTIMIZERS                                                                                 \
	"sgd|torch_sgd|momentum|torch_momentum|nesterov|adagrad|decayed_adagrad|rmsprop|"          \
	"adadelta|adam|torch_adam|adamw|torch_adamw|adamax"

/* Options whose default depends on the model have no `initial`: see apply_kind_defaults. */
static const struct wf_option own[] = {
	/* Training. */
	{.name = "num_passes",
	 .type = WF_OPTION_U64,
	 .offset = AT(num_passes),
	 .min = 1,
	 .help = "Number of passes over the data. Default: 400 for linear, 20 for mlp, 3 "
		 "for ngram and ctr.",
	 .means = "passes over the data"},
	{.name = "batch_size",
	 .type = WF_OPTION_U64,
	 .offset = AT(batch_size),
	 .help = "Rows in each step of one trainer. 0: all rows that it has. Default: 0 for "
		 "linear, 32 for mlp and ctr, 64 for ngram."},
	{.name = "optimizer",
	 .type = WF_OPTION_CHOICE,
	 .offset = AT(session.optimizer.method),
	 .initial = "momentum",
	 .choices = OPTIMIZERS,
	 .help = "The pservers' optimizer. For ngram and ctr the default is adagrad."},
	{.name = "learning_method",
	 .type = WF_OPTION_CHOICE,
	 .offset = AT(learning_method),
	 .choices = OPTIMIZERS,
	 .help = "The original's name for --optimizer. Given in the same place, it wins over "
		 "--optimizer.",
	 .means = "the pservers' optimizer, as --optimizer"},
	{.name = "learning_rate",
	 .type = WF_OPTION_F64,
	 .offset = AT(session.optimizer.learning_rate),
	 .fmin = 0,
	 .fmax = 1e30,
	 .help = "Learning rate. Default: 1 for linear, 0.05 for mlp, 0.03 for ngram, 0.02 "
		 "for ctr."},
	{.name = "momentum",
	 .type = WF_OPTION_F64,
	 .offset = AT(session.optimizer.momentum),
	 .initial = "0.9",
	 .fmin = 0,
	 .fmax = 1,
	 .help = "Momentum of the optimizers momentum, torch_momentum, torch_sgd and nesterov. "
		 "Must be "
		 "less than 1."},
	{.name = "adam_epsilon",
	 .type = WF_OPTION_F64,
	 .offset = AT(adam_epsilon),
	 .initial = "1e-8",
	 .fmin = 1e-30,
	 .fmax = 1,
	 .help = "Epsilon of the optimizers adam, torch_adam, adamw, torch_adamw and adamax."},
	{.name = "ada_epsilon",
	 .type = WF_OPTION_F64,
	 .offset = AT(ada_epsilon),
	 .initial = "1e-6",
	 .fmin = 1e-30,
	 .fmax = 1,
	 .help = "Epsilon of the optimizers adagrad, decayed_adagrad, rmsprop and adadelta."},
	{.name = "grad_reduce",
	 .type = WF_OPTION_ENUM,
	 .offset = AT(session.grad_reduce),
	 .initial = "mean",
	 .choices = "sum|mean",
	 .help = "mean: gradients are summed over all trainers and divided by the number of "
		 "samples in the step. sum: they are only summed."},
	{.name = "tensor_modes",
	 .type = WF_OPTION_STRING,
	 .offset = AT(tensor_modes),
	 .metavar = "PATTERN=MODE,...",
	 .help = "Modes of single tensors that differ from --dense_mode: sync, async or "
		 "bounded for tensors whose names match the pattern (*, ?, [...]). The "
		 "first pattern that matches counts."},
	{.name = "is_async",
	 .type = WF_OPTION_BOOL,
	 .offset = AT(is_async),
	 .help = "The original's name for --dense_mode=async --sparse_mode=async."},
	{.name = "staleness",
	 .type = WF_OPTION_U64,
	 .offset = AT(staleness),
	 .initial = "0",
	 .max = 1000000,
	 .help = "With --dense_mode=bounded or --sparse_mode=bounded: the most steps that "
		 "the slowest trainer may be behind when a step ends. For tensors 0 is the "
		 "same as --dense_mode=sync."},
	{.name = "async_lagged_grad_discard_ratio",
	 .type = WF_OPTION_F64,
	 .offset = AT(async_lagged_grad_discard_ratio),
	 .initial = "1.5",
	 .fmin = 0,
	 .fmax = 1e6,
	 .help = "In asynchronous and bounded modes: a push is dropped if, since its values "
		 "were read, at least this many times the number of trainers pushes of "
		 "others have arrived. 0: none is dropped."},
	{.name = "nonfinite",
	 .type = WF_OPTION_ENUM, /* false and true */
	 .offset = AT(session.skip_nonfinite),
	 .initial = "abort",
	 .choices = "abort|skip",
	 .help = "What happens to NaN or Inf in a gradient: abort ends the job, skip leaves "
		 "the element out."},
	{.name = "hidden",
	 .type = WF_OPTION_STRING,
	 .offset = AT(hidden),
	 .metavar = "N,N...",
	 .help = "mlp, ngram, ctr: widths of the hidden layers; an empty list means none. "
		 "Default: 40 for mlp, 256 for ngram, 32,16 for ctr."},
	{.name = "embedding",
	 .type = WF_OPTION_U64,
	 .offset = AT(embedding),
	 .max = WF_ROW_DIM_MAX,
	 .help = "ngram, ctr: number of values in a row of the table. 0, for ctr, trains "
		 "the wide part only; with --hidden= that is logistic regression. Default: "
		 "32 for ngram, 4 for ctr."},
	{.name = "vocabulary",
	 .type = WF_OPTION_U64,
	 .offset = AT(vocabulary),
	 .initial = "2000",
	 .min = 2,
	 .max = WF_WORDS_VOCABULARY_MAX,
	 .help = "ngram: number of words in the vocabulary, the most frequent ones. All "
		 "other words count as one."},
	{.name = "dictionary",
	 .type = WF_OPTION_STRING,
	 .offset = AT(dictionary),
	 .metavar = "FILE",
	 .help = "ngram: the words of the vocabulary, one in each line in the order of their "
		 "numbers, as weft data words prints them. --vocabulary then has no effect. "
		 "Without this the words of the training rows are counted."},
	{.name = "nearest",
	 .type = WF_OPTION_STRING,
	 .offset = AT(nearest),
	 .metavar = "WORD,WORD...",
	 .help = "ngram: words whose nearest neighbours are printed at the end."},
	{.name = "validate",
	 .type = WF_OPTION_BOOL,
	 .offset = AT(validate),
	 .help = "Do not use the test rows: train on the first four fifths of the training "
		 "rows and test on the rest. Use this to choose settings."},
	{.name = "baseline",
	 .type = WF_OPTION_BOOL,
	 .offset = AT(baseline),
	 .initial = "true",
	 .help = "ngram, ctr: print at the end how well counting words, or logistic "
		 "regression, does on the same rows."},
	/* Tables. */
	{.name = "sparse_optimizer",
	 .type = WF_OPTION_CHOICE,
	 .offset = AT(sparse_optimizer),
	 .initial = "adagrad",
	 .choices = "sgd|momentum|sparse_momentum|adagrad|adagrad_rowwise|rmsprop|adam|"
		    "adam_rowwise|ftrl|ftrl_group",
	 .help = "ngram, ctr: the optimizer of the tables' rows. Momentum, betas, epsilon, "
		 "schedule and clipping are those of --optimizer."},
	{.name = "sparse_learning_rate",
	 .type = WF_OPTION_F64,
	 .offset = AT(sparse_learning_rate),
	 .fmin = 0,
	 .fmax = 1e30,
	 .help = "Learning rate of the tables' rows. Default: 1 for ngram, 0.02 for ctr."},
	{.name = "sparse_decay",
	 .type = WF_OPTION_F64,
	 .offset = AT(sparse_decay),
	 .initial = "0",
	 .fmin = 0,
	 .fmax = 1e30,
	 .help = "Weight decay of the tables' rows: L2, as a part of the gradient."},
	{.name = "sparse_l1",
	 .type = WF_OPTION_F64,
	 .offset = AT(sparse_l1),
	 .initial = "0",
	 .fmin = 0,
	 .fmax = 1e30,
	 .help = "L1 of the tables' rows, applied after the step; in ftrl inside it."},
	{.name = "sparse_l2",
	 .type = WF_OPTION_F64,
	 .offset = AT(sparse_l2),
	 .initial = "0",
	 .fmin = 0,
	 .fmax = 1e30,
	 .help = "L2 of the tables' rows, applied after the step; in ftrl inside it."},
	{.name = "sparse_l21",
	 .type = WF_OPTION_F64,
	 .offset = AT(sparse_l21),
	 .initial = "0",
	 .fmin = 0,
	 .fmax = 1e30,
	 .help = "Group lasso of the tables' rows, for ftrl_group."},
	{.name = "rmsprop_rho",
	 .type = WF_OPTION_F64,
	 .offset = AT(rmsprop_rho),
	 .initial = "0.95",
	 .fmin = 0,
	 .fmax = 1,
	 .help = "Decay of the tables' optimizer rmsprop. Must be less than 1."},
	{.name = "ftrl_beta",
	 .type = WF_OPTION_F64,
	 .offset = AT(ftrl_beta),
	 .initial = "1",
	 .fmin = 0,
	 .fmax = 1e30,
	 .help = "Beta of the tables' optimizers ftrl and ftrl_group."},
	{.name = "sparse_rest",
	 .type = WF_OPTION_CHOICE,
	 .offset = AT(sparse_rest),
	 .initial = "f32",
	 .choices = "f32|bf16|f16",
	 .help = "The format in which lanes store the values of the tables' rows. "
		 "Computation is in f32."},
	{.name = "sparse_wire",
	 .type = WF_OPTION_CHOICE,
	 .offset = AT(sparse_wire),
	 .initial = "f32",
	 .choices = "f32|bf16|f16",
	 .help = "The format in which values and gradients of the tables' rows travel. With "
		 "16 bits they are rounded once in each direction, to nearest, ties to "
		 "even."},
	{.name = "dense_equivalent",
	 .type = WF_OPTION_BOOL,
	 .offset = AT(dense_equivalent),
	 .help = "Rows that a step does not touch end where a gradient of zero would have "
		 "brought them. Refused where that has no closed form."},
	{.name = "admit_count",
	 .type = WF_OPTION_U64,
	 .offset = AT(admit_count),
	 .initial = "0",
	 .max = 65535,
	 .help = "A key gets a row when it has been pushed this often. 0 and 1: at once."},
	{.name = "admit_probability",
	 .type = WF_OPTION_F64,
	 .offset = AT(admit_probability),
	 .initial = "1",
	 .fmin = 0,
	 .fmax = 1,
	 .help = "A key gets a row with this probability each time it is pushed."},
	{.name = "evict_age",
	 .type = WF_OPTION_U64,
	 .offset = AT(evict_age),
	 .initial = "0",
	 .max = UINT32_MAX,
	 .help = "Evict rows that no step has touched for this many steps. 0: never."},
	{.name = "evict_score",
	 .type = WF_OPTION_F64,
	 .offset = AT(evict_score),
	 .initial = "0",
	 .fmin = 0,
	 .fmax = 1e29,
	 .help = "ctr: evict rows whose score falls below this. 0: never. The score is "
		 "evict_show_weight (show - click) + evict_click_weight click, where show "
		 "counts how often the key occurred, and click how often in a row of the "
		 "positive class."},
	{.name = "evict_show_weight",
	 .type = WF_OPTION_F64,
	 .offset = AT(evict_show_weight),
	 .initial = "0.25",
	 .fmin = 0,
	 .fmax = 1e29,
	 .help = "A weight in the score of --evict_score."},
	{.name = "evict_click_weight",
	 .type = WF_OPTION_F64,
	 .offset = AT(evict_click_weight),
	 .initial = "1",
	 .fmin = 0,
	 .fmax = 1e29,
	 .help = "A weight in the score of --evict_score."},
	{.name = "evict_fade",
	 .type = WF_OPTION_F64,
	 .offset = AT(evict_fade),
	 .initial = "0.98",
	 .fmin = 1e-30,
	 .fmax = 1,
	 .help = "With --evict_score: scores are multiplied by this every "
		 "--evict_fade_steps steps."},
	{.name = "evict_fade_steps",
	 .type = WF_OPTION_U64,
	 .offset = AT(evict_fade_steps),
	 .initial = "100",
	 .min = 1,
	 .max = UINT32_MAX - 1,
	 .help = "With --evict_score: number of steps between two fadings. A row that was "
		 "never pushed is kept for as many steps."},
	{.name = "table_memory",
	 .type = WF_OPTION_BYTES,
	 .offset = AT(table_memory),
	 .initial = "0",
	 .help = "ngram, ctr: the most memory that one lane (in a sequential run, this "
		 "process) uses for one table. 0: no cap. New rows above the cap are "
		 "refused and counted."},
	{.name = "evict_at_cap",
	 .type = WF_OPTION_BOOL,
	 .offset = AT(evict_at_cap),
	 .help = "With --table_memory: a new row replaces an old one instead of being "
		 "refused. Which one depends on the lanes, so such runs are not "
		 "reproducible bit for bit."},
	{.name = "seed",
	 .type = WF_OPTION_U64,
	 .offset = AT(seed),
	 .initial = "1",
	 .help = "Seed of initial values and of the order of rows. 0: draw one, which only "
		 "a single trainer may do."},
	{.name = "data",
	 .type = WF_OPTION_STRING,
	 .offset = AT(data),
	 .metavar = "FILES",
	 .help = "Train on these files instead of the data that come with weft: names of "
		 "files, folders, patterns such as 'part-*' and list files (NAME.list, one "
		 "name in a line), with commas between them. Plain text, gzip and zstd are "
		 "recognised by their content. With --format=idx: a folder."},
	{.name = "train_list",
	 .type = WF_OPTION_STRING,
	 .offset = AT(train_list),
	 .metavar = "FILES",
	 .help = "The original's name for --data.",
	 .means = "the data to train on, as --data"},
	{.name = "test_list",
	 .type = WF_OPTION_STRING,
	 .offset = AT(test_list),
	 .metavar = "FILES",
	 .help = "mlp, ngram, ctr, and linear with --format=csv: test on these files, named as in "
		 "--data, and train on all rows of --data. Without this the last fifth of the "
		 "rows is tested on.",
	 .means = "the data to test on"},
	{.name = "data_split",
	 .type = WF_OPTION_CHOICE,
	 .offset = AT(data_split),
	 .initial = "rows",
	 .choices = "rows|files|mine",
	 .help = "What --data names: rows is data that all trainers share, of which trainer i "
		 "of N trains on the rows i, i + N, ...; files is the same list for all "
		 "trainers, of which trainer i reads whole files: those whose number at the "
		 "end of the name, or whose place in the sorted list, is i modulo N; mine is "
		 "data that this trainer alone has, and {trainer} in --data stands for its "
		 "number."},
	{.name = "data_window",
	 .type = WF_OPTION_BYTES,
	 .offset = AT(data_window),
	 .initial = "0",
	 .help = "Data with at most this many bytes of text stays in memory; "
		 "more is read in each pass in windows of this size, in which rows are shuffled. A "
		 "trainer needs about six times as much memory, trainer 0, which tests, twice "
		 "that. 0: 64MiB, and windows of 8MiB."},
	{.name = "format",
	 .type = WF_OPTION_CHOICE,
	 .offset = AT(format),
	 .choices = "strikes|libsvm|criteo|idx|csv",
	 .help = "ctr: the format of the files: strikes, the default, is that of "
		 "birdstrikes.csv, libsvm is LIBSVM with two classes, criteo is Criteo's "
		 "tab-separated lines. mlp: "
		 "idx is a folder with the four files of MNIST; without --data it is "
		 "Fashion-MNIST from Debian's dataset-fashion-mnist. linear, mlp: csv is a "
		 "table of numbers with the names of its columns in the first line, separated "
		 "by commas, semicolons or tabs."},
	{.name = "target",
	 .type = WF_OPTION_STRING,
	 .offset = AT(target),
	 .metavar = "NAME",
	 .help = "With --format=csv: the column to learn, by its name in the header; all "
		 "others are features. For mlp it has the numbers of classes, from 0. Without "
		 "this it is the last column."},
	{.name = "scale",
	 .type = WF_OPTION_CHOICE,
	 .offset = AT(scale),
	 .initial = "none",
	 .choices = "none|range",
	 .help = "With --format=csv: none uses features as they stand; range takes the mean "
		 "off each and divides it by its range, both over all rows of --data, those "
		 "to test on included."},
	{.name = "trainer_count",
	 .type = WF_OPTION_U64,
	 .offset = AT(trainer_count),
	 .initial = "1",
	 .min = 1,
	 .max = WF_COMPUTE_THREADS_MAX,
	 .help = "Number of compute threads of this trainer.",
	 .means = "compute threads inside one trainer"},
	/* Options of saving. */
	{.name = "save_dir",
	 .type = WF_OPTION_STRING,
	 .offset = AT(save_dir),
	 .metavar = "DIR",
	 .help = "Trainer 0 saves the model and the state of the optimizer to this folder, "
		 "in a folder pass-00000 for each pass. Only one job at a time can save "
		 "there. Files that weft did not make are left alone.",
	 .means = "where trainer 0 saves passes"},
	{.name = "saving_period",
	 .type = WF_OPTION_U64,
	 .offset = AT(saving_period),
	 .initial = "1",
	 .min = 1,
	 .help = "Save every N passes.",
	 .means = "passes from one save to the next"},
	{.name = "saving_period_by_batches",
	 .type = WF_OPTION_U64,
	 .offset = AT(saving_period_by_batches),
	 .initial = "0",
	 .help = "Save after every N batches of trainer 0, too, under the number of the pass; "
		 "the next save of the pass replaces it. 0: only at the end of a pass. Needs "
		 "--dense_mode=sync and, with tables, --sparse_mode=sync.",
	 .means = "batches from one save in a pass to the next"},
	{.name = "start_batch",
	 .type = WF_OPTION_U64,
	 .offset = AT(start_batch),
	 .initial = "0",
	 .help = "Begin in the middle of --start_pass, after N batches, from a save that was "
		 "made there. The same on all trainers. 0: at its beginning."},
	{.name = "job_name",
	 .type = WF_OPTION_STRING,
	 .offset = AT(job_name),
	 .metavar = "NAME",
	 .help = "A name of the job, at most 63 letters, digits, dots, underscores and dashes. It "
		 "stands in the log of each process and on its command line in lists of "
		 "processes; nothing else depends on it.",
	 .means = "name of the job"},
	{.name = "save_on_term",
	 .type = WF_OPTION_BOOL,
	 .offset = AT(save_on_term),
	 .help = "After SIGTERM trainer 0 ends its step, saves to --save_dir and then ends the "
		 "job. Give it to pservers and all trainers if a scheduler sends SIGTERM to all: "
		 "they stay until then. In modes other than sync, where no trainer waits for "
		 "another, each that receives it ends its pass first."},
	{.name = "leave_on_term",
	 .type = WF_OPTION_BOOL,
	 .offset = AT(leave_on_term),
	 .help = "After SIGTERM this trainer ends its step and leaves the job, which goes on with "
		 "the others; the pservers need --on_trainer_death=drop. Its place is taken by a "
		 "trainer with --join."},
	{.name = "term_grace",
	 .type = WF_OPTION_DURATION,
	 .offset = AT(term_grace_ns),
	 .initial = "30s",
	 .min = WF_NS_PER_MS,
	 .max = 86400 * WF_NS_PER_S,
	 .help = "With --save_on_term or --leave_on_term: how long after SIGTERM a process ends "
		 "even if nothing was saved, or it has not left. Must be less than what the "
		 "scheduler waits before it kills."},
	{.name = "time_limit",
	 .type = WF_OPTION_DURATION,
	 .offset = AT(time_limit_ns),
	 .initial = "0",
	 .help = "After this time trainer 0 ends its step, saves to --save_dir and ends the job; "
		 "its exit code is 75. It runs from the start of the trainer. 0: no limit. In "
		 "modes other than sync give it to all trainers: each ends its pass first."},
	{.name = "start_pass",
	 .type = WF_OPTION_U64,
	 .offset = AT(start_pass),
	 .initial = "0",
	 .help = "Begin with pass N, from the save of the pass before it in --save_dir of "
		 "trainer 0. The same on all trainers. --num_passes counts the earlier "
		 "passes too.",
	 .means = "first pass, from the save of the one before"},
	{.name = "init_model_path",
	 .type = WF_OPTION_STRING,
	 .offset = AT(init_model_path),
	 .metavar = "PATH",
	 .help = "Take trainer 0's initial values from this saved pass (DIR/pass-00003), "
		 "without the state of the optimizer, or from a snapshot of pservers "
		 "(DIR/epoch-00001-step-0000000180), or from a file of another program: "
		 "npz, safetensors, or the original's folder or tar of parameters. It wins "
		 "over the save of --start_pass.",
	 .means = "saved pass, snapshot or file with the initial values"},
	{.name = "load_missing_parameter_strategy",
	 .type = WF_OPTION_CHOICE,
	 .offset = AT(load_missing_parameter_strategy),
	 .initial = "fail",
	 .choices = "fail|rand|zero",
	 .help = "What happens if --init_model_path lacks a tensor: fail ends the run, rand "
		 "begins with the values it would have without a file, zero begins with "
		 "zeros.",
	 .means = "what becomes of tensors that init_model_path lacks"},
	{.name = "save_only_one",
	 .type = WF_OPTION_BOOL,
	 .offset = AT(save_only_one),
	 .help = "Delete the saves of earlier passes after each save.",
	 .means = "earlier saves are deleted"},
	/* Options of logging. */
	{.name = "log_period",
	 .type = WF_OPTION_U64,
	 .offset = AT(log_period),
	 .initial = "100",
	 .help = "Log the cost every N batches. 0: never."},
	{.name = "dot_period",
	 .type = WF_OPTION_U64,
	 .offset = AT(dot_period),
	 .initial = "1",
	 .help = "Print a dot every N batches, on a terminal only. 0: never."},
	{.name = "test_period",
	 .type = WF_OPTION_U64,
	 .offset = AT(test_period),
	 .initial = "0",
	 .help = "Test every N batches as well. 0: only at the end of each pass."},
	/* The job. */
	{.name = "sequential",
	 .type = WF_OPTION_BOOL,
	 .offset = AT(sequential),
	 .help = "Run all trainers in turn in this process, without any network. The result "
		 "has the same bits."},
	{.name = "local",
	 .type = WF_OPTION_BOOL,
	 .offset = AT(local),
	 .help = "The original's name for --sequential.",
	 .means = "train without pservers, as --sequential does"},
	{.name = "closed_form",
	 .type = WF_OPTION_BOOL,
	 .offset = AT(closed_form),
	 .help = "linear: print the errors of the least-squares solution instead of "
		 "training."},
};

/* Those of the original that have no effect here; they come last. */
static const struct wf_option originals[] = {
	{.name = "use_gpu",
	 .type = WF_OPTION_BOOL,
	 .offset = AT(use_gpu),
	 .help = "Accepted if false; weft computes on CPUs.",
	 .means = "use of GPUs: none"},
	{.name = "rdma_tcp",
	 .type = WF_OPTION_CHOICE,
	 .offset = AT(rdma_tcp),
	 .initial = "tcp",
	 .choices = "tcp|rdma",
	 .help = "Accepted if tcp; use --transport to choose RDMA.",
	 .means = "nothing, see --transport"},
	{.name = "nics",
	 .type = WF_OPTION_STRING,
	 .offset = AT(nics),
	 .help = "Accepted, no effect.",
	 .means = "nothing here: addresses come from --pservers"},
	{.name = "small_messages",
	 .type = WF_OPTION_BOOL,
	 .offset = AT(small_messages),
	 .help = "Accepted, no effect.",
	 .means = "nothing here: small messages are never delayed"},
	{.name = "use_old_updater",
	 .type = WF_OPTION_BOOL,
	 .offset = AT(use_old_updater),
	 .help = "Accepted, no effect.",
	 .means = "nothing here: there is one updater"},
	{.name = "parallel_thread_num",
	 .type = WF_OPTION_U64,
	 .offset = AT(parallel_thread_num),
	 .initial = "1",
	 .help = "Accepted, no effect.",
	 .means = "nothing here: one progress thread serves all lanes"},
	{.name = "sock_send_buf_size",
	 .type = WF_OPTION_U64,
	 .offset = AT(sock_send_buf_size),
	 .help = "Accepted, no effect.",
	 .means = "nothing here: the kernel sizes its buffers"},
	{.name = "sock_recv_buf_size",
	 .type = WF_OPTION_U64,
	 .offset = AT(sock_recv_buf_size),
	 .help = "Accepted, no effect.",
	 .means = "nothing here: the kernel sizes its buffers"},
	{.name = "comment",
	 .type = WF_OPTION_STRING,
	 .offset = AT(comment),
	 .help = "Accepted, no effect.",
	 .means = "nothing here: a text for process lists"},
};

/* The program's own, those of the library, the original's. */
static unsigned
make_table(struct wf_option table[WF_TRAIN_OPTIONS_MAX])
{
	WF_STATIC_ASSERT(WF_ARRAY_COUNT(own) + WF_ARRAY_COUNT(originals) < WF_TRAIN_OPTIONS_MAX,
			 "room for the library's");
	memcpy(table, own, sizeof(own));
	unsigned count =
		wf_settings_offer(table, WF_ARRAY_COUNT(own),
				  WF_TRAIN_OPTIONS_MAX - WF_ARRAY_COUNT(originals), AT(session));
	memcpy(table + count, originals, sizeof(originals));
	return count + (unsigned)WF_ARRAY_COUNT(originals);
}

static enum wf_option_origin
origin_of(const struct wf_train_command *command, const char *name)
{
	return wf_options_origin(&command->options, name);
}

static bool
is_default(const struct wf_train_command *command, const char *name)
{
	return origin_of(command, name) == WF_ORIGIN_DEFAULT;
}

/* The first comes from a place that counts more, such as the command line over the environment. */
static bool
is_above(const struct wf_train_command *command, const char *first, const char *second)
{
	return origin_of(command, first) > origin_of(command, second);
}

/* As if nobody had given it. */
static void
forget(struct wf_train_command *command, const char *name)
{
	const struct wf_option *option = wf_option_find(&command->options, name, strlen(name));
	wf_option_defaults(option, 1, command->options.target);
	command->origin[option - command->table] = WF_ORIGIN_DEFAULT;
}

/* What neither command line nor environment gave and depends on the model. */
static void
apply_usual(struct wf_train_command *command, const struct wf_kind *kind)
{
	const struct wf_kind_settings *usual = &kind->usual;
	struct wf_train_opts *opts = &command->opts;

	if (is_default(command, "num_passes")) {
		opts->num_passes = usual->num_passes;
	}
	if (is_default(command, "batch_size")) {
		opts->batch_size = usual->batch_size;
	}
	if (is_default(command, "format")) {
		opts->format = kind->data_format;
	}
	if (is_default(command, "optimizer") && usual->optimizer != NULL) {
		opts->session.optimizer.method = usual->optimizer;
	}
	if (is_default(command, "learning_rate")) {
		opts->session.optimizer.learning_rate = usual->learning_rate;
	}
	if (is_default(command, "sparse_learning_rate")) {
		opts->sparse_learning_rate = usual->sparse_learning_rate;
	}
	if (is_default(command, "embedding")) {
		opts->embedding = usual->embedding;
	}
}

/* Of two names of one setting that of the place that counts more; both, if it is the same. */
static void
settle_names(struct wf_train_command *command)
{
	static const char *const names[][2] = {
		{"learning_method", "optimizer"},
		{"local", "sequential"},
	};
	for (size_t i = 0; i < WF_ARRAY_COUNT(names); i++) {
		if (is_above(command, names[i][0], names[i][1])) {
			forget(command, names[i][1]);
		} else if (is_above(command, names[i][1], names[i][0])) {
			forget(command, names[i][0]);
		}
	}
}

/* What the original's options say in other words. */
static void
apply_originals(struct wf_train_command *command)
{
	struct wf_train_opts *opts = &command->opts;

	if (opts->learning_method != NULL) {
		opts->session.optimizer.method = opts->learning_method;
	}
	if (opts->session.local_steps > 0 && is_default(command, "dense_mode")) {
		opts->session.dense_mode = WEFT_DENSE_LOCAL;
	} else if (opts->is_async && is_above(command, "is_async", "dense_mode")) {
		opts->session.dense_mode = WEFT_DENSE_ASYNC;
	}
	if (opts->is_async && is_above(command, "is_async", "sparse_mode")) {
		opts->session.sparse_mode = WEFT_SPARSE_ASYNC;
	}
}

/* One process that plays all trainers has no place among those that a launcher counts. */
static void
leave_launcher(struct wf_train_command *command)
{
	static const char *const names[] = {"trainer_id", "num_gradient_servers"};
	for (size_t i = 0; i < WF_ARRAY_COUNT(names); i++) {
		if (origin_of(command, names[i]) == WF_ORIGIN_LAUNCHER) {
			forget(command, names[i]);
		}
	}
}

enum weft_status
wf_train_command_parse(struct wf_train_command *command, const struct wf_launcher *launcher,
		       int argc, char *const *argv)
{
	const struct wf_kind *kind = NULL;

	*command = (struct wf_train_command){
		.options = {.table = command->table,
			    .program = "weft train",
			    .target = &command->opts,
			    .origin = command->origin,
			    .env_name = command->env_name,
			    .file = &command->file,
			    .originals = &command->originals,
			    .launcher = launcher,
			    .positional = command->positional,
			    .positional_max = WF_ARRAY_COUNT(command->positional)},
	};
	command->options.option_count = make_table(command->table);
	wf_session_defaults(&command->opts.values);
	enum weft_status st = wf_options_parse(&command->options, argc, argv);
	if (st != WEFT_OK || command->options.help_wanted) {
		return st;
	}
	settle_names(command);
	if (command->opts.sequential || command->opts.local) {
		leave_launcher(command);
	}
	if (command->options.positional_count > 0) {
		command->opts.model = command->positional[0];
	}
	st = wf_kind_by_name(command->opts.model, &kind);
	if (st != WEFT_OK) {
		const struct wf_error why = *wf_error_record();
		return wf_fail(st, "%s: %s", command->options.program, why.text);
	}
	apply_usual(command, kind);
	apply_originals(command);
	return WEFT_OK;
}
