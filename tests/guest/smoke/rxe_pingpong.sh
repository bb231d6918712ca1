#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Queue pairs that are connected by hand, with GIDs of both address families.
# shellcheck source=lib.sh
. "${0%/*}/lib.sh"

pingpong_between 18601 rxe1 rxe2 1 1000
pingpong_between 18602 rxe1 rxe2 2 1000
