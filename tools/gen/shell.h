/* SPDX-License-Identifier: Apache-2.0 */
/* shell: writes words of a command so that a POSIX shell reads back the same bytes. Thread: any. */
#pragma once

#include <stdio.h>

/* A word; it stands between single quotes unless all its characters are harmless. */
void wf_shell_word(FILE *out, const char *text);
