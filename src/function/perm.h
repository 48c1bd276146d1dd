/* SPDX-License-Identifier: MIT */
/*
 * Permissions on files: which of five operations are allowed on a path. Pure.
 *
 * The first rule that matches, in order of priority, is applied on top of the defaults: first what
 * it denies, then what it allows. `exclude` are rules of priority 1000 that deny everything. A
 * pattern matches the path inside as a whole, or as seen from the mount (or the working directory)
 * it is below, whichever the author had in mind.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "core/shape.h"

enum {
    PERM_READ = BIT(0),
    PERM_LIST = BIT(1),
    PERM_CREATE = BIT(2),
    PERM_MODIFY = BIT(3),
    PERM_DELETE = BIT(4),
    PERM_ALL = 31,
    PERM_UNKNOWN = BIT(5), /* in an answer: a rule took too many steps, see perms_of() */
    PERM_RULES_MAX = 1000,
    PERM_EXCLUDE_PRIORITY = 1000,
};

enum perm_denied { PERM_VIRTUAL, PERM_THROW, PERM_IGNORE };

struct glob;

struct perm_rule {
    char *pattern;     /* owned; without leading slashes */
    struct glob *glob; /* owned: the same, compiled */
    unsigned allow, deny;
    double priority;
};

struct perms {
    unsigned usual;         /* what is allowed where no rule says otherwise */
    struct perm_rule *rule; /* owned, by falling priority */
    size_t n;
    size_t room; /* left to compile patterns, see glob_compile() */
};

extern const struct shape perms_shape;

/* config: {default, rules, exclude}; p == NULL: the defaults of a mount. */
must_check int perms_parse(struct perms *p, struct json_value config, struct err *e);
void perms_done(struct perms *p);
/* What is allowed on an absolute path. `base`: the mount it is below, "" for none. *steps: the
 * budget of all questions together. Where it does not suffice, only what is allowed whether the
 * rule matches or not is allowed, and PERM_UNKNOWN is set. */
unsigned perms_of(const struct perms *p, const char *path, const char *base, uint64_t *steps);
/* The same, and whether the rule that decided allows to read or to list by itself: then it counts
 * inside a directory that may not be seen, too. */
unsigned perms_ask(const struct perms *p, const char *path, const char *base, uint64_t *steps,
                   bool *ret_granted);
/* Might a rule that allows to read or to list match something below a directory? `dir` ends in a
 * slash. True also where that cannot be told from the text of the pattern. */
bool perms_open(const struct perms *p, const char *dir, const char *base);
/* Bytes of a pattern before its first segment that is more than a name, or its last segment. */
size_t perm_literal_dirs(const char *pattern);
/* The error of a request whose rules took too many steps before it ran. -1. */
int perms_too_slow(struct err *e);
