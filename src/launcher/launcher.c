/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/sys.h"
#include "launcher/discard.h"
#include "launcher/launcher_inner.h"
#include "launcher/lend.h"

enum {
    SPARE_MIN = 1,   /* idle slots of a template kept ready once it is used */
    SHRINK_MS = 500, /* between looks at slots that a rush has left behind */
    TIDY_MS = 50,    /* between looks at what can wait, and attempts to remove groups */
    PAUSE_MS = 2,    /* before what the kernel had no memory for is tried again */
    TRIES_MAX = 100,
    LOST_MAX = 8,      /* keepers in a row that died while they were idle */
    KILLS_MAX = 8,     /* attempts */
    ORPHAN_LOOKS = 20, /* TIDY_MS apart: a keeper's socket closes before it is dead */
    EVENTS_MAX = 64,
};

/* The kernel is short of something. That passes; our end would be that of all sandboxes. */
static bool passes(int r)
{
    return r == -ENOMEM || r == -ENOBUFS || r == -EAGAIN || r == -EINTR;
}

static void pause_a_little(void)
{
    const struct timespec t = {.tv_nsec = PAUSE_MS * 1000000};

    (void)nanosleep(&t, NULL);
}

/* Every answer is awaited. One that cannot be given ends us, and the next launcher's HELLO tells
 * the daemon that all is lost. */
void launcher_say(struct launcher *l, const struct launch_msg *m, const int *fds, size_t n)
{
    int r = fd_send(l->daemon, m, sizeof *m, fds, n);

    for (int tries = 1; passes(r) && tries < TRIES_MAX; tries++) {
        pause_a_little();
        r = fd_send(l->daemon, m, sizeof *m, fds, n);
    }
    if (r < 0)
        exit(r == -EPIPE ? EXIT_SUCCESS : EXIT_FAILURE);
}

static void refuse(struct launcher *l, struct launch_msg *m, const struct err *e)
{
    m->verb = LAUNCH_FAILED;
    m->err = *e;
    launcher_say(l, m, NULL, 0);
}

/* ---- placing ---- */

/* A workspace may belong to a user of another range than ours, which then is to be mapped as well.
 */
static int map_used(struct launcher *l, struct err *e)
{
    struct zygotes *z = &l->slots.zygotes;
    int r;

    if (l->slots.host.rootless || z->maps == l->users.used_n)
        return 0;
    r = users_map(&l->users, z->map, sizeof z->map);
    if (r < 0)
        return err_sys(e, r, "users of kept workspaces");
    zygotes_map_anew(z, l->users.used_n);
    return 0;
}

/* fds are borrowed. */
static int hand_over(struct launcher *l, struct slot *s, struct launch_msg *m, const int *fds,
                     struct err *e)
{
    int with[LAUNCH_FDS_KEEPER];
    cleanup_close int tree = -1, dependencies = -1, lent = -1;
    size_t n = LAUNCH_FDS_PREPARE;
    int r;

    if (cgroup_slot_limit(&l->slots.cgroups, &s->cgroup, m->memory_max, m->pids_max, e) < 0)
        return -1;
    m->uid = slot_user(&l->slots, s);
    if (m->workspace[0] &&
        kept_open(&l->kept, m->workspace, sizeof m->workspace, &tree, &m->uid, e) < 0)
        return -1;
    if (map_used(l, e) < 0)
        return -1;
    s->lost = !slot_reaches(&l->slots, s);
    if (s->lost) /* its zygote has not been mapped the user of this workspace */
        return err_set(e, ERR_BUSY, "the keeper of slot %u cannot have this user", s->index);
    if (m->dependencies[0] && kept_open_read_only(&l->shelf, m->dependencies,
                                                  sizeof m->dependencies, &dependencies, e) < 0)
        return -1;
    memcpy(with, fds, sizeof with[0] * LAUNCH_FDS_PREPARE);
    if (tree >= 0)
        with[n++] = tree;
    if (dependencies >= 0)
        with[n++] = dependencies;
    if (m->lazy_n > 0) {
        lent = lend_start(&l->slots, s, m, fds, e);
        if (lent < 0)
            return -1;
        with[n++] = lent;
    }
    m->slot = s->index;
    r = fd_send(s->keeper, m, sizeof *m, with, n);
    s->lost = r == -EPIPE || r == -ECONNRESET;
    if (r < 0)
        return err_sys(e, r, "keeper of slot %u", s->index);
    slot_become(s, SLOT_MAKING);
    s->frozen = false;
    s->id = m->id;
    return 0;
}

