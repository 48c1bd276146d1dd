/* SPDX-License-Identifier: MIT */
#include "jail/jails.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"

/* Every adapter there is. */
static const struct adapter {
    const char *name;
    jail_open_fn *open;
    bool no_walls; /* isolates nothing and is documented so: no trait is required */
} adapters[] = {
    {"native",     jail_native_open,     false},
    {"bwrap",      jail_bwrap_open,      false},
    {"subprocess", jail_subprocess_open, true },
};
_Static_assert(ARRAY_LEN(adapters) <= JAILS_MAX, "room for all");

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

static int open_one(const struct jail_conf *c, const struct adapter *a, unsigned wanted,
                    struct jail_option *o)
{
    struct jail *j = NULL;

    o->allowed = true;
    if (a->open(c, &j, &o->why) < 0)
        return -1;
    if (!a->no_walls && check_traits(j, wanted, &o->why) < 0) {
        j->ops->close(j);
        return -1;
    }
    o->jail = j;
    if (a->no_walls)
        log_event(c->log, LOG_WARN, "no_isolation", LOG_STR("jail", a->name),
                  LOG_STR("detail", "programs run as processes of this host, without a sandbox"));
    return 0;
}

static const struct adapter *find(const char *name, size_t n)
{
    for (size_t i = 0; i < ARRAY_LEN(adapters); i++)
        if (strlen(adapters[i].name) == n && memcmp(adapters[i].name, name, n) == 0)
            return &adapters[i];
    return NULL;
}

static int unknown(const char *name, size_t n, struct err *e)
{
    char known[128] = "";

    if (n == strlen("seatbelt") && memcmp(name, "seatbelt", n) == 0)
        return err_set(
            e, ERR_CALLER,
            "ISOLATION: the jail 'seatbelt' (macOS) is no longer part of Sandbox Executor, "
            "which runs on Linux only; use native, bwrap or subprocess");
    for (size_t i = 0; i < ARRAY_LEN(adapters); i++)
        (void)snprintf(known + strlen(known), sizeof known - strlen(known), "%s%s", i ? ", " : "",
                       adapters[i].name);
    return err_set(e, ERR_CALLER, "ISOLATION: unknown jail '%.*s'; there are: %s",
                   n < 64 ? (int)n : 64, name, known);
}

int jails_check(const struct config *c, struct err *e)
{
    unsigned wanted;

    for (const char *at = c->isolation; *at;) {
        size_t n = strcspn(at, ", ");

        if (n > 0 && !find(at, n))
            return unknown(at, n, e);
        at += n + (at[n] != '\0');
    }
    return jails_required(c->isolation_level, &wanted, e);
}

static void list_all(const struct config *c, struct jail_option all[JAILS_MAX])
{
    for (size_t i = 0; i < ARRAY_LEN(adapters); i++) {
        all[i] = (struct jail_option){.name = adapters[i].name};
        (void)err_set(&all[i].why, ERR_CALLER, "not named in ISOLATION ('%.100s')", c->isolation);
    }
}

/* One after the other, in the order of preference; each word once. All are known: jails_check(). */
static int open_named(const struct jail_conf *c, unsigned wanted, struct jail_option all[JAILS_MAX],
                      size_t *ret_first, struct err *e)
{
    struct jail_conf conf = *c;

    for (const char *at = c->config->isolation; *at;) {
        size_t n = strcspn(at, ", ");
        const struct adapter *a = find(at, n);
        struct jail_option *o = a ? &all[a - adapters] : NULL;

        if (o && !o->allowed) {
            if (open_one(&conf, a, wanted, o) < 0) {
                *e = o->why;
                (void)err_wrap(e, "%s", a->name);
                log_event(c->log, LOG_WARN, "jail_unavailable", LOG_STR("jail", a->name),
                          LOG_STR("error", o->why.text));
            } else if (!conf.standby) {
                *ret_first = (size_t)(a - adapters);
                conf.standby = true;
            }
        }
        at += n + (at[n] != '\0');
    }
    return conf.standby ? 0 : -1;
}

int jails_open(const struct jail_conf *c, struct jail_option ret[JAILS_MAX], size_t *ret_first,
               struct err *e)
{
    unsigned wanted;

    if (jails_check(c->config, e) < 0 || jails_required(c->config->isolation_level, &wanted, e) < 0)
        return -1;
    list_all(c->config, ret);
    (void)err_set(e, ERR_HOST, "no usable jail in ISOLATION");
    if (open_named(c, wanted, ret, ret_first, e) < 0) {
        jails_close(ret);
        return -1;
    }
    return 0;
}

void jails_close(struct jail_option all[JAILS_MAX])
{
    for (size_t i = 0; i < JAILS_MAX; i++)
        if (all[i].jail) {
            all[i].jail->ops->close(all[i].jail);
            all[i].jail = NULL;
        }
}
