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
	"sgd|momentum|torch_momentum|nesterov|adagrad|decayed_adagrad|rmsprop|adadelta|adam|"      \
	"adamw|adamax"

/* Options whose default depends on the model have no `initial`: see apply_kind_defaults. */
static const struct wf_option own[] = {
	/* Training. */
	{.name = "num_passes",
	 .type = WF_OPTION_U64,
	 .offset = AT(num_passes),
	 .min = 1,
	 .help = "Passes over the data: linear 400, mlp 20, ngram 3, ctr 3.",
	 .means = "passes over the data"},
	{.name = "batch_size",
	 .type = WF_OPTION_U64,
	 .offset = AT(batch_size),
	 .help = "Rows per step of one trainer, 0: all it has. Linear 0, mlp and ctr 32, ngram "
		 "64."},
	{.name = "optimizer",
	 .type = WF_OPTION_CHOICE,
	 .offset = AT(session.optimizer.method),
	 .initial = "momentum",
	 .choices = OPTIMIZERS,
	 .help = "The pservers' optimizer; adagrad for ngram and ctr unless given."},
	{.name = "learning_method",
	 .type = WF_OPTION_CHOICE,
	 .offset = AT(learning_method),
	 .choices = OPTIMIZERS,
	 .help = "As --optimizer, which gives way to it.",
	 .means = "the pservers' optimizer, as --optimizer"},
	{.name = "learning_rate",
	 .type = WF_OPTION_F64,
	 .offset = AT(session.optimizer.learning_rate),
	 .fmin = 1e-30,
	 .fmax = 1e30,
	 .help = "Learning rate: linear 1, mlp 0.05, ngram 0.03, ctr 0.02."},
	{.name = "momentum",
	 .type = WF_OPTION_F64,
	 .offset = AT(session.optimizer.momentum),
	 .initial = "0.9",
	 .fmin = 0,
	 .fmax = 1,
	 .help = "For the optimizers momentum, torch_momentum and nesterov; less than 1."},
	{.name = "adam_epsilon",
	 .type = WF_OPTION_F64,
	 .offset = AT(adam_epsilon),
	 .initial = "1e-8",
	 .fmin = 1e-30,
	 .fmax = 1,
	 .help = "For the optimizers adam, adamw and adamax."},
	{.name = "ada_epsilon",
	 .type = WF_OPTION_F64,
	 .offset = AT(ada_epsilon),
	 .initial = "1e-6",
	 .fmin = 1e-30,
	 .fmax = 1,
	 .help = "For the optimizers adagrad, decayed_adagrad, rmsprop and adadelta."},
	{.name = "grad_reduce",
	 .type = WF_OPTION_ENUM,
	 .offset = AT(session.grad_reduce),
	 .initial = "mean",
	 .choices = "sum|mean",
	 .help = "mean: gradients are summed over all trainers and divided by the step's samples; "
		 "sum: not divided."},
	{.name = "tensor_modes",
	 .type = WF_OPTION_STRING,
	 .offset = AT(tensor_modes),
	 .metavar = "PATTERN=MODE,...",
	 .help = "Modes of single tensors, where they are not dense_mode: sync, async or bounded "
		 "for those whose names fit the pattern (*, ?, [...]), the first that fits."},
	{.name = "is_async",
	 .type = WF_OPTION_BOOL,
	 .offset = AT(is_async),
	 .help = "The original's word: dense_mode=async and sparse_mode=async."},
	{.name = "staleness",
	 .type = WF_OPTION_U64,
	 .offset = AT(staleness),
	 .initial = "0",
	 .max = 1000000,
	 .help = "With dense_mode=bounded or sparse_mode=bounded: so many steps fewer the slowest "
		 "trainer may have done when a step ends. 0, of tensors: as dense_mode=sync."},
	{.name = "async_lagged_grad_discard_ratio",
	 .type = WF_OPTION_F64,
	 .offset = AT(async_lagged_grad_discard_ratio),
	 .initial = "1.5",
	 .fmin = 0,
	 .fmax = 1e6,
	 .help = "Not with dense_mode=sync, sparse_mode=sync: a push of a slice of a tensor, or to "
		 "tables, is dropped when so many times the number of trainers pushes of others "
		 "came after its values were read; 0: none."},
	{.name = "nonfinite",
	 .type = WF_OPTION_CHOICE,
	 .offset = AT(nonfinite),
	 .initial = "abort",
	 .choices = "abort|skip",
	 .help = "What NaN or Inf in a gradient does: end the job, or leave the element out."},
	{.name = "hidden",
	 .type = WF_OPTION_STRING,
	 .offset = AT(hidden),
	 .metavar = "N,N...",
	 .help = "mlp, ngram, ctr: widths of the hidden layers, none if empty. Where it is not "
		 "given, mlp 40, ngram 256, ctr 32,16."},
	{.name = "embedding",
	 .type = WF_OPTION_U64,
	 .offset = AT(embedding),
	 .max = WF_ROW_DIM_MAX,
	 .help = "ngram, ctr: values of a row of the table, ngram 32, ctr 4. 0, for ctr: the wide "
		 "part only; with --hidden= that is logistic regression."},
	{.name = "vocabulary",
	 .type = WF_OPTION_U64,
	 .offset = AT(vocabulary),
	 .initial = "2000",
	 .min = 2,
	 .max = WF_WORDS_VOCABULARY_MAX,
	 .help = "ngram: how many words are told apart, the most frequent ones; all others are "
		 "one."},
	{.name = "nearest",
	 .type = WF_OPTION_STRING,
	 .offset = AT(nearest),
	 .metavar = "WORD,WORD...",
	 .help = "ngram: words whose nearest ones are told at the end."},
	{.name = "validate",
	 .type = WF_OPTION_BOOL,
	 .offset = AT(validate),
	 .help = "Leave the test rows alone: train on the first four fifths of the training rows, "
		 "and test on the rest. For choosing settings."},
	{.name = "baseline",
	 .type = WF_OPTION_BOOL,
	 .offset = AT(baseline),
	 .initial = "true",
	 .help = "ngram, ctr: tell at the end what counting words, or logistic regression, makes "
		 "of the same rows."},
	/* Tables. */
	{.name = "sparse_optimizer",
	 .type = WF_OPTION_CHOICE,
	 .offset = AT(sparse_optimizer),
	 .initial = "adagrad",
	 .choices = "sgd|momentum|sparse_momentum|adagrad|adagrad_rowwise|rmsprop|adam|"
		    "adam_rowwise|ftrl|ftrl_group",
	 .help = "ngram, ctr: the optimizer of tables' rows. Momentum, betas, epsilon, schedule "
		 "and clipping are those of --optimizer."},
	{.name = "sparse_learning_rate",
	 .type = WF_OPTION_F64,
	 .offset = AT(sparse_learning_rate),
	 .fmin = 1e-30,
	 .fmax = 1e30,
	 .help = "Learning rate of tables' rows: ngram 1, ctr 0.02."},
	{.name = "sparse_decay",
	 .type = WF_OPTION_F64,
	 .offset = AT(sparse_decay),
	 .initial = "0",
	 .fmin = 0,
	 .fmax = 1e30,
	 .help = "Decay of tables' rows: L2, as part of the gradient."},
	{.name = "sparse_l1",
	 .type = WF_OPTION_F64,
	 .offset = AT(sparse_l1),
	 .initial = "0",
	 .fmin = 0,
	 .fmax = 1e30,
	 .help = "L1 of tables' rows, after the step; of ftrl inside."},
	{.name = "sparse_l2",
	 .type = WF_OPTION_F64,
	 .offset = AT(sparse_l2),
	 .initial = "0",
	 .fmin = 0,
	 .fmax = 1e30,
	 .help = "L2 of tables' rows, after the step; of ftrl inside."},
	{.name = "sparse_l21",
	 .type = WF_OPTION_F64,
	 .offset = AT(sparse_l21),
	 .initial = "0",
	 .fmin = 0,
	 .fmax = 1e30,
	 .help = "Group lasso of tables' rows, for ftrl_group."},
	{.name = "rmsprop_rho",
	 .type = WF_OPTION_F64,
	 .offset = AT(rmsprop_rho),
	 .initial = "0.95",
	 .fmin = 0,
	 .fmax = 1,
	 .help = "For the tables' optimizer rmsprop; less than 1."},
	{.name = "ftrl_beta",
	 .type = WF_OPTION_F64,
	 .offset = AT(ftrl_beta),
	 .initial = "1",
	 .fmin = 0,
	 .fmax = 1e30,
	 .help = "For the tables' optimizers ftrl and ftrl_group."},
	{.name = "sparse_rest",
	 .type = WF_OPTION_CHOICE,
	 .offset = AT(sparse_rest),
	 .initial = "f32",
	 .choices = "f32|bf16|f16",
	 .help = "How lanes keep the values of tables' rows; they are computed with as f32."},
	{.name = "sparse_wire",
	 .type = WF_OPTION_CHOICE,
	 .offset = AT(sparse_wire),
	 .initial = "f32",
	 .choices = "f32|bf16|f16",
	 .help = "How values of tables' rows and their gradients travel: with 16 bits they are "
		 "rounded once each way, to nearest, ties to even."},
	{.name = "dense_equivalent",
	 .type = WF_OPTION_BOOL,
	 .offset = AT(dense_equivalent),
	 .help = "Rows that a step does not touch end where a gradient of zero would have brought "
		 "them; refused where that has no closed form."},
	{.name = "admit_count",
	 .type = WF_OPTION_U64,
	 .offset = AT(admit_count),
	 .initial = "0",
	 .max = 65535,
	 .help = "A key gets a row when it was pushed so often; 0 and 1: at once."},
	{.name = "admit_probability",
	 .type = WF_OPTION_F64,
	 .offset = AT(admit_probability),
	 .initial = "1",
	 .fmin = 0,
	 .fmax = 1,
	 .help = "A key gets a row with this probability each time that it is pushed."},
	{.name = "evict_age",
	 .type = WF_OPTION_U64,
	 .offset = AT(evict_age),
	 .initial = "0",
	 .max = UINT32_MAX,
	 .help = "Rows go when so many steps have not touched them; 0: never."},
	{.name = "evict_score",
	 .type = WF_OPTION_F64,
	 .offset = AT(evict_score),
	 .initial = "0",
	 .fmin = 0,
	 .fmax = 1e29,
	 .help = "ctr: rows go when their score falls below this; 0: never. The score is\n"
		 "evict_show_weight (show - click) + evict_click_weight click: how often the key\n"
		 "came, and how often in a row of the positive class."},
	{.name = "evict_show_weight",
	 .type = WF_OPTION_F64,
	 .offset = AT(evict_show_weight),
	 .initial = "0.25",
	 .fmin = 0,
	 .fmax = 1e29,
	 .help = "With evict_score."},
	{.name = "evict_click_weight",
	 .type = WF_OPTION_F64,
	 .offset = AT(evict_click_weight),
	 .initial = "1",
	 .fmin = 0,
	 .fmax = 1e29,
	 .help = "With evict_score."},
	{.name = "evict_fade",
	 .type = WF_OPTION_F64,
	 .offset = AT(evict_fade),
	 .initial = "0.98",
	 .fmin = 1e-30,
	 .fmax = 1,
	 .help = "With evict_score: scores are multiplied by this every evict_fade_steps."},
	{.name = "evict_fade_steps",
	 .type = WF_OPTION_U64,
	 .offset = AT(evict_fade_steps),
	 .initial = "100",
	 .min = 1,
	 .max = UINT32_MAX - 1,
	 .help = "With evict_score; a row that was never pushed has so many steps before it goes."},
	{.name = "table_memory",
	 .type = WF_OPTION_BYTES,
	 .offset = AT(table_memory),
	 .initial = "0",
	 .help = "ngram, ctr: the most that one lane takes for one table (of a sequential run: "
		 "that this process takes); 0: no cap. New rows above it are refused, and "
		 "counted."},
	{.name = "evict_at_cap",
	 .type = WF_OPTION_BOOL,
	 .offset = AT(evict_at_cap),
	 .help = "With table_memory: a new row takes the place of an old one. Which one depends on "
		 "the lanes, so such runs do not end with equal bits."},
	{.name = "seed",
	 .type = WF_OPTION_U64,
	 .offset = AT(seed),
	 .initial = "1",
	 .help = "Decides initial values and order of rows. 0: drawn, where a trainer is alone."},
	{.name = "data",
	 .type = WF_OPTION_STRING,
	 .offset = AT(data),
	 .metavar = "FILE",
	 .help = "Train on this file, or folder of idx files, instead of what comes with weft."},
	{.name = "format",
	 .type = WF_OPTION_CHOICE,
	 .offset = AT(format),
	 .initial = "strikes",
	 .choices = "strikes|libsvm|criteo|idx",
	 .help = "ctr: what the file is: as birdstrikes.csv, LIBSVM with two classes, or Criteo's "
		 "tab-separated lines. mlp: idx is a folder with the four files of MNIST; if none "
		 "is named, Fashion-MNIST of Debian's dataset-fashion-mnist."},
	{.name = "trainer_count",
	 .type = WF_OPTION_U64,
	 .offset = AT(trainer_count),
	 .initial = "1",
	 .min = 1,
	 .max = WF_COMPUTE_THREADS_MAX,
	 .help = "Compute threads of this trainer.",
	 .means = "compute threads inside one trainer"},
	/* What is saved. */
	{.name = "save_dir",
	 .type = WF_OPTION_STRING,
	 .offset = AT(save_dir),
	 .metavar = "DIR",
	 .help = "Trainer 0 saves model and optimizer state here, a folder pass-00000 for each "
		 "pass. One job at a time saves there; what weft did not make there stays.",
	 .means = "where trainer 0 saves passes"},
	{.name = "saving_period",
	 .type = WF_OPTION_U64,
	 .offset = AT(saving_period),
	 .initial = "1",
	 .min = 1,
	 .help = "Save every N passes.",
	 .means = "passes from one save to the next"},
	{.name = "start_pass",
	 .type = WF_OPTION_U64,
	 .offset = AT(start_pass),
	 .initial = "0",
	 .help = "Begin with pass N, from what trainer 0 has in save_dir of the pass before. The "
		 "same on all trainers; num_passes counts the earlier passes too.",
	 .means = "first pass, from the save of the one before"},
	{.name = "init_model_path",
	 .type = WF_OPTION_STRING,
	 .offset = AT(init_model_path),
	 .metavar = "PATH",
	 .help = "Take trainer 0's initial values from this saved pass (DIR/pass-00003), but no "
		 "optimizer's state; or from a file of another program: npz, safetensors, the "
		 "original's folder or tar of parameters. Comes before the save that start_pass "
		 "names.",
	 .means = "saved pass or file with the initial values"},
	{.name = "load_missing_parameter_strategy",
	 .type = WF_OPTION_CHOICE,
	 .offset = AT(load_missing_parameter_strategy),
	 .initial = "fail",
	 .choices = "fail|rand|zero",
	 .help = "What to do when init_model_path lacks a tensor: end; begin with what it would "
		 "have without a file; begin with zeros.",
	 .means = "what becomes of tensors that init_model_path lacks"},
	{.name = "save_only_one",
	 .type = WF_OPTION_BOOL,
	 .offset = AT(save_only_one),
	 .help = "Delete the saves of earlier passes after each save.",
	 .means = "earlier saves are deleted"},
	/* What is logged. */
	{.name = "log_period",
	 .type = WF_OPTION_U64,
	 .offset = AT(log_period),
	 .initial = "100",
	 .help = "Log the cost every N batches, 0: never."},
	{.name = "dot_period",
	 .type = WF_OPTION_U64,
	 .offset = AT(dot_period),
	 .initial = "1",
	 .help = "Print a dot every N batches, on a terminal only, 0: never."},
	{.name = "test_period",
	 .type = WF_OPTION_U64,
	 .offset = AT(test_period),
	 .initial = "0",
	 .help = "Test every N batches too, 0: at the end of each pass only."},
	/* The job. */
	{.name = "sequential",
	 .type = WF_OPTION_BOOL,
	 .offset = AT(sequential),
	 .help = "Play all trainers in turn in this process, without a fabric; ends with the same "
		 "bits."},
	{.name = "local",
	 .type = WF_OPTION_BOOL,
	 .offset = AT(local),
	 .help = "As --sequential.",
	 .means = "train without pservers, as --sequential does"},
	{.name = "closed_form",
	 .type = WF_OPTION_BOOL,
	 .offset = AT(closed_form),
	 .help = "linear: print the errors of the least-squares solution instead of training."},
};

