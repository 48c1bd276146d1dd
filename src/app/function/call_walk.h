/* SPDX-License-Identifier: MIT */
/* Walking through a mounted directory: what loading and lending have in common. Private to both. */
#pragma once

#include <sys/stat.h>

#include "app/function/call_mount.h"

struct walk {
    struct call_tree *tree;
    struct call_request *request;
    size_t given_n; /* files that came with the request; they are first */
    const struct mount_dir *dir;
    int root;
    uint64_t room, total;
    struct buf path;   /* inside */
    size_t base;       /* bytes of the mount's own path and a slash */
    bool on_the_way;   /* in a directory that may not be seen itself, see mount_shows() */
    size_t added;      /* files so far */
    dev_t dev;         /* lent: of the directory */
    uint64_t steps;    /* left to ask the rules, see function/glob.h */
    const char *unfit; /* why it cannot be lent after all; NULL: nothing is in the way */
    struct err *e;
};

/* ---- call_mount.c ---- */

/* Takes the text, also when it fails. */
must_check int walk_keep(char ***list, size_t *n, char *text, struct err *e);
/* One more file; there is a limit to them. */
must_check int walk_add(struct walk *w, const struct call_file *f);
/* Is there room for a file of that size, as the request says? */
bool walk_takes(struct walk *w, uint64_t size);

/* ---- call_lend.c: -1 with w->unfit set: it is to be copied instead ---- */

must_check int walk_begin(struct walk *w);         /* a mount */
must_check int walk_enter(struct walk *w, int fd); /* a directory of it */
must_check int walk_lend(struct walk *w);          /* a file of it */
