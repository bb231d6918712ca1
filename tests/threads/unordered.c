/* SPDX-License-Identifier: Apache-2.0 */
/* unordered: read without an order. ThreadSanitizer assumes that a read of a descriptor comes after
 * every write to it, so two threads that wake each other through an eventfd would be in order
 * whatever the atomics beside it do. Linked into a test, this read replaces the one that
 * ThreadSanitizer intercepts. Thread: any. */
#include <sys/syscall.h>
#include <unistd.h>

ssize_t
read(int fd, void *buffer, size_t bytes)
{
	return syscall(SYS_read, fd, buffer, bytes);
}
