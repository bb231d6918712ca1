/* SPDX-License-Identifier: Apache-2.0 */
/* fake_world: the fake in a simulated world: its clock is virtual, and each process has the device
 * for itself. Thread: the world's. */
#pragma once

#include "tests/double/sim/world.h"

/* The fake lives there until fake_live_in or fake_reset says something else. */
void fake_world_enter(struct wf_world *world);
