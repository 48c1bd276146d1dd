/* SPDX-License-Identifier: MIT */
/*
 * Descriptors: made close-on-exec, passed between processes, opened beneath a directory.
 *
 * Leaf helpers: 0 (or a descriptor, or a byte count) on success, -errno on failure. Nothing here
 * allocates, logs or links anything else, so that the launcher and init can use all of it.
 */
#pragma once

#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/cleanup.h"

/* For a directory that is only to be passed through, or looked at. */
#ifdef O_PATH
#define FD_LOOK O_PATH
#else
#define FD_LOOK O_RDONLY
#endif

enum { FD_PASS_MAX = 32 }; /* descriptors in one message */

/* A pair that messages go through, each whole or not at all, and whose end is seen. */
must_check int fd_message_pair(int ret[2]);

/*
 * One message with descriptors. The descriptors stay the caller's. An empty message is -EINVAL: its
 * reader could not tell it from the end. Full socket: -EAGAIN if non-blocking. Never SIGPIPE.
 */
must_check int fd_send(int sock, const void *msg, size_t n, const int *fds, size_t fds_n);

/*
 * One message. *inout_fds_n is the room in fds, and afterwards how many came; all are close-on-exec
 * and the caller's. Returns its bytes, 0 at the end, or -errno. More descriptors than there is
 * room for, lost descriptors or a message longer than max: everything that came is closed and the
 * answer is -EPROTO. On any failure or end *inout_fds_n is 0. fds may be NULL if the room is 0;
 * inout_fds_n may be NULL, which means the same.
 */
must_check ssize_t fd_recv(int sock, void *msg, size_t max, int *fds, size_t *inout_fds_n);

/* A message of exactly n bytes with exactly fds_n descriptors: 1, 0 at the end, or -errno (-EPROTO
 * for anything else, after closing what came). */
must_check int fd_recv_exact(int sock, void *msg, size_t n, int *fds, size_t fds_n);

/* Close-on-exec from birth. type: SOCK_STREAM, SOCK_SEQPACKET, ... */
must_check int fd_socketpair(int type, int ret[2]);
must_check int fd_pipe(int ret[2]);
must_check int fd_dup(int fd);              /* close-on-exec, 3 or higher */
must_check int fd_move(int fd, int number); /* a copy there, close-on-exec; not fd itself */
must_check int fd_nonblock(int fd, bool on);
must_check int fd_nonblock_new(int fd);  /* of ours alone, and without any other flag yet */
must_check int fd_close_from(int first); /* that one and all above it */
must_check int fd_close_range(int first, int last);
must_check int fd_cloexec_from(int first);
void fd_close_all(int *fds, size_t n); /* closes what is >= 0, leaves -1 */

/* For blocking descriptors (a non-blocking one may answer -EAGAIN half-way). EINTR is retried. */
must_check int fd_write_all(int fd, const void *p, size_t n);
must_check ssize_t fd_read_full(int fd, void *p, size_t n); /* fewer only at end of file */

/*
 * Opens path below root and nowhere else: no "..", absolute path or link leads out, no magic link
 * is followed (Linux: openat2). Attempts to leave give -EXDEV; links give -ELOOP where links are
 * not allowed. flags are open(2)'s; O_CLOEXEC and O_NOCTTY are added.
 *
 * Where the kernel has no openat2, fd_open_beneath_walk() does it component by component; it is
 * stricter and follows no link at all, nor "..".
 */
enum fd_links { FD_LINKS_INSIDE, FD_LINKS_NEVER };
must_check int fd_open_beneath(int root, const char *path, int flags, mode_t mode,
                               enum fd_links links);
must_check int fd_open_beneath_walk(int root, const char *path, int flags, mode_t mode);

/* Renames in a directory, unless something of that name is there: -EEXIST. */
must_check int fd_rename_new(int dir, const char *from, const char *to);
