/* SPDX-License-Identifier: Apache-2.0 */
/* slow_clock: loaded before all other libraries (LD_PRELOAD), it lets time pass ten thousand times
 * slower, so that work that depends on the clock does not count as work of an exchange, however
 * slow the machine is. Nothing in such a job waits for the clock. Thread: any. */
#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SLOWER 10000

int
clock_gettime(clockid_t id, struct timespec *out)
{
	static _Atomic int64_t began_ns;
	int64_t expected = 0;
	if (syscall(SYS_clock_gettime, id, out) != 0) {
		return -1;
	}
	int64_t now_ns = (int64_t)out->tv_sec * 1000000000 + out->tv_nsec;
	if (id != CLOCK_MONOTONIC) {
		return 0;
	}
	/* R: whoever is first; the value is all there is to it. */
	atomic_compare_exchange_strong_explicit(&began_ns, &expected, now_ns, memory_order_relaxed,
						memory_order_relaxed);
	int64_t first_ns = atomic_load_explicit(&began_ns, memory_order_relaxed);
	now_ns = first_ns + (now_ns - first_ns) / SLOWER;
	out->tv_sec = now_ns / 1000000000;
	out->tv_nsec = now_ns % 1000000000;
	return 0;
}
