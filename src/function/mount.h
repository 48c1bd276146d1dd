/* SPDX-License-Identifier: MIT */
/*
 * A mount as it was asked for: which host directories appear where, how they are loaded, what may
 * be done to them and whether changes go back. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "core/shape.h"
#include "function/glob.h"
#include "function/perm.h"

enum {
    MOUNT_DIRS_MAX = 16,
    MOUNT_INCLUDE_MAX = 64,
    MOUNT_ANSWERS_MAX = 64,
    MOUNT_HOST_MAX = 1024, /* bytes of a host directory's path */
};

enum mount_links { LINKS_NEVER, LINKS_INSIDE };
enum mount_load { LOAD_EAGER, LOAD_LAZY, LOAD_EXPLICIT };
enum mount_error { ERROR_CONTINUE, ERROR_ABORT, ERROR_ROLLBACK };

/* What happens to a change before it is written back. */
enum mount_answer { ANSWER_CONTINUE, ANSWER_SKIP, ANSWER_ABORT };

struct mount_dir {
    const char *inside, *host; /* of the shaping; absolute and normal */
};

struct mount {
    struct shaping shaping; /* owned: what the strings point into */
    struct mount_dir dir[MOUNT_DIRS_MAX];
    size_t n;
    enum mount_load load;
    struct glob *include[MOUNT_INCLUDE_MAX]; /* owned */
    size_t include_n;
    uint64_t file_max, total_max; /* UINT64_MAX: no limit of its own */
    enum mount_links links;
    bool sync; /* batch: changes go back */
    enum mount_error on_error;
    bool allow_abort; /* a rule may stop a sync */
    struct {
        struct glob *glob; /* owned */
        enum mount_answer answer;
    } answer[MOUNT_ANSWERS_MAX];
    size_t answers_n;
    size_t room;    /* left to compile patterns, see glob_compile() */
    bool has_perms; /* something was said about permissions */
    struct perms perms;
    enum perm_denied denied;
};

extern const struct shape mount_shape;

/* mount or permissions may be absent (p == NULL). */
must_check int mount_parse(struct mount *m, struct json_value mount, struct json_value permissions,
                           struct err *e);
void mount_done(struct mount *m);
/* How its files really came in: "eager", "lazy" or "explicit"; NULL: there is no mount. */
const char *mount_loaded(const struct mount *m, bool lent);

/* The directory a path inside is below, or is itself; NULL: none. */
const struct mount_dir *mount_of(const struct mount *m, const char *path);
/* In all of these *steps is the budget of the questions of one request, see function/glob.h. */

/* What is allowed on a path (perms_of()); everything where nothing was said. */
unsigned mount_allows(const struct mount *m, const char *path, const char *workdir,
                      uint64_t *steps);
/* Is what has this path there at all? `on_the_way`: it is in a directory that may not be seen,
 * where only a rule that allows it by name shows it. */
enum glob_answer mount_shows(const struct mount *m, const char *path, const char *workdir,
                             bool on_the_way, uint64_t *steps);
/* May a rule show something below a directory, whose path ends in a slash? */
bool mount_opens(const struct mount *m, const char *dir);
/* Is this file of a mount to be loaded? `name`: below the mount. */
enum glob_answer mount_wants(const struct mount *m, const char *name, uint64_t *steps);
/* sync.rules of one mount about a path of another: the first whose pattern matches decides. Where
 * the budget does not suffice, the answer is the strictest one that may be meant. */
enum mount_answer mount_answers(const struct mount *rules, const struct mount *m, const char *path,
                                uint64_t *steps);
/* Only {onError, rules, allowAbort} of the body; what is not said there is as in `usual`. */
must_check int mount_parse_sync(struct mount *m, struct json_value sync, const struct mount *usual,
                                struct err *e);
