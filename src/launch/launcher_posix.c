/* SPDX-License-Identifier: MIT */
#include "launch/launcher_posix.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "core/port_jail.h"
#include "launch/guard.h"
#include "launch/process.h"
#include "launch/processes.h"
#include "launch/runner.h"
#include "launch/tree.h"

enum {
    END_MS = 10000, /* for all sandboxes to end once the daemon is gone */
    PASS_MS = 5,
    PASSES_MAX = 400, /* over what will not die */
};

static void say(struct launcher *l, const struct launch_msg *m)
{
    if (l->ending)
        return;
    if (fd_send(l->daemon, m, sizeof *m, NULL, 0) < 0)
        l->ending = true;
}

static void refuse(struct launcher *l, struct launch_msg *m, const struct err *e)
{
    m->verb = LAUNCH_FAILED;
    m->err = *e;
    say(l, m);
}

static void room_name(const struct launcher *l, const struct place *p, char out[ROOM_PATH_MAX])
{
    (void)snprintf(out, ROOM_PATH_MAX, "%.*s/%u", ROOMS_MAX, l->rooms, p->made);
}

static uid_t own_uid(const struct launcher *l, const struct place *p)
{
    return l->uid_base + (uid_t)(p - l->place);
}

/* ---- the beginning ---- */

/* In the new process. */
__attribute__((noreturn)) static void become_init(const struct launcher *l, const struct place *p,
                                                  const struct launch_msg *m, const int *fds,
                                                  int workspace)
{
    struct plain plain = {
        .rootless = l->rootless,
        .seatbelt = l->seatbelt,
        .own_user = p->own_user,
        .uid = l->rootless   ? geteuid()
               : p->own_user ? own_uid(l, p)
                             : l->user,
        .gid = l->rootless   ? getegid()
               : p->own_user ? (gid_t)own_uid(l, p)
                             : l->group,
        .run = runner_exec,
        .leash = l->leash[0],
    };

    room_name(l, p, plain.room);
    plain_run(&plain, m, fds, workspace);
}

static struct place *place_find(struct launcher *l)
{
    for (size_t i = 0; i < PLACES_MAX; i++)
        if (l->place[i].id == 0 && !l->place[i].retired) {
            l->n = i + 1 > l->n ? i + 1 : l->n;
            return &l->place[i];
        }
    return NULL;
}

static int make(struct launcher *l, struct launch_msg *m, const int *fds, struct err *e)
{
    bool keeps = (m->flags & LAUNCH_PERSISTENT) || m->workspace[0];
    struct place *p = place_find(l);
    cleanup_close int workspace = -1;
    uid_t uid;

    if (!p)
        return err_set(e, ERR_BUSY, "all %d places are in use", PLACES_MAX);
    if (m->template != TEMPLATE_EXEC)
        return err_set(e, ERR_BUG, "unknown template %u", m->template);
    if (m->lazy_n > 0)
        return err_set(e, ERR_HOST, "this jail mounts nothing");
    if (m->dependencies[0])
        return err_set(e, ERR_HOST, "dependencies of a session need a jail that can mount them");
    if (m->workspace[0] &&
        kept_open(&l->kept, m->workspace, sizeof m->workspace, &workspace, &uid, e) < 0)
        return -1;
    *p = (struct place){.id = m->id, .own_user = !l->rootless && !keeps, .made = l->made++};
    p->init = fork();
    if (p->init == 0)
        become_init(l, p, m, fds, workspace);
    if (p->init < 0) {
        p->id = 0;
        return err_sys(e, -errno, "fork a sandbox");
    }
    m->verb = LAUNCH_STARTED;
    m->slot = (uint32_t)(p - l->place);
    m->flags = 0;
    say(l, m);
    return 0;
}

/* ---- the end ---- */

/* As that user nobody else can be met. */
static void kill_user(uid_t uid)
{
    pid_t pid = fork();

    if (pid == 0) {
        if (process_user(uid, (gid_t)uid) == 0)
            (void)kill(-1, SIGKILL);
        _exit(0);
    }
    while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
}

/* Usually in a process of its own: it may take long. 0: nothing is left. An init that left by
 * itself has seen to everything else; but one whose user a program has may have been made to say
 * so. */
static int bury(const struct launcher *l, const struct place *p)
{
    bool left = WIFEXITED(p->status) && WEXITSTATUS(p->status) == 0;
    char room[ROOM_PATH_MAX];
    size_t more = 0;

    if (p->own_user)
        kill_user(own_uid(l, p));
    for (int pass = 0; !left && pass < PASSES_MAX; pass++) {
        more = p->own_user ? tree_kill_user(own_uid(l, p), 1) : tree_kill(p->init, NULL, 0);
        if (more == 0)
            break;
        (void)poll(NULL, 0, PASS_MS);
    }
    room_name(l, p, room);
    room_remove(room);
    return more > 0;
}

