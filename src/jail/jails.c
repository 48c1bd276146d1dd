/* SPDX-License-Identifier: MIT */
#include "jail/jails.h"

#include <stdio.h>
#include <string.h>

/* Every adapter there is. */
static const struct {
    const char *name;
    jail_open_fn *open;
} adapters[] = {
    {"native", jail_native_open},
};

static const struct {
    const char *name;
    unsigned traits;
} levels[] = {
    {"full",  JAIL_FS | JAIL_PID | JAIL_IPC | JAIL_UTS | JAIL_NET | JAIL_USER | JAIL_NNP |
                 JAIL_NOCAPS | JAIL_SECCOMP | JAIL_MEMORY | JAIL_PIDS},
    {"basic", JAIL_FS | JAIL_PID | JAIL_IPC | JAIL_UTS | JAIL_NET | JAIL_USER | JAIL_NNP |
                  JAIL_NOCAPS | JAIL_SECCOMP                        },
};

const char *jails_name(size_t i)
{
    return i < ARRAY_LEN(adapters) ? adapters[i].name : NULL;
}

int jails_required(const char *level, unsigned *ret, struct err *e)
{
    for (size_t i = 0; i < ARRAY_LEN(levels); i++)
        if (strcmp(levels[i].name, level) == 0) {
            *ret = levels[i].traits;
            return 0;
        }
    return err_set(e, ERR_CALLER, "ISOLATION_LEVEL: '%s' is neither full nor basic", level);
}

static jail_open_fn *find(const char *name, size_t n)
{
    for (size_t i = 0; i < ARRAY_LEN(adapters); i++)
        if (strlen(adapters[i].name) == n && memcmp(adapters[i].name, name, n) == 0)
            return adapters[i].open;
    return NULL;
}

/* Which of the wanted traits are missing, in words. */
static int check_traits(const struct jail *j, unsigned wanted, struct err *e)
{
    unsigned missing = wanted & ~j->traits;
    char names[200] = "";
    size_t used = 0;

    for (unsigned i = 0; i < JAIL_TRAIT_COUNT; i++)
        if (missing & BIT(i))
            used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", used ? ", " : "",
                                     jail_trait_name(i));
    if (!missing)
        return 0;
    return err_set(
        e, ERR_HOST,
        "this host does not give: %s. Delegate a cgroup with memory and pids controllers to the "
        "daemon (systemd: Delegate=yes; containers: a writable cgroup), or accept "
        "ISOLATION_LEVEL=basic",
        names);
}

int jails_open(const struct config *c, struct event_base *loop, const struct log *log,
               struct jail **ret, struct err *e)
{
    unsigned wanted;

    if (jails_required(c->isolation_level, &wanted, e) < 0)
        return -1;
    (void)err_set(e, ERR_HOST, "no usable jail in ISOLATION");
    for (const char *at = c->isolation; *at;) {
        size_t n = strcspn(at, ",");
        jail_open_fn *open = find(at, n);
        struct jail *j = NULL;
        struct err why;

        if (!open)
            return err_set(e, ERR_CALLER, "ISOLATION: unknown jail '%.*s'", (int)n, at);
        if (open(c, loop, log, &j, &why) == 0 && check_traits(j, wanted, &why) == 0) {
            *ret = j;
            return 0;
        }
        jails_close(j);
        *e = why;
        (void)err_wrap(e, "%.*s", (int)n, at);
        at += n + (at[n] == ',');
    }
    return -1;
}

void jails_close(struct jail *j)
{
    if (j)
        j->ops->close(j);
}