/* Those of the original that have no effect here; they come last. */
static const struct wf_option originals[] = {
	{.name = "use_gpu",
	 .type = WF_OPTION_BOOL,
	 .offset = AT(use_gpu),
	 .help = "False is accepted; weft computes on CPUs.",
	 .means = "use of GPUs: none"},
	{.name = "rdma_tcp",
	 .type = WF_OPTION_CHOICE,
	 .offset = AT(rdma_tcp),
	 .initial = "tcp",
	 .choices = "tcp|rdma",
	 .help = "tcp is accepted; see --transport.",
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

static bool
is_default(const struct wf_train_command *command, const char *name)
{
	return wf_options_origin(&command->options, name) == WF_ORIGIN_DEFAULT;
}

/* What neither command line nor environment gave and depends on the model. */
static void
apply_kind_defaults(struct wf_train_command *command, const struct wf_kind *kind)
{
	struct wf_train_opts *opts = &command->opts;

	if (is_default(command, "num_passes")) {
		opts->num_passes = kind->num_passes;
	}
	if (is_default(command, "batch_size")) {
		opts->batch_size = kind->batch_size;
	}
	if (is_default(command, "optimizer") && kind->optimizer != NULL) {
		opts->session.optimizer.method = kind->optimizer;
	}
	if (opts->learning_method != NULL) {
		opts->session.optimizer.method = opts->learning_method;
	}
	if (opts->session.local_steps > 0 && is_default(command, "dense_mode")) {
		opts->session.dense_mode = WEFT_DENSE_LOCAL;
	} else if (opts->is_async && is_default(command, "dense_mode")) {
		opts->session.dense_mode = WEFT_DENSE_ASYNC;
	}
	if (opts->is_async && is_default(command, "sparse_mode")) {
		opts->session.sparse_mode = WEFT_SPARSE_ASYNC;
	}
	if (is_default(command, "learning_rate")) {
		opts->session.optimizer.learning_rate = kind->learning_rate;
	}
	if (is_default(command, "sparse_learning_rate")) {
		opts->sparse_learning_rate = kind->sparse_learning_rate;
	}
	if (is_default(command, "embedding")) {
		opts->embedding = kind->embedding;
	}
}

enum weft_status
wf_train_command_parse(struct wf_train_command *command, int argc, char *const *argv)
{
	const struct wf_kind *kind = NULL;

	*command = (struct wf_train_command){
		.options = {.table = command->table,
			    .program = "weft train",
			    .target = &command->opts,
			    .origin = command->origin,
			    .env_name = command->env_name,
			    .file = &command->file,
			    .positional = command->positional,
			    .positional_max = WF_ARRAY_COUNT(command->positional)},
	};
	command->options.option_count = make_table(command->table);
	wf_session_defaults(&command->opts.values);
	enum weft_status st = wf_options_parse(&command->options, argc, argv);
	if (st != WEFT_OK || command->options.help_wanted) {
		return st;
	}
	if (command->options.positional_count > 0) {
		command->opts.model = command->positional[0];
	}
	st = wf_kind_by_name(command->opts.model, &kind);
	if (st != WEFT_OK) {
		const struct wf_error why = *wf_error_record();
		return wf_fail(st, "%s: %s", command->options.program, why.text);
	}
	apply_kind_defaults(command, kind);
	return WEFT_OK;
}
