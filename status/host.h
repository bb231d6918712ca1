/* SPDX-License-Identifier: Apache-2.0 */
/* host: whether the Host of a request is a name of this server. A page of a stranger whose name
 * leads here by a change of DNS has another one, and learns nothing. Thread: any; pure. */
#pragma once

#include <stdbool.h>

#include "base/url.h"

/* `host`: the header, NULL if there is none. `listen`: as it was given, with the port that is
 * bound. `own_name`: of the machine. A numeric address is nobody's to change, and is accepted where
 * the server listens for other hosts. */
bool wf_status_host_is_ours(const char *host, const struct wf_host *listen, bool is_loopback,
			    const char *own_name);
