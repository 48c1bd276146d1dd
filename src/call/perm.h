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

#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"

enum {
    PERM_READ = BIT(0),
    PERM_LIST = BIT(1),
    PERM_CREATE = BIT(2),
    PERM_MODIFY = BIT(3),
    PERM_DELETE = BIT(4),
    PERM_ALL = 31,
    PERM_RULES_MAX = 1000,
    PERM_EXCLUDE_PRIORITY = 1000,
};

enum perm_denied { PERM_VIRTUAL, PERM_THROW, PERM_IGNORE };

struct perm_rule {
    char *pattern; /* owned; without leading slashes */
    unsigned allow, deny;
    double priority;
};

struct perms {
    unsigned usual;         /* what is allowed where no rule says otherwise */
    struct perm_rule *rule; /* owned, by falling priority */
    size_t n;
};

/* config: {default, rules, exclude}; p == NULL: the defaults of a mount. */
must_check int perms_parse(struct perms *p, struct json_value config, struct err *e);
void perms_done(struct perms *p);
/* What is allowed on an absolute path. `base`: the mount it is below, "" for none. */
unsigned perms_of(const struct perms *p, const char *path, const char *base);
