/* SPDX-License-Identifier: MIT */
/*
 * A connection to the daemon for what is no request and answer: bytes both ways, by libcurl, which
 * also does TLS. Nothing waits but the opening.
 */
#pragma once

#include <poll.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"
#include "cli/daemon_at.h"
#include "cli/http.h"

struct connected;

must_check int connected_open(const struct daemon_at *at, struct connected **ret, struct err *e);
void connected_close(struct connected *c); /* NULL is fine */
int connected_fd(const struct connected *c);
/* Bytes, 0 at the end, -EAGAIN (wait for the descriptor), -EIO. */
must_check ssize_t connected_read(struct connected *c, void *p, size_t room);
must_check ssize_t connected_write(struct connected *c, const void *p, size_t n);
/* All of it, waiting. -EIO */
must_check int connected_write_all(struct connected *c, const void *p, size_t n);
/* Appends the lines of a head that every request has: Host, and Authorization if there is a secret.
 */
void connected_lines(const struct daemon_at *at, struct buf *head);
/* What stands between the authority of the daemon's URL and the path of a request: mostly "". */
const char *connected_prefix(const struct daemon_at *at);
