/* SPDX-License-Identifier: Apache-2.0 */
/* signals: see signals.h. */
#include "base/signals.h"

#include <stdbool.h>
#include <stdio.h>
#include <time.h>

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

enum wf_stop_ask
wf_stop_asked_within(_Atomic uint64_t *first, int signal_number, uint64_t echo_ms)
{
	struct timespec now = {0};
	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	uint64_t now_ms = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
	/* Never 0, because no signal number is 0. */
	uint64_t asked = now_ms << 8 | (uint8_t)signal_number;
	uint64_t before = 0;
	/* Relaxed: nothing but the number is published. */
	if (atomic_compare_exchange_strong_explicit(first, &before, asked, memory_order_relaxed,
						    memory_order_relaxed)) {
		return WF_STOP_FIRST;
	}
	bool same = (uint8_t)before == (uint8_t)signal_number;
	return same && now_ms - (before >> 8) < echo_ms ? WF_STOP_ECHO : WF_STOP_AGAIN;
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