/* One spare keeps the next request from waiting for a keeper to be born. */
static void keep_spare(struct launcher *l, enum plan_template t, bool space)
{
    struct err ignored;

    if (slots_idle(&l->slots, t, space) < SPARE_MIN)
        (void)slot_open(&l->slots, t, space, &ignored);
}

/* Nobody is in it. The daemon may still hold its usage files. */
static void dismiss(struct launcher *l, struct slot *s)
{
    struct launch_msg m = {.verb = LAUNCH_DEAD, .slot = s->index, .flags = LAUNCH_RETIRED};
    bool told = s->told;

    slot_close(&l->slots, s);
    if (told)
        launcher_say(l, &m, NULL, 0);
}

/* True: more of them will have to go. */
static bool shrink(struct launcher *l)
{
    struct slot *s;
    bool later;

    while ((s = slot_surplus(&l->slots, clock_us(), &later)))
        dismiss(l, s);
    return later;
}

static void slot_freeze(struct launcher *l, struct slot *s, bool frozen)
{
    s->frozen = frozen;
    if (s->state == SLOT_LIVE)
        (void)!cgroup_slot_freeze(&l->slots.cgroups, s->index, frozen);
}

/* One that its keeper has not told of yet is killed when it does. A frozen one dies when it is let
 * go on, and before it could do anything. */
static void slot_kill(struct launcher *l, struct slot *s)
{
    s->doomed = true;
    for (int tries = 0; s->pidfd >= 0 && tries < KILLS_MAX; tries++)
        if (sys_pidfd_kill(s->pidfd) == 0 || errno == ESRCH)
            break;
    if (s->frozen)
        slot_freeze(l, s, false);
}

/* The keeper itself is gone or could not start. Its sandbox would outlive it, and without its slot
 * nobody could end it any more. One that the keeper has not told of yet is looked for. */
static void bury_keeper(struct launcher *l, struct slot *s, const struct err *e)
{
    struct launch_msg m = {.id = s->id, .slot = s->index, .flags = LAUNCH_RETIRED};
    bool busy = slot_is_busy(s);

    if (s->state == SLOT_MAKING && l->slots.kind->rooted)
        l->orphan_looks = ORPHAN_LOOKS;
    if (busy)
        slot_kill(l, s);
    if (busy)
        slot_close(&l->slots, s);
    else
        dismiss(l, s);
    if (!l->slots.kind->rooted)
        slots_purge(&l->slots);
    if (busy)
        refuse(l, &m, e);
}

/* An idle slot, or a new one, that took the sandbox; NULL with the reason. A keeper that died
 * unseen while it was idle costs nobody a request. */
static struct slot *place(struct launcher *l, struct launch_msg *m, const int *fds, struct err *e)
{
    enum plan_template t = (enum plan_template)m->template;
    bool space = slots_space(&l->slots, m);

    if (slots_births(&l->slots, t) >= l->slots.births_max)
        return (void)err_set(e, ERR_BUSY, "enough sandboxes are being made"), NULL;
    for (int tries = 0; tries < LOST_MAX; tries++) {
        struct slot *s = slot_find_idle(&l->slots, t, space);

        if (!s)
            s = slot_open(&l->slots, t, space, e);
        if (!s || hand_over(l, s, m, fds, e) == 0)
            return s;
        if (!s->lost)
            return NULL;
        bury_keeper(l, s, e);
    }
    return NULL;
}

