/* SPDX-License-Identifier: Apache-2.0 */
/* originals: see originals.h. The rows follow the original's sources (0.9 to 0.11): transport,
 * asynchronous training, distribution of sparse rows, training, and flags that only documents have.
 *
 * A flag that only reports or only changes speed is accepted. One that changes what is computed,
 * read or written is refused, unless its value is what happens anyway. */
#include "base/originals.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/assert.h"
#include "base/options.h"
#include "base/options_internal.h"

#define QUOTE 80 /* bytes of a refused value that an error repeats */
#define TEXT_INDENT 6u

#define TRAINER .of_trainer = true
#define PSERVER .of_pserver = true
#define BOTH TRAINER, PSERVER
#define OPTION .answer = WF_ORIGINAL_OPTION
#define IGNORED(why) .answer = WF_ORIGINAL_IGNORED, .text = (why)
#define MAPPED(option, why) .answer = WF_ORIGINAL_MAPPED, .to = (option), .text = (why)
#define REFUSED(value, instead)                                                                    \
	.answer = WF_ORIGINAL_REFUSED, .harmless = (value), .text = (instead)
#define SWITCH .is_switch = true

#define STRAGGLERS "--stats_period=10s logs which trainer the others wait for"
#define HASHED "keys are spread over the lanes by a hash; --stats_period=10s logs their bytes"
#define NO_GPU "weft computes on CPUs"
#define NO_PYTHON "the program runs no Python; weft launch -- python3 train.py does"
#define NO_PREDICTION                                                                              \
	"weft trains only; weft export writes the saved model for a program that predicts"
#define OF_GENERATION "no built-in model generates sequences; leave it out"

