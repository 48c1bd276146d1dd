/* SPDX-License-Identifier: MIT */
/* The daemon's side of the launcher: start it, then talk in struct launch_msg. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "wire/launch.h"

struct launch_conf {
    const char *directory;    /* of our programs */
    const char *workspaces;   /* directory of kept workspaces; "" for none */
    const char *own;          /* directory that is PLAN_WORKSPACE_OWN itself; "" for none */
    const char *dependencies; /* directory of the sessions' dependencies; "" for none */
    const char *netns;        /* "pool" or "fresh" */
    const char *wasm;         /* directory of WebAssembly runtimes; "": there is no such engine */
    const char *jail;         /* "native", "bwrap" or "subprocess" */
    uint32_t uid_base;        /* host users of sandboxes, as root */
    uid_t user;               /* what the daemon will become */
    gid_t group;
};

enum { LAUNCH_UID_BASE = 0x60000000 };

/* Starts the launcher with an empty environment and waits for its HELLO (bounded). */
must_check int launch_start(const struct launch_conf *c, int *ret_sock, pid_t *ret_pid,
                            struct launch_msg *ret_hello, struct err *e);
/* One message; its descriptors go into fds. 1, 0 when nothing is there, -errno (-EPIPE: the end).
 */
must_check int launch_receive(int sock, struct launch_msg *ret, int fds[LAUNCH_FDS_STARTED],
                              size_t *ret_n);
