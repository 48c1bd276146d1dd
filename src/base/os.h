/* SPDX-License-Identifier: MIT */
/* Small functions over system calls of Linux, for everything that is no jail. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>

#include "base/cleanup.h"

/* Close-on-exec and non-blocking from birth. -1: errno. */
must_check int os_accept(int listener);
must_check int os_socket(int family, int type, int protocol);
/* A file without a name, in memory. -1: errno. */
must_check int os_memory_file(const char *name);
/* A descriptor that another thread makes readable. -1: errno; both may be the same. */
must_check int os_wake_open(int *ret_read, int *ret_write);
void os_wake(int write_fd);
void os_wake_take(int read_fd);

/* More room in a pipe, if there can be more. */
void os_pipe_grow(int fd, int size);
/* Something to pass bytes through on their way from socket to socket. -errno */
must_check int os_tube(int ret[2]);
/* From a socket into a tube, or out of one into a socket: bytes moved, 0 at the end, -1: errno.
 * Neither waits. */
must_check ssize_t os_move(int from, int to, size_t most);
/* Bytes of a non-blocking pipe that nobody wants. null: /dev/null. As read(2). */
must_check ssize_t os_discard(int fd, int null, size_t most);

/* A peer that no longer confirms what it was sent is given up after that time. */
void os_patience(int socket, int ms);
/* What a file that is changed now gets for a time. */
struct timespec os_file_clock(void);
/* Its first n bytes, fewer when it ends before; a file that shrinks meanwhile is as long as it then
 * is. -errno */
must_check ssize_t os_read_start(int fd, char *p, size_t n);
/* What was written to a file may go to its disk, without waiting for it. */
void os_write_back(int fd);
/* A file below a directory as it is, and whether we may read it, by looking alone: nothing is
 * opened, so nothing can happen. No link is followed. -errno */
must_check int os_look_beneath(int dir, const char *path, struct stat *ret, bool *ret_readable);
/* Is it on a file system that an overlay can show, read only for whom it is meant (lazy.h)? */
bool os_can_be_lent(int dir);
/* That we may use; at least 1. */
size_t os_processors(void);
/* Zeroed memory that is never given back; much of it in large pages, where there are any. NULL:
 * errno. */
void *os_memory(size_t n);
/* So much of what malloc gave out and got back stays with us, for who asks next. */
void os_heap_keep(size_t n);
/* Memory of malloc() whose content nobody needs any more, before it can be freed. */
void os_give_back(char *p, size_t n);
/* The path of a program that is installed beside the one we were started from. -errno */
must_check int os_beside(const char *name, char *out, size_t n);