static const struct wf_original rows[] = {
	{"port", BOTH, OPTION},
	{"ports_num", BOTH, OPTION},
	{"ports_num_for_sparse", BOTH, OPTION},
	{"nics", BOTH, OPTION},
	{"rdma_tcp", BOTH, OPTION},
	{"pservers", TRAINER, OPTION},
	{"num_gradient_servers", BOTH, OPTION},
	{"trainer_id", TRAINER, OPTION},
	{"trainer_count", TRAINER, OPTION},
	{"parallel_thread_num", TRAINER, OPTION},
	{"small_messages", BOTH, OPTION},
	{"sock_send_buf_size", BOTH, OPTION},
	{"sock_recv_buf_size", BOTH, OPTION},
	{"sock_listen_queue_size", PSERVER, OPTION},
	{"start_pserver", TRAINER, SWITCH,
	 REFUSED("false", "start weft pserver beside it; weft launch --local starts both")},
	{"pserver_num_threads", PSERVER, OPTION},
	{"data_server_port", TRAINER, IGNORED("each trainer reads its data itself")},
	{"use_old_updater", TRAINER, OPTION},
	{"enable_grad_share", TRAINER, IGNORED("compute threads share their gradients anyway")},
	{"grad_share_block_num", TRAINER, IGNORED("compute threads share their gradients anyway")},

	{"async_count", TRAINER, IGNORED("the original never read it; see --dense_mode")},
	{"async_lagged_ratio_min", PSERVER,
	 REFUSED("1", "there is no lower limit; give trainers the ratio that counts with "
		      "--async_lagged_grad_discard_ratio")},
	{"async_lagged_ratio_default", PSERVER,
	 REFUSED("1.5", "give it to all trainers as --async_lagged_grad_discard_ratio")},
	{"async_lagged_ratio_default", TRAINER,
	 MAPPED("async_lagged_grad_discard_ratio", "the ratio has one name here")},

	{"check_sparse_distribution_in_pserver", TRAINER, SWITCH, IGNORED(HASHED)},
	{"show_check_sparse_distribution_log", TRAINER, SWITCH, IGNORED(HASHED)},
	{"check_sparse_distribution_batches", TRAINER, IGNORED(HASHED)},
	{"check_sparse_distribution_unbalance_degree", TRAINER, IGNORED(HASHED)},
	{"check_sparse_distribution_ratio", TRAINER, IGNORED(HASHED)},

	{"config", TRAINER, OPTION,
	 .text = "a file of name = value lines; the original's configuration in Python is refused, "
		 "and a program of yours takes its place: weft launch -- python3 train.py"},
	{"config_args", TRAINER,
	 REFUSED(NULL, "no configuration in Python is read; give settings as options, or train "
		       "with a program of yours: weft launch -- python3 train.py")},
	{"local", TRAINER, OPTION},
	{"num_passes", TRAINER, OPTION},
	{"start_pass", TRAINER, OPTION},
	{"init_model_path", TRAINER, OPTION},
	{"load_missing_parameter_strategy", TRAINER, OPTION},
	{"save_dir", TRAINER, OPTION},
	{"saving_period", TRAINER, OPTION},
	{"saving_period_by_batches", TRAINER, OPTION},
	{"save_only_one", TRAINER, OPTION},
	{"loadsave_parameters_in_pserver", TRAINER, SWITCH,
	 IGNORED("rows of tables are always kept by pservers, and saved to --save_dir")},
	{"log_period", TRAINER, OPTION},
	{"log_period_server", PSERVER, OPTION},
	{"dot_period", TRAINER, OPTION},
	{"show_parameter_stats_period", TRAINER,
	 IGNORED("no statistics of parameters are logged; weft export writes the values")},
	{"show_layer_stat", TRAINER, SWITCH, IGNORED("no statistics of layers are logged")},
	{"test_period", TRAINER, OPTION},
	{"test_all_data_in_one_period", TRAINER, SWITCH, IGNORED("every test uses all test rows")},
	{"average_test_period", TRAINER,
	 REFUSED("0", "every test uses the averages, where there are any; see --test_period")},
	{"test_pass", TRAINER,
	 REFUSED("-1", "saved passes are not tested again; the line of each pass has its test")},
	{"test_wait", TRAINER,
	 REFUSED("0", "saved passes are not tested again; the line of each pass has its test")},
	{"distribute_test", TRAINER, SWITCH,
	 IGNORED("trainer 0 tests, with the same result for any number of trainers")},
	{"model_list", TRAINER, REFUSED("", NO_PREDICTION)},
	{"predict_file", TRAINER, REFUSED("", NO_PREDICTION)},
	{"predict_output_dir", TRAINER, REFUSED("", NO_PREDICTION)},
	{"feat_file", TRAINER, REFUSED("", NO_PREDICTION)},
	{"prev_batch_state", TRAINER, SWITCH,
	 REFUSED("false", "no built-in model keeps state between batches; leave it out")},
	{"with_cost", TRAINER, SWITCH,
	 REFUSED("true", "every built-in model has a cost; leave it out")},
	{"beam_size", TRAINER, REFUSED("1", OF_GENERATION)},
	{"checkgrad_eps", TRAINER, IGNORED("only the original's --job=checkgrad used it")},
	{"job", TRAINER,
	 REFUSED("train", "weft train trains; rdma_bench measures, and each pass is tested")},
	{"use_gpu", BOTH, OPTION},
	{"gpu_id", TRAINER, IGNORED(NO_GPU)},
	{"parallel_nn", TRAINER, SWITCH, REFUSED("false", NO_GPU "; see --trainer_count")},
	{"allow_only_one_model_on_one_gpu", TRAINER, SWITCH, IGNORED(NO_GPU)},
	{"use_mkldnn", TRAINER, SWITCH, IGNORED("weft computes with OpenBLAS")},
	{"enable_parallel_vector", TRAINER, IGNORED("see --trainer_count for compute threads")},
	{"log_clipping", TRAINER, SWITCH, IGNORED("clipping is not logged")},
	{"log_error_clipping", TRAINER, SWITCH, IGNORED("clipping is not logged")},
	{"seed", TRAINER, OPTION},
	{"thread_local_rand_use_global_seed", TRAINER, SWITCH,
	 IGNORED("initial values depend on --seed, never on threads")},
	{"profile_signal", TRAINER, IGNORED("there is no built-in profiler; use perf record")},
	{"profile_data_file", TRAINER, IGNORED("there is no built-in profiler; use perf record")},
	{"python_path", TRAINER, IGNORED(NO_PYTHON)},
	{"python_bin", TRAINER, IGNORED(NO_PYTHON)},
	{"comment", BOTH, OPTION},
	{"diy_beam_search_prob_so", TRAINER, REFUSED("", OF_GENERATION)},
	{"rnn_use_batch", TRAINER, SWITCH, IGNORED("no built-in model is recurrent")},

	{"parameter_block_size", TRAINER,
	 IGNORED("tensors are cut by --slice_bytes, which changes no result")},
	{"parameter_block_size_for_sparse", TRAINER, IGNORED("the unit of a table is a row")},
	{"log_barrier_abstract", PSERVER, SWITCH, IGNORED(STRAGGLERS)},
	{"log_barrier_lowest_nodes", PSERVER, IGNORED(STRAGGLERS)},
	{"log_barrier_show_log", PSERVER, SWITCH, IGNORED(STRAGGLERS)},
	{"memory_threshold_on_load_data", TRAINER, IGNORED("the original ignored it as well")},
};

