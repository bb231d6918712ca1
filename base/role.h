/* SPDX-License-Identifier: Apache-2.0 */
/* role: which member of a job this process is, as its launcher says: WEFT_ROLE ("pserver" or
 * "trainer") and WEFT_RANK (its number among those, from 0). */
#pragma once

/* Name the process "trainer 0" in the system's list of processes, if its launcher says that it has
 * this role. Without a launcher, and on any thread but the main one, nothing changes. */
void wf_role_name_process(const char *role);