/* ---- who has to wait ---- */

/* The descriptors go along. False: too many wait already. */
static bool put_off(struct launcher *l, const struct launch_msg *m, const int *fds)
{
    struct queue *q = &l->waiting[m->template];
    struct pending *p = l->unused;

    if (p)
        l->unused = p->next;
    else if (l->pending_n < PENDING_MAX)
        p = &l->pending[l->pending_n++];
    else
        return false;
    p->next = NULL;
    p->doomed = false;
    p->msg = *m;
    memcpy(p->fds, fds, launch_fds(m) * sizeof *fds);
    *(q->first ? &q->last->next : &q->first) = p;
    q->last = p;
    q->n++;
    return true;
}

static void serve_queue(struct launcher *l, struct queue *q)
{
    struct pending *p;

    while ((p = q->first)) {
        struct err e = {0};

        if (p->doomed)
            (void)err_set(&e, ERR_CALLER, "killed before it was made");
        if (p->doomed || !place(l, &p->msg, p->fds, &e)) {
            if (e.kind == ERR_BUSY)
                return;
            refuse(l, &p->msg, &e);
        }
        fd_close_all(p->fds, launch_fds(&p->msg));
        q->first = p->next;
        q->n--;
        p->next = l->unused;
        l->unused = p;
    }
}

static void serve_waiting(struct launcher *l)
{
    for (size_t t = 0; t < TEMPLATE_COUNT; t++)
        serve_queue(l, &l->waiting[t]);
}

/* ---- verbs of the daemon ---- */

/* The descriptors are the verb's: it keeps them or closes them. */
static void verb_prepare(struct launcher *l, struct launch_msg *m, int *fds, size_t n)
{
    struct slot *s;
    struct err e = {0};

    if (n != launch_fds(m)) {
        fd_close_all(fds, n);
        (void)err_set(&e, ERR_BUG, "%zu descriptors instead of %zu", n, launch_fds(m));
        refuse(l, m, &e);
        return;
    }
    if (m->template >= TEMPLATE_COUNT) {
        (void)err_set(&e, ERR_BUG, "unknown template %u", m->template);
        refuse(l, m, &e);
    } else {
        if (l->waiting[m->template].first && put_off(l, m, fds))
            return; /* requests are served in the order in which they came */
        s = place(l, m, fds, &e);
        if (!s && e.kind == ERR_BUSY && put_off(l, m, fds))
            return;
        if (!s)
            refuse(l, m, &e);
        else
            keep_spare(l, s->template, s->space);
    }
    fd_close_all(fds, launch_fds(m));
}

static void verb_kill(struct launcher *l, struct launch_msg *m, int *fds, size_t fds_n)
{
    fd_close_all(fds, fds_n);
    for (size_t i = 0; i < l->slots.n; i++) {
        struct slot *s = &l->slots.slot[i];

        if (slot_is_busy(s) && s->id == m->id)
            slot_kill(l, s);
    }
    for (size_t t = 0; t < TEMPLATE_COUNT; t++)
        for (struct pending *p = l->waiting[t].first; p; p = p->next)
            p->doomed |= p->msg.id == m->id;
}

static void freeze(struct launcher *l, const struct launch_msg *m, bool frozen)
{
    for (size_t i = 0; i < l->slots.n; i++) {
        struct slot *s = &l->slots.slot[i];

        if (slot_is_busy(s) && s->id == m->id && !s->doomed)
            slot_freeze(l, s, frozen);
    }
}

static void verb_freeze(struct launcher *l, struct launch_msg *m, int *fds, size_t n)
{
    fd_close_all(fds, n);
    freeze(l, m, true);
}

static void verb_thaw(struct launcher *l, struct launch_msg *m, int *fds, size_t n)
{
    fd_close_all(fds, n);
    freeze(l, m, false);
}