WF_STATIC_ASSERT(WF_ARRAY_COUNT(rows) <= WF_ORIGINALS_MAX, "memory for what was given");

static bool
is_of(const struct wf_original *row, const struct wf_originals *originals)
{
	return originals->serves ? row->of_pserver : row->of_trainer;
}

const struct wf_original *
wf_original_at(unsigned idx)
{
	return idx < WF_ARRAY_COUNT(rows) ? &rows[idx] : NULL;
}

const struct wf_original *
wf_original_find(const struct wf_originals *originals, const char *text, size_t text_bytes)
{
	for (size_t i = 0; originals != NULL && i < WF_ARRAY_COUNT(rows); i++) {
		const struct wf_option named = {.name = rows[i].name};
		if (rows[i].answer != WF_ORIGINAL_OPTION && is_of(&rows[i], originals) &&
		    wf_option_is_named(&named, text, text_bytes)) {
			return &rows[i];
		}
	}
	return NULL;
}

/* Whether two texts are the same value: the same truth, the same number, or the same text. */
static bool
is_same(const char *a, const char *b)
{
	static const struct wf_option truth = {.name = "truth", .type = WF_OPTION_BOOL};
	static const struct wf_option number = {.name = "number", .type = WF_OPTION_F64};
	bool true_a = false;
	bool true_b = false;
	double number_a = 0.0;
	double number_b = 0.0;

	if (wf_option_store(&number, a, &number_a) && wf_option_store(&number, b, &number_b)) {
		return !(number_a < number_b) && !(number_a > number_b);
	}
	if (wf_option_store(&truth, a, &true_a) && wf_option_store(&truth, b, &true_b)) {
		return true_a == true_b;
	}
	return strcasecmp(a, b) == 0;
}

enum weft_status
wf_original_accept(struct wf_options *options, const struct wf_original *original,
		   const char *value, const char *source)
{
	size_t idx = (size_t)(original - rows);

	WF_ASSERT(options->originals != NULL);
	WF_ASSERT(idx < WF_ARRAY_COUNT(rows));
	if (original->answer == WF_ORIGINAL_REFUSED &&
	    (original->harmless == NULL || !is_same(value, original->harmless))) {
		return wf_fail(WEFT_INVALID, "%s: %s=%.*s (%.*s), of the original: %s",
			       options->program, original->name, QUOTE, value,
			       (int)strcspn(source, "="), source, original->text);
	}
	options->originals->value[idx] = value;
	options->originals->source[idx] = source;
	return WEFT_OK;
}

/* Sets the option that stands for the flag, if the option's own variable did not. */
static enum weft_status
map_variable(struct wf_options *options, const struct wf_original *original, const char *value,
	     const char *variable)
{
	const struct wf_option *option =
		wf_option_find(options, original->to, strlen(original->to));

	WF_ASSERT(option != NULL);
	size_t idx = (size_t)(option - options->table);
	if (options->origin[idx] == WF_ORIGIN_ENV) {
		return WEFT_OK;
	}
	if (!wf_option_store(option, value, options->target)) {
		return wf_fail(WEFT_INVALID, "%s: %.*s=%.*s: must be a value of --%s",
			       options->program, (int)strcspn(variable, "="), variable, QUOTE,
			       value, option->name);
	}
	options->origin[idx] = WF_ORIGIN_ENV;
	options->env_name[idx] = variable;
	return WEFT_OK;
}

