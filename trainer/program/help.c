/* SPDX-License-Identifier: Apache-2.0 */
/* The help of the training program. Thread: the caller's. */
#include "base/assert.h"
#include "base/help.h"
#include "trainer/program/command.h"
#include "trainer/program/kind.h"

/* In the order in which a user needs them. */
static const struct wf_help_group groups[] = {
	{"Job", "pservers port ports_num ports_num_for_sparse num_gradient_servers trainer_id "
		"join job_name sequential local"},
	{"Training", "num_passes batch_size trainer_count seed test_period validate baseline"},
	{"Data and model",
	 "data train_list test_list data_split data_window format target scale hidden embedding "
	 "vocabulary dictionary nearest closed_form"},
	{WF_HEADING_OPTIMIZER,
	 "optimizer learning_method learning_rate learning_rate_schedule learning_rate_decay_a "
	 "learning_rate_decay_b learning_rate_args momentum adam_beta1 adam_beta2 adam_epsilon "
	 "ada_rou ada_epsilon l1 l2 gradient_clipping_threshold global_norm_clipping_threshold "
	 "nonfinite"},
	{"Exchange of tensors",
	 "dense_mode tensor_modes is_async staleness async_lagged_grad_discard_ratio local_steps "
	 "elastic_rate grad_reduce dense_wire dense_rounding slice_bytes"},
	{"Tables of rows",
	 "sparse_mode sparse_optimizer sparse_learning_rate sparse_decay sparse_l1 sparse_l2 "
	 "sparse_l21 rmsprop_rho ftrl_beta dense_equivalent sparse_wire sparse_rest"},
	{"Size of tables", "table_memory evict_at_cap admit_count admit_probability evict_age "
			   "evict_score evict_show_weight evict_click_weight evict_fade "
			   "evict_fade_steps"},
	{"Saved models", "save_dir saving_period saving_period_by_batches save_only_one "
			 "start_pass start_batch init_model_path load_missing_parameter_strategy"},
	{"End", "save_on_term leave_on_term term_grace time_limit"},
	{.title = WF_HEADING_TRANSPORT},
	{.title = WF_HEADING_TIME_LIMITS},
	{"Log", "log_period dot_period stats_period"},
	{"Accepted for command lines of the original, PaddlePaddle v0.10",
	 "rdma_tcp nics use_gpu small_messages use_old_updater parallel_thread_num "
	 "sock_send_buf_size sock_recv_buf_size comment"},
};

static void
print_models(FILE *out)
{
	const struct wf_kind *kind = NULL;
	for (unsigned i = 0; (kind = wf_kind_at(i)) != NULL; i++) {
		fprintf(out, "  %-8s %s\n", kind->name, kind->summary);
	}
}

const struct wf_help wf_train_help = {
	.usage = "weft train MODEL [options]",
	.about = "Trains a built-in model, as one trainer of a job. At the end of each pass "
		 "trainer 0 prints one line:\n"
		 "  pass 0 cost 12.34 test 15.6 digest 9f86d081884c7d65\n"
		 "For the models ngram and ctr it also prints at the end how the model compares "
		 "with "
		 "its baselines.",
	.examples =
		"  weft train linear --pservers=10.0.0.1,10.0.0.2 \\\n"
		"             --num_gradient_servers=2 --trainer_id=0\n"
		"  weft train mlp --sequential --num_passes=5 --save_dir=out\n"
		"  weft train mlp --sequential --num_passes=9 --save_dir=out --start_pass=5\n"
		"  weft train mlp --sequential --format=idx --num_passes=3 --hidden=256\n"
		"  weft train linear --closed_form\n"
		"  weft train linear --sequential --format=csv --data=flats.csv --target=rent \\\n"
		"             --scale=range\n"
		"  weft train ctr --sequential --format=libsvm --data=a9a\n"
		"  weft train ctr --pservers=10.0.0.1 --num_gradient_servers=2 \\\n"
		"             --trainer_id=0 --format=criteo --data='day-*.gz' "
		"--data_split=files",
	.list_title = "Models",
	.print_list = print_models,
	.group = groups,
	.group_count = (unsigned)WF_ARRAY_COUNT(groups),
	.exit_codes = "   0  the training has ended\n"
		      "  64  an option or argument is wrong\n"
		      "  65  data or a saved model is damaged or does not fit\n"
		      "  69  a peer is unavailable or was lost, or another job saves to save_dir\n"
		      "  70  an internal error\n"
		      "  74  input or output failed; also when a pass could not be saved\n"
		      "  75  the time limit is over; also: try again\n"
		      "  77  not permitted",
};

void
wf_train_command_help(struct wf_train_command *command, FILE *out)
{
	command->options.help = &wf_train_help;
	wf_options_print_help(&command->options, out);
}