static void verb_measure(struct launcher *l, struct launch_msg *m, int *fds, size_t n)
{
    if (n == 1)
        measure_start(&l->measures, &l->kept, m, fds[0]);
    fd_close_all(fds, n);
}

static void verb_discard(struct launcher *l, struct launch_msg *m, int *fds, size_t n)
{
    if (n == 1)
        discard_start(&l->measures, &l->kept, m, fds[0]);
    fd_close_all(fds, n);
}

/* What the daemon may say. HELLO comes before the loop that reads it, so there is one state. */
static const struct {
    uint32_t verb;
    void (*run)(struct launcher *l, struct launch_msg *m, int *fds, size_t n);
} daemon_verbs[] = {
    {LAUNCH_PREPARE, verb_prepare},
    {LAUNCH_KILL,    verb_kill   },
    {LAUNCH_FREEZE,  verb_freeze },
    {LAUNCH_THAW,    verb_thaw   },
    {LAUNCH_MEASURE, verb_measure},
    {LAUNCH_DISCARD, verb_discard},
};

/* ---- verbs of keepers ---- */

static int64_t oom_kills(const struct slot *s)
{
    char text[512] = "";
    const char *at;

    if (s->cgroup.usage[CG_USED_OOM] < 0 ||
        pread(s->cgroup.usage[CG_USED_OOM], text, sizeof text - 1, 0) <= 0)
        return 0;
    at = strstr(text, "oom_kill ");
    return at ? strtoll(at + 9, NULL, 10) : 0;
}

static void on_started(struct launcher *l, struct slot *s, struct launch_msg *m, int *pidfd)
{
    slot_become(s, SLOT_LIVE);
    s->pidfd = take_fd(pidfd);
    if (s->doomed)
        slot_kill(l, s);
    else if (s->frozen)
        slot_freeze(l, s, true);
    s->oom_before = oom_kills(s);
    m->flags = l->slots.cgroups.version == 2 ? LAUNCH_CGROUP2 : 0;
    launcher_say(l, m, s->cgroup.usage,
                 s->told || !l->slots.cgroups.version ? 0 : LAUNCH_FDS_STARTED);
    s->told = true;
}

static void on_dead(struct launcher *l, struct slot *s, struct launch_msg *m, int *none)
{
    bool clean = oom_kills(s) == s->oom_before && cgroup_slot_clean(&l->slots.cgroups, &s->cgroup);
    bool retire = zygotes_outdated(&l->slots.zygotes, s->template, s->generation) || !clean;

    (void)none;
    fd_close_all(&s->pidfd, 1);
    slot_become(s, SLOT_IDLE);
    m->flags = retire ? LAUNCH_RETIRED : 0;
    launcher_say(l, m, NULL, 0);
    if (retire)
        slot_close(&l->slots, s);
}

static void on_failed(struct launcher *l, struct slot *s, struct launch_msg *m, int *none)
{
    (void)none;
    bury_keeper(l, s, &m->err);
}

/* What a keeper may say, in which states of its slot, and with how many descriptors. */
static const struct keeper_verb {
    uint32_t verb;
    unsigned states; /* bits of enum slot_state */
    size_t fds;
    void (*run)(struct launcher *l, struct slot *s, struct launch_msg *m, int *fd);
} keeper_verbs[] = {
    {LAUNCH_STARTED, BIT(SLOT_MAKING),                                   1, on_started},
    {LAUNCH_DEAD,    BIT(SLOT_LIVE),                                     0, on_dead   },
    {LAUNCH_FAILED,  BIT(SLOT_IDLE) | BIT(SLOT_MAKING) | BIT(SLOT_LIVE), 0, on_failed },
};

static const struct keeper_verb *keeper_verb(const struct slot *s, uint32_t verb, size_t fds)
{
    for (size_t i = 0; i < ARRAY_LEN(keeper_verbs); i++)
        if (keeper_verbs[i].verb == verb && keeper_verbs[i].states & BIT(s->state) &&
            keeper_verbs[i].fds == fds)
            return &keeper_verbs[i];
    return NULL;
}

