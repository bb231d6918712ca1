/* SPDX-License-Identifier: Apache-2.0 */
/* metrics: a picture in the text format of Prometheus, version 0.0.4. Its names: docs/observe.md.
 * No label grows with steps or keys: there are lanes, trainers and tables. Thread: the caller's. */
#pragma once

#include <stdio.h>

#include "status/summary.h"

#define WF_METRICS_TYPE "text/plain; version=0.0.4; charset=utf-8"

void wf_metrics_write(const struct wf_picture *picture, const struct wf_summary *summary,
		      FILE *out);
