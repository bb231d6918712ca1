/* SPDX-License-Identifier: Apache-2.0 */
/* toy: a transport backend over two pipes. Thread: any; constant. */
#pragma once

#include "transport/ops.h"

extern const struct wf_backend wf_backend_toy;
