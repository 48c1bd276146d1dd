/* SPDX-License-Identifier: MIT */
/*
 * Walls by macOS's sandbox, around each program (launch/seatbelt.h); the rest is as in the
 * subprocess jail. It has not been run on a Mac, so it declares no trait: the escape suite decides,
 * and has had no say. Persistent sandboxes it does not have: their commands would be outside.
 */
#include <unistd.h>

#include "jail/native.h"

static const char program[] = "/usr/bin/sandbox-exec";

static int take(struct jail *j, const struct sandbox_spec *s, struct sandbox *ret, struct err *e)
{
    if (s->persistent)
        return err_set(e, ERR_CALLER, "the jail 'seatbelt' has no persistent sandboxes");
    return launched_take(j, s, ret, e);
}

static const struct jail_ops ops = {
    .name = "seatbelt",
    .probe = launched_probe,
    .take = take,
    .usage = launched_usage,
    .alone = launched_alone,
    .kill = launched_kill,
    .release = launched_release,
    .failure = launched_failure,
    .state = launched_state,
    .close = launched_close,
};

int jail_seatbelt_open(const struct jail_conf *c, struct jail **ret, struct err *e)
{
    if (access(program, X_OK) < 0)
        return err_set(e, ERR_HOST, "%s is not there: it is a part of macOS", program);
    return launched_open(&(struct launched_kind){&ops, "sandbox-exec", false}, c, ret, e);
}
