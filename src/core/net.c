/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "core/port_net.h"

static const char *const names[] = {[NET_NONE] = "none", [NET_GATE] = "gate", [NET_HOST] = "host"};

const char *net_mode_name(enum net_mode m)
{
    return names[m];
}

int net_permit(const struct config *c, const char *name, enum net_mode *ret, struct err *e)
{
    enum net_mode m = strcmp(name, names[NET_HOST]) == 0 ? NET_HOST : NET_NONE;

    if (strcmp(name, names[m]) != 0)
        return err_set(e, ERR_CALLER, "network.mode: must be 'none' or 'host'");
    if (m == NET_HOST && !c->host_network)
        return err_set(e, ERR_DENIED, "network.mode: 'host' needs ALLOW_HOST_NETWORK=true");
    *ret = m;
    return 0;
}

bool net_possible(const struct jail *j, enum net_mode m)
{
    return m != NET_GATE || j->traits & JAIL_NET;
}

enum net_mode net_effective(const struct jail *j, enum net_mode m)
{
    return j->traits & JAIL_NET ? m : NET_HOST;
}
