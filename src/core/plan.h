/* SPDX-License-Identifier: MIT */
/*
 * A plan says completely what must run: argv, environment, directory, files,
 * limits, streams. It says nothing of containment; that is the jail's business.
 * Everything is borrowed and must stay until the run has been started.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/limits.h"
#include "core/plan_parts.h"

struct bytes {
    const char *p;
    size_t n;
};

/* What a fenced plan may do to what is at a path, or below it. */
enum { PLAN_MODIFY = 1, PLAN_CREATE = 2, PLAN_DELETE = 4, PLAN_EVERYTHING = 7 };
/* Among those: a file that is there already, with its mode. Only the rights are meant. */
enum { PLAN_THERE = 8 };

/* Host directories whose files are seen inside, and read only when somebody opens them. */
struct plan_lazy {
    int dirs[PLAN_LAZY_MAX];
    size_t n;
    int list;      /* a file with rows */
    uint64_t rows; /* of them */
};

struct plan_file {
    const char *path; /* absolute, as seen inside; parents are created; a directory ends in '/' */
    struct bytes content;
    uint32_t mode;
    uint32_t rights; /* of a fenced plan */
};

/* A size of a terminal, both from 1 on, as one number. */
static inline uint32_t plan_terminal(uint16_t columns, uint16_t rows)
{
    return (uint32_t)rows << 16 | columns;
}

struct plan {
    enum plan_template template;
    const char *const *argv; /* NULL-terminated; argv[0] is an absolute path. The fallback when
                                a warmed interpreter does not exec */
    const char *carried;     /* the one of argv that a warmed interpreter has already, and that is
                                long; NULL: none */
    const char *const *envp; /* complete: nothing is inherited */
    const char *cwd;
    const struct plan_file *files;
    size_t files_n;
    struct bytes frames; /* written to the program's descriptor 3 (core/frame.h) */
    struct bytes input;  /* standard input; then end of file, unless it stays open */
    bool input_open;     /* more may come while the program runs */
    uint32_t terminal;   /* not 0: plan_terminal(): its streams are a terminal of that size, made
                            inside; only in a persistent sandbox */
    struct limits limits;
    const char *workspace;    /* NULL: a fresh one; else the name of a kept workspace */
    const char *dirs;         /* "app/data": directories at the top that are to be writable beside
                                 /workspace; the scan then names files from the top. NULL: none */
    const char *dependencies; /* a directory of the shelf (store/shelf.h), mounted read-only at
                                 PLAN_DEPENDENCIES; NULL: none */
    const struct plan_lazy *lazy; /* NULL: none. The scan then names files from the top */
    const struct net_gate *gate;  /* core/port_net.h; NULL: none. Copied */
    bool named;    /* argv[0] is the file, the program's own arguments begin with argv[1] */
    bool fenced;   /* nothing may be written but where the rights of a file or directory say so, as
                      far as the kernel can refuse it; the program is not warmed */
    bool compiles; /* the first frame of all is what its source text was compiled to */
    bool compiled; /* that is known, and among its frames */
    bool scan_all; /* look at the workspace afterwards however it ended, hidden files included */
};
