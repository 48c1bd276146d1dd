/* SPDX-License-Identifier: MIT */
/*
 * Kept workspaces: directories right below one root that outlive the sandboxes using them.
 *
 * As root each one belongs to a host user of its own, for as long as it exists: its owner is the
 * record of that. A sandbox that uses it runs as that user, so what it leaves behind is out of
 * reach of every other sandbox even where a mount would not keep them apart.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "core/plan_parts.h"

struct users; /* users.h */

enum { KEPT_PATH_MAX = 4096 };

/* A directory of the host. */
struct kept_root {
    char path[KEPT_PATH_MAX]; /* "": there is none */
    dev_t dev;                /* what was there when we were started: nothing else */
    ino_t ino;                /* may be put in its place */
    int dir;                  /* owned: -1 until entered */
};

struct kept {
    struct kept_root root; /* of the workspaces */
    struct kept_root own;  /* is itself the workspace PLAN_WORKSPACE_OWN */
    struct users *users;   /* borrowed; NULL: rootless, or plain */
    uid_t next;            /* of our range; 0: not known yet */
    unsigned gone;         /* how many were discarded */
    bool rootless;         /* there is one user only */
    bool plain;            /* no mounts: a sandbox gets the directory itself, */
    uid_t user;            /* and all belong to that user: the daemon's */
    gid_t group;
};

/* After kept_init(): see `plain`. */
void kept_be_plain(struct kept *k, gid_t group);
/* Before any namespace is entered. A root that is missing is an error only when it is used. */
void kept_init(struct kept *k, const char *path, const char *own, uid_t daemon, bool rootless);
/* The range of users to begin with: that of the workspaces which are there (ret_there), or one that
 * depends on their directory alone, so that those of two daemons rarely meet. */
unsigned kept_range(const struct kept *k, const struct users *any, bool *ret_there);
/* The owner of the own workspace, if it is to stay his, is mapped before anything is started. */
void kept_add_stranger(const struct kept *k);
/* In the launcher's own mount namespace, without which nothing can be mounted from it. */
void kept_enter(struct kept *k);

/*
 * Opens the workspace of that name, made when there is none: a detached mount, to be moved to its
 * place, and the user it belongs to (0: rootless). The name is checked as if it came from an enemy.
 *
 * The own one was made by the operator. One that belongs to an ordinary user of the host stays his,
 * and the sandbox runs as him; root's and the daemon's is given to a user of ours.
 */
must_check int kept_open(struct kept *k, const char *name, size_t name_max, int *ret_tree,
                         uid_t *ret_uid, struct err *e);

/* Opens the workspace of that name to look at it: a descriptor, or -errno (-ENOENT: there is none).
 */
must_check int kept_look(const struct kept *k, const char *name, size_t name_max);

/* Every workspace that is on its way out is called so. */
#define KEPT_GONE ".gone-"
enum { KEPT_GONE_MAX = 32 };
/*
 * Gives a workspace another name, one of KEPT_GONE, under which no sandbox can have it. Only one
 * that kept_open() has made. 0 or -errno.
 */
must_check int kept_discard(struct kept *k, const char *name, size_t name_max,
                            char ret_gone[KEPT_GONE_MAX]);

/*
 * Opens "owner/name", which must be there, to be mounted and only read. No link is followed on the
 * way, and whatever is in it can neither raise privileges nor be a device.
 */
must_check int kept_open_read_only(const struct kept *k, const char *name, size_t name_max,
                                   int *ret_tree, struct err *e);

/* A directory as a detached mount, without devices and set-id programs. Or -errno. */
must_check int kept_mount(int dir, bool read_only);
