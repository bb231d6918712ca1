/* SPDX-License-Identifier: Apache-2.0 */
/* The help of the training program. Thread: the caller's. */
#include "trainer/program/command.h"
#include "trainer/program/kind.h"

void
wf_train_command_help(const struct wf_train_command *command, FILE *out)
{
	const struct wf_kind *kind = NULL;

	fprintf(out, "weft train MODEL [options]\n\n"
		     "Train a built-in model, as one trainer of a job. Trainer 0 prints a line per "
		     "pass:\n"
		     "  pass 0 cost 12.34 test 15.6 digest 9f86d081884c7d65\n"
		     "and, of ngram and ctr, at the end how good it is beside its baselines.\n\n"
		     "Examples:\n"
		     "  weft train linear --pservers=10.0.0.1,10.0.0.2 --num_gradient_servers=2 "
		     "--trainer_id=0\n"
		     "  weft train mlp --sequential --num_passes=5\n"
		     "  weft train mlp --sequential --num_passes=5 --save_dir=out\n"
		     "  weft train mlp --sequential --num_passes=9 --save_dir=out --start_pass=5\n"
		     "  weft train mlp --sequential --format=idx --num_passes=3 --hidden=256\n"
		     "  weft train linear --closed_form\n"
		     "  weft train ctr --sequential --format=libsvm --data=a9a\n\n"
		     "Models:\n");
	for (unsigned i = 0; (kind = wf_kind_at(i)) != NULL; i++) {
		fprintf(out, "  %-8s %s\n", kind->name, kind->summary);
	}
	fprintf(out, "\nOptions:\n");
	wf_options_print_help(&command->options, out);
	fprintf(out, "\nExit codes: 0; 64 usage; 65 bad data; 69 peer unavailable or lost, or "
		     "another job saves to save_dir;\n70 internal; "
		     "74 input or output, a pass that could not be saved too; 75 try again; 77 not "
		     "permitted\n");
}
