/* SPDX-License-Identifier: Apache-2.0 */
/* submit: the options of `paddlecloud submit`, the original's client of its cloud, as those of
 * `weft gen`. Thread: main. */
#pragma once

#include "tools/gen/job.h"
#include "tools/launch/args.h"

struct wf_options;

/**
 * Reads the arguments in front of "--": -name and --name of the client become options of weft gen,
 * --env and --volume, which may be given several times, go to the job, and the rest is kept.
 * @param argv argv[0] is kept
 * @return WEFT_OK; WEFT_INVALID: an option of the client has no meaning any more, and the text says
 *         what replaces it; a value is missing or wrong
 */
enum weft_status wf_gen_read_arguments(const struct wf_options *options, int argc,
				       char *const *argv, struct wf_args *out,
				       struct wf_gen_job *job) WEFT_MUST_CHECK;