/* Which sandbox and which slot it speaks of is not for a keeper to say. */
static void on_keeper(struct launcher *l, struct slot *s)
{
    cleanup_close int fd = -1;
    struct launch_msg m;
    size_t n = 1;
    struct err e = {0};
    ssize_t got = fd_recv(s->keeper, &m, sizeof m, &fd, &n);
    const struct keeper_verb *v = got == sizeof m ? keeper_verb(s, m.verb, n) : NULL;

    if (passes((int)got)) {
        pause_a_little();
    } else if (v) {
        m.id = s->id;
        m.slot = s->index;
        v->run(l, s, &m, &fd);
    } else {
        (void)err_set(&e, ERR_HOST,
                      got == sizeof m ? "the keeper of slot %u spoke out of turn"
                                      : "the keeper of slot %u died",
                      s->index);
        bury_keeper(l, s, &e);
    }
}

/* ---- the loop ---- */

static void on_daemon(struct launcher *l)
{
    int fds[LAUNCH_FDS_MAX];
    size_t n = LAUNCH_FDS_MAX;
    struct launch_msg m;
    ssize_t got = fd_recv(l->daemon, &m, sizeof m, fds, &n);

    if (passes((int)got)) {
        pause_a_little();
        return;
    }
    if (got != sizeof m)
        exit(got == 0 ? EXIT_SUCCESS : EXIT_FAILURE); /* the kernel kills our namespace */
    for (size_t i = 0; i < ARRAY_LEN(daemon_verbs); i++)
        if (daemon_verbs[i].verb == m.verb && m.lazy_n <= LAUNCH_LAZY_MAX) {
            daemon_verbs[i].run(l, &m, fds, n);
            return;
        }
    exit(EXIT_FAILURE); /* not our daemon any more */
}

/* A keeper's socket closes before the keeper is dead: reaping only after other events would leave
 * the last one a zombie. */
static void reap(struct launcher *l)
{
    struct signalfd_siginfo si;
    pid_t pid;

    (void)!read(l->children, &si, sizeof si);
    do { /* keepers, zygotes, orphans, those that measure or remove groups */
        pid = waitpid(-1, NULL, WNOHANG);
        if (pid > 0) {
            measure_reaped(&l->measures, pid);
            slots_reaped(&l->slots, pid);
        }
    } while (pid > 0 || (pid < 0 && errno == EINTR));
}

/* Slots that a rush has left behind, groups of closed ones, sandboxes without a keeper.
 * Milliseconds until that is due again; -1: nothing is left. */
static int tidy(struct launcher *l)
{
    uint64_t now = clock_us();
    bool surplus, graves;

    if (now < l->tidy_at)
        return (int)((l->tidy_at - now) / 1000) + 1;
    l->tidy_at = now + (uint64_t)TIDY_MS * 1000;
    surplus = shrink(l);
    graves = slots_bury(&l->slots);
    if (l->orphan_looks > 0) {
        l->orphan_looks--;
        slots_kill_orphans();
    }
    return graves || l->orphan_looks > 0 ? TIDY_MS : surplus ? SHRINK_MS : -1;
}

static void on_event(struct launcher *l, uint64_t told)
{
    struct slot *s;

    if (told == LAUNCHER_DAEMON) {
        on_daemon(l);
    } else if (told == LAUNCHER_CHILDREN) {
        reap(l);
    } else {
        s = slot_of(&l->slots, told);
        if (s)
            on_keeper(l, s);
    }
}

void launcher_loop(struct launcher *l)
{
    struct epoll_event ev[EVENTS_MAX];

    for (;;) {
        int n = epoll_wait(l->slots.events, ev, EVENTS_MAX, tidy(l));

        if (n < 0 && !passes(-errno))
            exit(EXIT_FAILURE);
        if (n < 0)
            pause_a_little();
        for (int i = 0; i < n; i++)
            on_event(l, ev[i].data.u64);
        serve_waiting(l);
    }
}