static void on_buried(struct launcher *l, struct place *p, int status)
{
    struct launch_msg m = {
        .verb = LAUNCH_DEAD, .id = p->id, .slot = (uint32_t)(p - l->place), .status = p->status};

    p->retired = status != 0 && p->own_user;
    p->id = 0;
    p->undertaker = 0;
    say(l, &m);
}

static void on_init_dead(struct launcher *l, struct place *p, int status)
{
    p->status = status;
    p->undertaker = fork();
    if (p->undertaker == 0)
        _exit(bury(l, p));
    if (p->undertaker < 0)
        on_buried(l, p, bury(l, p)); /* everybody else waits for once */
    p->init = -1;
}

static void reap(struct launcher *l)
{
    int status;
    pid_t pid;

    signals_take(l->children);
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0 || (pid < 0 && errno == EINTR))
        for (size_t i = 0; i < l->n && pid > 0; i++) {
            struct place *p = &l->place[i];

            if (p->id != 0 && p->init == pid)
                on_init_dead(l, p, status);
            else if (p->id != 0 && p->undertaker == pid)
                on_buried(l, p, status);
        }
}

/* ---- the loop ---- */

/* What is below an init is found as long as that is there; one that stands still starts nothing
 * more. Looking takes a while, so another process does it. */
__attribute__((noreturn)) static void kill_tree(pid_t init)
{
    (void)kill(init, SIGSTOP);
    for (int pass = 0; pass < PASSES_MAX && tree_kill(init, NULL, 0) > 0; pass++)
        (void)poll(NULL, 0, PASS_MS);
    (void)kill(init, SIGKILL);
    _exit(0);
}

static void verb_kill(struct launcher *l, uint64_t id)
{
    for (size_t i = 0; i < l->n; i++) {
        const struct place *p = &l->place[i];
        pid_t pid;

        if (p->id != id || p->init <= 0)
            continue;
        pid = p->own_user ? -1 : fork(); /* its user is killed as a whole, when it is buried */
        if (pid == 0)
            kill_tree(p->init);
        if (pid < 0)
            (void)kill(p->init, SIGKILL);
    }
}

static void on_daemon(struct launcher *l)
{
    int fds[LAUNCH_FDS_MAX];
    size_t n = LAUNCH_FDS_MAX;
    struct launch_msg m;
    ssize_t got = fd_recv(l->daemon, &m, sizeof m, fds, &n);
    struct err e = {0};

    if (got < 0 && got != -ECONNRESET)
        exit(EXIT_FAILURE);
    l->ending = got != sizeof m;
    if (l->ending)
        return;
    if (m.verb == LAUNCH_PREPARE && m.lazy_n <= LAUNCH_LAZY_MAX && n == launch_fds(&m)) {
        if (make(l, &m, fds, &e) < 0)
            refuse(l, &m, &e);
    } else if (m.verb == LAUNCH_KILL) {
        verb_kill(l, m.id);
    }
    fd_close_all(fds, n);
}

static size_t places_used(const struct launcher *l)
{
    size_t n = 0;

    for (size_t i = 0; i < l->n; i++)
        n += l->place[i].id != 0;
    return n;
}

/* Until the daemon is gone, and then until all sandboxes are, which see that as well. */
static void loop(struct launcher *l)
{
    uint64_t until = 0;

    while (!l->ending || places_used(l) > 0) {
        struct pollfd p[2] = {
            {.fd = l->children,                .events = POLLIN},
            {.fd = l->ending ? -1 : l->daemon, .events = POLLIN},
        };

        if (poll(p, 2, l->ending ? END_MS : -1) < 0 && errno != EINTR)
            exit(EXIT_FAILURE);
        reap(l);
        if (!l->ending && p[1].revents)
            on_daemon(l);
        if (l->ending && until == 0)
            until = clock_us() + END_MS * UINT64_C(1000);
        if (l->ending && clock_us() > until)
            for (size_t i = 0; i < l->n; i++)
                verb_kill(l, l->place[i].id);
    }
}

/* ---- start ---- */

static int prepare(struct launcher *l, struct err *e)
{
    struct processes all;
    int r;

    l->children = signals_open(0);
    if (l->children < 0)
        return err_sys(e, l->children, "hear of children");
    r = fd_pipe(l->leash);
    if (r < 0)
        return err_sys(e, r, "pipe");
    r = processes_read(&all);
    if (r < 0)
        return err_sys(e, r, "ps, without which nobody can tell what a program has started");
    processes_free(&all);
    kept_enter(&l->kept);
    return 0;
}

void launcher_main(struct launcher *l)
{
    struct launch_msg hello = {.verb = LAUNCH_HELLO};

    if (prepare(l, &hello.err) == 0) {
        hello.templates = BIT(TEMPLATE_EXEC);
        (void)snprintf(hello.dirs, sizeof hello.dirs, "this jail mounts nothing");
        (void)snprintf(hello.workspace, sizeof hello.workspace,
                       "this system has no control groups");
    }
    say(l, &hello);
    if (hello.err.kind != ERR_NONE)
        exit(EXIT_SUCCESS);
    loop(l);
    exit(EXIT_SUCCESS);
}
