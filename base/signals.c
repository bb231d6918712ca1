/* SPDX-License-Identifier: Apache-2.0 */
/* signals: see signals.h. */
#include "base/signals.h"

#include <stdio.h>

#include "base/assert.h"

void
wf_signals_that_stop(sigset_t *out)
{
	struct sigaction hangup;
	sigemptyset(out);
	sigaddset(out, SIGINT);
	sigaddset(out, SIGTERM);
	if (sigaction(SIGHUP, NULL, &hangup) == 0 && hangup.sa_handler != SIG_IGN) {
		sigaddset(out, SIGHUP);
	}
}

void
wf_signal_name(int signal_number, char out[WF_SIGNAL_NAME_BYTES])
{
	static const struct {
		int number;
		const char *name;
	} known[] = {{SIGHUP, "SIGHUP"},   {SIGINT, "SIGINT"},   {SIGQUIT, "SIGQUIT"},
		     {SIGTERM, "SIGTERM"}, {SIGUSR1, "SIGUSR1"}, {SIGUSR2, "SIGUSR2"},
		     {SIGALRM, "SIGALRM"}, {SIGXCPU, "SIGXCPU"}};
	(void)snprintf(out, WF_SIGNAL_NAME_BYTES, "signal %d", signal_number % 1000);
	for (size_t i = 0; i < WF_ARRAY_COUNT(known); i++) {
		if (known[i].number == signal_number) {
			(void)snprintf(out, WF_SIGNAL_NAME_BYTES, "%s", known[i].name);
		}
	}
}
