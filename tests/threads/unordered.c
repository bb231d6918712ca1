/* SPDX-License-Identifier: Apache-2.0 */
/* unordered: read without an order. ThreadSanitizer takes a read of a descriptor to come after
 * every write to it, so two threads that wake each other through an eventfd would be in order
 * whatever the atomics beside it say. Linked into a test, this read takes the place of the one that
 * ThreadSanitizer looks at. Thread: any. */
#include <sys/syscall.h>
#include <unistd.h>

ssize_t
read(int fd, void *buffer, size_t bytes)
{
	return syscall(SYS_read, fd, buffer, bytes);
}
