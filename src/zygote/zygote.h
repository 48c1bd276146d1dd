/* SPDX-License-Identifier: MIT */
/*
 * Zygotes: warmed interpreters that fork keepers.
 *
 * A zygote is a program of ours, started in the template root with an empty environment. It
 * imports only what is installed on the host, reads nothing that a tenant wrote, has no
 * privilege over the host (space.h), and on command forks a keeper (keeper.h) whose sandboxes
 * begin with the interpreter ready. All of them share the zygote's address layout and hash
 * seed; so a generation ends after a number of runs or minutes, or when packages were
 * installed. The next one is started then, and serves as soon as it is warm; slots of an older
 * one are closed when they are free.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/plan_parts.h"
#include "core/zygote_programs.h"
#include "walls/keeper.h"

enum {
    ZYGOTE_FD = 3,           /* the zygote's end */
    ZYGOTE_FD_RUNTIMES = 4,  /* the directory of WebAssembly runtimes, for those that have one */
    ZYGOTE_RUNS_MAX = 20000, /* of one generation */
    ZYGOTE_SECONDS_MAX = 3600,
    ZYGOTE_LOOK_S = 2, /* between two looks at the installed packages */
};

/* launcher -> zygote, with descriptors: keeper socket, /dev, the procs files that exist. */
struct zygote_msg {
    uint32_t slot;
    struct keeper_host host;
    uint32_t devices; /* behind the socket comes a mount for /dev */
    uint32_t procs_mask;
};

struct zygote {
    bool installed;
    int sock; /* owned: -1 when not running */
    int next; /* owned: the coming generation, until it says that it is warm; or -1 */
    unsigned generation, runs;
    unsigned maps;    /* that it was mapped with */
    uint64_t born_us; /* monotonic: a clock that is set does not matter */
    int64_t packages; /* when they had last changed, then */
};

struct zygotes {
    int mntns;                     /* borrowed */
    uid_t uid_first;               /* of the host users of zygotes; 0: rootless */
    char map[SPACE_MAP_MAX];       /* host users of sandboxes, as uid_map has them */
    unsigned maps;                 /* that there were so far */
    int runtimes;                  /* owned: directory of WebAssembly runtimes, or -1 */
    int installed[PACKAGE_TRACES]; /* owned: where installing a package leaves a trace, or -1 */
    uint64_t looked_us;
    int64_t packages; /* when they last changed, as of then */
    struct zygote of[TEMPLATE_COUNT];
};

/* Looks for the programs in a directory of the host, and for what they run in another ("": no
 * WebAssembly). Missing ones are an error only when used. They are executed from the copies in
 * the template root (root.h): a tenant's /proc/self/exe leads there and not to a file of the
 * host. */
void zygotes_init(struct zygotes *z, int directory, const char *runtimes);
/* More host users are to be mapped: no running zygote has them. */
void zygotes_map_anew(struct zygotes *z, unsigned maps);
bool zygotes_has(const struct zygotes *z, enum plan_template t);

/* A keeper from the current generation; starts one when none runs. */
must_check int zygotes_fork(struct zygotes *z, enum plan_template t, const struct keeper *k,
                            unsigned *ret_generation, struct err *e);
/* The generation of a slot without a zygote: it ends when packages change, because what is
 * installed later may stay unseen in it (apart.h). */
unsigned zygotes_packages(const struct zygotes *z);
/* Counts a run. True: slots of that generation should not serve again. */
bool zygotes_outdated(struct zygotes *z, enum plan_template t, unsigned generation);
