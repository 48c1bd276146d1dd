/* SPDX-License-Identifier: MIT */
#include "app/daemon/place.h"

#include <stdio.h>
#include <string.h>

#include "app/daemon/app.h"

static int not_allowed(const struct app *a, const char *name, struct err *e)
{
    char allowed[128] = "";

    for (size_t i = 0; i < JAILS_MAX; i++)
        if (a->jails[i].allowed)
            (void)snprintf(allowed + strlen(allowed), sizeof allowed - strlen(allowed), "%s%s",
                           allowed[0] ? ", " : "", a->jails[i].name);
    return err_set(e, ERR_CALLER, "'%.64s' is no jail that ISOLATION allows here: %s", name,
                   allowed);
}

int place_find(const struct app *a, const char *name, struct place *ret, struct err *e)
{
    if (!name[0]) {
        *ret = (struct place){a->jail, a->engine};
        return 0;
    }
    for (size_t i = 0; i < JAILS_MAX && a->jails[i].name; i++) {
        const struct jail_option *o = &a->jails[i];

        if (strcmp(o->name, name) != 0 || !o->allowed)
            continue;
        if (!o->jail)
            return err_set(e, ERR_CALLER, "the jail '%s' cannot be used on this host: %.300s", name,
                           o->why.text);
        *ret = (struct place){o->jail, a->engines[i]};
        return 0;
    }
    return not_allowed(a, name, e);
}
