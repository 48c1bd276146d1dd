/* SPDX-License-Identifier: MIT */
/*
 * Where V8's heap goes in a zygote.
 *
 * V8 asks for each quarter megabyte of heap at a random address. Every one then
 * has page tables of its own, which each fork fills and each exit frees. The
 * library is preloaded, and its mmap() leaves the place to the kernel, which
 * puts one near the other. The kernel's choice is random as well, once for all.
 *
 * Speedup `near-heap` of -Dspeedups. Without it a trivial run takes 6 % more CPU.
 */
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXPORTED(name) __asm__(name) __attribute__((visibility("default")))

enum { CHUNK_MAX = 4 << 20 }; /* what is larger is reserved once, and may depend on its place */

/* Programs call either, and for us they are the same. */
void *place(void *at, size_t n, int protection, int flags, int fd, int64_t offset) EXPORTED("mmap");
void *place_64(void *at, size_t n, int protection, int flags, int fd, int64_t offset)
    EXPORTED("mmap64");

void *place(void *at, size_t n, int protection, int flags, int fd, int64_t offset)
{
    if ((flags & (MAP_ANONYMOUS | MAP_FIXED | MAP_FIXED_NOREPLACE)) == MAP_ANONYMOUS &&
        n <= CHUNK_MAX)
        at = NULL;
    return (void *)(uintptr_t)syscall(SYS_mmap, at, n, protection, flags, fd, offset);
}

void *place_64(void *at, size_t n, int protection, int flags, int fd, int64_t offset)
{
    return place(at, n, protection, flags, fd, offset);
}
