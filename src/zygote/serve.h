/* SPDX-License-Identifier: MIT */
/* The zygote's end of zygote.h. */
#pragma once

#include "init/helper.h"
#include "init/init.h"
#include "walls/keeper.h"
#include "zygote/hot.h"

/* What the copies of a warmed interpreter are. */
struct zygote_host {
    struct init_host first;
    const struct helper_host *warm; /* borrowed; not NULL: they are warm processes instead */
    pid_t (*fork)(void);            /* NULL: fork() */
    const struct hot *hot;          /* borrowed: what each of them writes to */
    struct copies copies;           /* set by zygote_serve() */
};

/* Says that it is warm, waits for commands and forks; returns only in a new keeper, with *ret
 * filled. */
void zygote_serve(const struct filters *filters, struct zygote_host *host, struct keeper *ret);
