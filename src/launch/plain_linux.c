/* SPDX-License-Identifier: MIT */
/* Keepers whose sandboxes have no walls (plain.h). */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "launch/keeper.h"
#include "launch/plain.h"
#include "launch/plain_kinds.h"
#include "launch/process.h"

/* Not by the slot: whoever kept it before may still be removing what it had. */
static void room_name(const struct keeper *k, char out[ROOM_PATH_MAX])
{
    (void)snprintf(out, ROOM_PATH_MAX, "%.*s/%d-%u", ROOMS_MAX, k->rooms, (int)k->pid, k->made);
}

static int plain_enter(struct keeper *k, struct err *e)
{
    int r = process_adopt();

    (void)k;
    return r < 0 ? err_sys(e, r, "become a reaper") : 0;
}

__attribute__((noreturn)) static void plain_become(struct keeper *k, const struct launch_msg *m,
                                                   const int *fds, size_t fds_n)
{
    bool keeps = (m->flags & LAUNCH_PERSISTENT) || m->workspace[0];
    uid_t uid = keeps ? k->user : k->uid_first + k->made % UIDS_PER_SLOT;
    struct plain p = {
        .rootless = k->rootless,
        .seatbelt = k->kind == &keeper_seatbelt,
        .uid = k->rootless ? geteuid() : uid,
        .gid = k->rootless ? getegid()
               : keeps     ? k->group
                           : (gid_t)uid,
        .run = k->host->run,
        .cpus = &k->cpus,
        .leash = -1,
    };

    room_name(k, p.room);
    plain_run(&p, m, fds, keeper_workspace(m, fds, fds_n));
}

static int plain_renew(struct keeper *k, struct launch_msg *m, int status)
{
    char room[ROOM_PATH_MAX];

    (void)m, (void)status;
    keeper_purge();
    room_name(k, room);
    room_remove(room);
    return 0;
}

const struct keeper_kind keeper_seatbelt = {
    .name = "seatbelt",
    .enter = plain_enter,
    .become = plain_become,
    .renew = plain_renew,
};

const struct keeper_kind keeper_plain = {
    .name = "subprocess",
    .enter = plain_enter,
    .become = plain_become,
    .renew = plain_renew,
};