enum weft_status
wf_originals_read_environment(struct wf_options *options)
{
	enum weft_status st = WEFT_OK;

	for (size_t i = 0; options->originals != NULL && i < WF_ARRAY_COUNT(rows); i++) {
		char name[WF_OPTION_VARIABLE_BYTES];
		if (rows[i].answer == WF_ORIGINAL_OPTION || !is_of(&rows[i], options->originals)) {
			continue;
		}
		wf_option_variable("PADDLE_INIT_", rows[i].name, name);
		const char *value = getenv(name);
		if (value == NULL || value[0] == '\0') {
			continue;
		}
		const char *variable = value - strlen(name) - 1; /* in environ */
		st = wf_original_accept(options, &rows[i], value, variable);
		if (st == WEFT_OK && rows[i].answer == WF_ORIGINAL_MAPPED) {
			st = map_variable(options, &rows[i], value, variable);
		}
		if (st != WEFT_OK) {
			return st;
		}
	}
	return st;
}

unsigned
wf_originals_understood(const struct wf_options *options, char *out, size_t bytes)
{
	const struct wf_originals *given = options->originals;
	unsigned count = 0;
	size_t used = 0;

	WF_ASSERT(bytes > 0);
	out[0] = '\0';
	for (size_t i = 0; given != NULL && i < WF_ARRAY_COUNT(rows); i++) {
		if (given->value[i] == NULL) {
			continue;
		}
		bool is_mapped = rows[i].answer == WF_ORIGINAL_MAPPED;
		int n = snprintf(out + used, bytes - used, "%s%s=%.*s (%.*s) %s%s: %s",
				 count == 0 ? "" : "\n", rows[i].name, QUOTE, given->value[i],
				 (int)strcspn(given->source[i], "="), given->source[i],
				 is_mapped ? "is --" : "accepted, without effect",
				 is_mapped ? rows[i].to : "", rows[i].text);
		WF_ASSERT(n > 0);
		used = (size_t)n < bytes - used ? used + (size_t)n : bytes - 1;
		count++;
	}
	return count;
}

/* ---- the page ---- */

static void
print_flag(const struct wf_options *options, const struct wf_original *row, unsigned columns,
	   FILE *out)
{
	const struct wf_option *option = wf_option_find(options, row->name, strlen(row->name));
	char answer[WF_OPTION_TEXT_BYTES];
	char text[WF_ERROR_BYTES];
	const char *why = row->text;

	if (row->answer == WF_ORIGINAL_OPTION) {
		WF_ASSERT(option != NULL || why != NULL);
		snprintf(answer, sizeof(answer), "an option");
		why = why != NULL ? why : option->means != NULL ? option->means : option->help;
	} else if (row->answer == WF_ORIGINAL_IGNORED) {
		snprintf(answer, sizeof(answer), "accepted, without effect");
	} else if (row->answer == WF_ORIGINAL_MAPPED) {
		snprintf(answer, sizeof(answer), "mapped to --%s", row->to);
	} else if (row->harmless == NULL || row->harmless[0] == '\0') {
		snprintf(answer, sizeof(answer), "refused");
	} else {
		snprintf(answer, sizeof(answer), "refused unless it is %s", row->harmless);
	}
	fprintf(out, "  --%s: %s\n", row->name, answer);
	size_t bytes = strlen(why);
	snprintf(text, sizeof(text), "%s%s", why, why[bytes - 1] == '.' ? "" : ".");
	wf_help_print_text(out, columns, TEXT_INDENT, text);
}

void
wf_originals_print(const struct wf_options *options, FILE *out)
{
	unsigned columns = wf_help_columns(out);

	WF_ASSERT(options->originals != NULL);
	fprintf(out, "Flags of the original as %s understands them:\n", options->program);
	for (size_t i = 0; i < WF_ARRAY_COUNT(rows); i++) {
		if (is_of(&rows[i], options->originals)) {
			print_flag(options, &rows[i], columns, out);
		}
	}
}
