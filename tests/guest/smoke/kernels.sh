#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The kernels' golden digest on a CPU without AVX-512. $KERNELS_FORMS is the test program.
# shellcheck source=lib.sh
. "${0%/*}/lib.sh"

name=the_bits_are_the_same_in_every_build
"$KERNELS_FORMS" $name 2>&1 | tee kernels.log
grep -q "OK ] $name" kernels.log || fail "$name did not pass"
