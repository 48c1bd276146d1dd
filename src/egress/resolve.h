/* SPDX-License-Identifier: MIT */
/* Names become addresses, on threads: the resolver of the C library waits. */
#pragma once

#include <sys/queue.h>
#include <sys/socket.h>

#include "core/egress_policy.h"

enum { RESOLVE_MAX = 8, RESOLVE_THREADS = 4 };

struct address {
    struct sockaddr_storage at;
    socklen_t n;
};

struct lookup {
    STAILQ_ENTRY(lookup) link;
    char host[EGRESS_NAME_MAX + 1];
    struct address v[RESOLVE_MAX];
    size_t n; /* 0: it leads nowhere */
};

struct resolver;
/* `file` is like /etc/hosts and asked first; "": none. */
must_check int resolver_open(const char *file, struct resolver **ret, struct err *e);
/* Starts the threads, behind whatever walls there are by then. */
must_check int resolver_start(struct resolver *r, struct err *e);
/* Readable when resolver_take() has something. */
int resolver_fd(const struct resolver *r);
/* Borrowed until it is taken back. */
void resolver_ask(struct resolver *r, struct lookup *l);
struct lookup *resolver_take(struct resolver *r); /* NULL: nothing more now */
