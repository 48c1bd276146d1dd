/* SPDX-License-Identifier: MIT */
#include "walls/plain.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "core/traits.h"
#include "init/order.h"
#include "init/own_process.h"
#include "init/room.h"
#include "init/steps.h"
#include "walls/birth.h"
#include "walls/keeper.h"

int rooms_make(char out[ROOMS_MAX], struct err *e)
{
    (void)snprintf(out, ROOMS_MAX, "/tmp/sandbox-executor-XXXXXX");
    if (!mkdtemp(out) || chmod(out, 0711) < 0)
        return err_sys(e, -errno, "directory for workspaces in /tmp");
    return 0;
}

/* ---- the steps ---- */

static bool is_persistent(const struct confine *c)
{
    return (c->msg->flags & LAUNCH_PERSISTENT) != 0;
}

static int step_room(const struct confine *c)
{
    char names[LAUNCH_DIRS_MAX];
    int r;

    if (is_persistent(c))
        return 0; /* its files are the host's */
    memcpy(names, c->msg->dirs, sizeof names);
    names[sizeof names - 1] = '\0';
    r = room_make(c->room, names, c->workspace >= 0 ? INIT_FD_END : -1, c->uid, c->gid);
    if (c->workspace >= 0)
        (void)close(INIT_FD_END);
    return r;
}

static int step_session(const struct confine *c)
{
    (void)c;
    (void)umask(022);
    return setsid() < 0 ? -errno : 0;
}

static int step_user(const struct confine *c)
{
    if (c->rootless)
        return 0;
    return process_user(c->uid, c->gid);
}

/* Found by init under a number it knows. */
static int step_tree(const struct confine *c)
{
    cleanup_close int tree = -1;

    if (is_persistent(c))
        return 0;
    tree = room_tree(c->room, c->msg->dirs[0] != '\0');
    if (tree < 0)
        return take_fd(&tree);
    if (tree == INIT_FD_END)
        return take_fd(&tree), 0;
    return fd_move(tree, INIT_FD_END);
}

static int step_reaper(const struct confine *c)
{
    int r = process_adopt();

    (void)c;
    return r ? r : process_follow();
}

/* A user is shared with others as soon as we are not root: its processes cannot be counted as the
 * sandbox's. A file can become no larger than a workspace may be. */
static int step_plain_limits(const struct confine *c)
{
    struct rlimit size;

    if (getrlimit(RLIMIT_FSIZE, &size) < 0)
        return -errno;
    if (!is_persistent(c) && c->msg->workspace_max < size.rlim_max) {
        size.rlim_cur = size.rlim_max = c->msg->workspace_max;
        if (setrlimit(RLIMIT_FSIZE, &size) < 0)
            return -errno;
    }
    return limits_set(c, !c->rootless && !is_persistent(c) && c->workspace < 0);
}

static const struct confine_step steps[] = {
    {"descriptors",       step_descriptors      },
    {"session",           step_session          },
    {"room",              step_room             },
    {"user",              step_user             },
    {"workspace",         step_tree             },
    {"reaper",            step_reaper           },
    {"resource limits",   step_plain_limits     },
    {"undumpable init",   step_undumpable       },
    {"no new privileges", step_no_new_privileges},
};
enum { STEP_DESCRIPTORS = 0 };

/* ---- all of it ---- */

/* Not named by the slot: its last keeper may still be removing its own directory. */
static void room_name(const struct keeper *k, char out[ROOM_PATH_MAX])
{
    (void)snprintf(out, ROOM_PATH_MAX, "%.*s/%d-%u", ROOMS_MAX, k->rooms, (int)k->pid, k->made);
}

static int plain_enter(struct keeper *k, struct err *e)
{
    int r = process_adopt();

    if (r == 0)
        r = birth_keep(k);
    return r < 0 ? err_sys(e, r, "become a reaper") : 0;
}

__attribute__((noreturn)) static void plain_become(struct keeper *k, const struct launch_msg *m,
                                                   const int *fds, size_t fds_n)
{
    bool keeps = (m->flags & LAUNCH_PERSISTENT) || m->workspace[0];
    uid_t uid = keeps ? k->host.user : m->uid;
    struct init_order o = {.msg = *m, .shared = true, .tree = !(m->flags & LAUNCH_PERSISTENT)};
    struct confine c = keeper_confine(k, m, fds, fds_n);

    c.uid = k->host.rootless ? geteuid() : uid;
    c.gid = k->host.rootless ? getegid() : keeps ? k->host.group : (gid_t)uid;
    c.dependencies = c.lent = -1;
    c.room = o.room;
    c.kept = true;
    room_name(k, o.room);
    steps_run(steps, ARRAY_LEN(steps), STEP_DESCRIPTORS, &c);
    birth_end(k, &o);
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

const struct keeper_kind keeper_plain = {
    .name = "subprocess",
    .enter = plain_enter,
    .become = plain_become,
    .renew = plain_renew,
};
