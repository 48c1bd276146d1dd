/* SPDX-License-Identifier: MIT */
#include "launcher/slots.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/sys.h"
#include "init/process_tree.h"
#include "launcher/devices.h"
#include "walls/keeper.h"

enum {
    PURGES_MAX = 100,
    PURGE_MS = 2,
    SPARE_MAX = 16,     /* idle slots of a template that stay */
    SPARE_US = 2000000, /* the others go when nobody has used them for so long */
    RECLAIM_S = 2,      /* at most, to free what a tenant left in its group */
    KEEP_FROM = 16,     /* above what the remover's descriptors become */
    STATUS_MAX = 4096,  /* of /proc/PID/status */
};

void slot_become(struct slot *s, enum slot_state to)
{
    s->state = to;
    if (to == SLOT_IDLE)
        s->idle_since = clock_us();
    if (to == SLOT_MAKING)
        s->doomed = false;
}

size_t slots_idle(const struct slots *all, enum plan_template t, bool space)
{
    size_t n = 0;

    for (size_t i = 0; i < all->n; i++)
        n += all->slot[i].state == SLOT_IDLE && all->slot[i].template == t &&
             all->slot[i].space == space;
    return n;
}

size_t slots_births(const struct slots *all, enum plan_template t)
{
    size_t n = 0;

    for (size_t i = 0; i < all->n; i++)
        n += all->slot[i].state == SLOT_MAKING && all->slot[i].template == t;
    return n;
}

static bool has_zygote(const struct slot *s)
{
    return s->template != TEMPLATE_EXEC && !template_is_prestarted(s->template);
}

bool slots_space(const struct slots *all, const struct launch_msg *m)
{
    return all->kind == &keeper_native && !all->host.rootless &&
           (m->template == TEMPLATE_EXEC ||
            template_is_prestarted((enum plan_template)m->template)) &&
           !(m->flags & (LAUNCH_PERSISTENT | LAUNCH_HOST_NET));
}

bool slot_reaches(const struct slots *all, const struct slot *s)
{
    return !(has_zygote(s) || s->space) || s->maps == all->zygotes.maps;
}

/*
 * Under load sandboxes die in bunches: their slots are idle for a moment and wanted in the next.
 * Closing them at once would make a new keeper, with groups and a network of its own, necessary
 * for every few runs.
 */
struct slot *slot_surplus(struct slots *all, uint64_t now, bool *ret_later)
{
    size_t idle[TEMPLATE_COUNT][2] = {0};

    *ret_later = false;
    for (size_t i = 0; i < all->n; i++) {
        struct slot *s = &all->slot[i];

        if (s->state != SLOT_IDLE ||
            (++idle[s->template][s->space] <= SPARE_MAX && slot_reaches(all, s)))
            continue;
        if (now - s->idle_since >= SPARE_US || !slot_reaches(all, s))
            return s;
        *ret_later = true;
    }
    return NULL;
}

void slot_close(struct slots *all, struct slot *s)
{
    if (s->keeper >= 0) /* keepers that start now have it, too, for a moment */
        (void)epoll_ctl(all->events, EPOLL_CTL_DEL, s->keeper, NULL);
    fd_close_all(&s->keeper, 1); /* the keeper exits on end of file */
    fd_close_all(&s->pidfd, 1);
    cgroup_slot_close(&s->cgroup);
    if (all->cgroups.version && all->graves_n < SLOTS_MAX)
        all->graves[all->graves_n++] = s->index;
    slot_become(s, SLOT_CLOSED);
}

/* Bounded: what outruns so many passes is met again at the next loss, or by the guard. */
void slots_purge(const struct slots *all)
{
    pid_t keepers[SLOTS_MAX];
    size_t n = 0;

    for (size_t i = 0; i < all->n; i++)
        if (all->slot[i].state != SLOT_CLOSED && all->slot[i].pid > 0)
            keepers[n++] = all->slot[i].pid;
    for (int pass = 0; pass < PURGES_MAX && tree_kill(getpid(), keepers, n) > 0; pass++)
        (void)poll(NULL, 0, PURGE_MS);
}

/* Is it a child of ours, and pid 1 of a namespace of its own? */
static bool is_orphan(int proc, const char *name)
{
    char path[32], text[STATUS_MAX] = "";
    cleanup_close int fd = -1;
    const char *parent, *numbers;
    int of = 0, here, inside = 0;

    (void)snprintf(path, sizeof path, "%.10s/status", name);
    fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || read(fd, text, sizeof text - 1) <= 0)
        return false;
    parent = strstr(text, "\nPPid:");
    numbers = strstr(text, "\nNSpid:");
    return parent && numbers && sscanf(parent, " PPid: %d", &of) == 1 && of == getpid() &&
           sscanf(numbers, " NSpid: %d %d", &here, &inside) == 2 && inside == 1;
}

void slots_kill_orphans(void)
{
    DIR *d = opendir("/proc");

    if (!d)
        return;
    for (struct dirent *at; (at = readdir(d));)
        if (isdigit((unsigned char)at->d_name[0]) && is_orphan(dirfd(d), at->d_name))
            (void)kill((pid_t)strtol(at->d_name, NULL, 10), SIGKILL);
    (void)closedir(d);
}

/* The end of RECLAIM_S: the system call it interrupts returns. */
static void on_alarm(int number)
{
    (void)number;
}

/* In the remover: no descriptor but those of the groups stays open. A copy of a keeper's socket
 * would keep that keeper alive. */
static int keep_groups_only(struct cgroups *c)
{
    int at = 3;

    for (size_t k = 0; k < CG_CONTROLLER_COUNT; k++)
        if (c->dir[k] >= 0 && (c->dir[k] = fcntl(c->dir[k], F_DUPFD_CLOEXEC, KEEP_FROM)) < 0)
            return -errno;
    for (size_t k = 0; k < CG_CONTROLLER_COUNT; k++)
        if (c->dir[k] >= 0) {
            if (dup2(c->dir[k], at) < 0)
                return -errno;
            c->dir[k] = at++;
        }
    return fd_close_from(at);
}

__attribute__((noreturn)) static void remove_groups(struct slots *all)
{
    const struct sigaction alarmed = {.sa_handler = on_alarm};

    if (keep_groups_only(&all->cgroups) < 0 || sigaction(SIGALRM, &alarmed, NULL) < 0 ||
        sys_unblock_signals() < 0)
        _exit(1);
    for (size_t i = 0; i < all->graves_n; i++) {
        bool emptied;

        (void)alarm(RECLAIM_S);
        emptied = cgroup_slot_reclaim(&all->cgroups, all->graves[i]);
        (void)alarm(0);
        if (emptied) /* else its last process could end in between, and nothing would be freed */
            (void)cgroup_slot_remove(&all->cgroups, all->graves[i]);
    }
    _exit(0);
}

/*
 * A group can go only after its last process did, so what refuses now is tried again, and at the
 * very end the guard removes everything. Freeing what a tenant left takes as long as that is much:
 * a process of its own does it, one at a time.
 */
bool slots_bury(struct slots *all)
{
    size_t kept = 0;

    if (all->remover > 0)
        return true;
    for (size_t i = 0; i < all->graves_n; i++)
        if (!cgroup_slot_is_gone(&all->cgroups, all->graves[i]))
            all->graves[kept++] = all->graves[i];
    all->graves_n = kept;
    if (kept == 0)
        return false;
    all->remover = fork();
    if (all->remover == 0)
        remove_groups(all);
    return true; /* no process to be had: later */
}

void slots_reaped(struct slots *all, pid_t pid)
{
    if (pid == all->remover)
        all->remover = 0;
}

/* By place, not by index: two that live at the same time must never share one. */
uid_t slot_user(const struct slots *all, struct slot *s)
{
    return all->uid_base + (uid_t)(s - all->slot) * UIDS_PER_SLOT + ++s->made % UIDS_PER_SLOT;
}

static struct keeper keeper_of(const struct slots *all, const struct slot *s, int sock)
{
    struct keeper k = {
        .kind = all->kind,
        .slot = s->index,
        .host = all->host,
        .rooms = all->rooms,
        .sock = sock,
        .mntns = all->mntns,
        .filters = &all->filters,
        .program = all->program,
        .devices = -1,
        .space = {all->zygotes.uid_first + (uid_t)s->template,
                  all->uid_base + (uid_t)(s - all->slot) * UIDS_PER_SLOT,
                  s->space ? all->zygotes.map : NULL},
    };

    memcpy(k.procs, s->cgroup.procs, sizeof k.procs);
    return k;
}

/* The place in the upper half, the index below. What was heard of a keeper may be looked at after
 * another has its place, and its descriptor, too. */
static int watch(const struct slots *all, const struct slot *s)
{
    struct epoll_event ev = {.events = EPOLLIN,
                             .data.u64 = (uint64_t)(s - all->slot) << 32 | s->index};

    return epoll_ctl(all->events, EPOLL_CTL_ADD, s->keeper, &ev) < 0 ? -errno : 0;
}

struct slot *slot_of(struct slots *all, uint64_t told)
{
    struct slot *s = &all->slot[told >> 32];

    return s->state != SLOT_CLOSED && s->index == (uint32_t)told ? s : NULL;
}

/* A keeper that the launcher forks, or the zygote of that template. */
static int start_keeper(struct slots *all, struct slot *s, struct err *e)
{
    cleanup_close int here = -1, there = -1, devices = -1;
    struct keeper k;
    int sp[2], r;
    pid_t pid;

    r = fd_message_pair(sp);
    if (r < 0)
        return err_sys(e, r, "keeper socket");
    here = sp[0], there = sp[1];
    k = keeper_of(all, s, there);
    if (all->kind->rooted && !all->host.rootless) {
        k.devices = devices = devices_make();
        if (devices < 0)
            return err_sys(e, devices, "devices of slot %u", s->index);
    }
    if (has_zygote(s)) {
        if (zygotes_fork(&all->zygotes, s->template, &k, &s->generation, e) < 0)
            return -1;
        s->maps = all->zygotes.of[s->template].maps;
    } else {
        pid = fork();
        if (pid < 0)
            return err_sys(e, -errno, "fork a keeper");
        if (pid == 0) {
            if (sys_unblock_signals() < 0)
                _exit(1);
            keeper_run(&k);
        }
        s->pid = pid;
        s->maps = all->zygotes.maps;
        s->generation = zygotes_packages(&all->zygotes);
    }
    s->keeper = take_fd(&here);
    r = watch(all, s);
    return r < 0 ? err_sys(e, r, "hear of the keeper of slot %u", s->index) : 0;
}

struct slot *slot_open(struct slots *all, enum plan_template t, bool space, struct err *e)
{
    struct slot *s = NULL;

    for (size_t i = 0; i < SLOTS_MAX && !s; i++)
        if (all->slot[i].state == SLOT_CLOSED) {
            s = &all->slot[i];
            all->n = i + 1 > all->n ? i + 1 : all->n;
        }
    if (!s)
        return (void)err_set(e, ERR_BUSY, "all %d slots are in use", SLOTS_MAX), NULL;
    *s = (struct slot){
        .index = all->next_index++, .template = t, .space = space, .keeper = -1, .pidfd = -1};
    if (cgroup_slot_open(&all->cgroups, s->index, !has_zygote(s) && !s->space, &s->cgroup, e) < 0)
        return NULL;
    slot_become(s, SLOT_IDLE);
    if (start_keeper(all, s, e) < 0) {
        slot_close(all, s);
        return NULL;
    }
    return s;
}

/* Keepers stay on one processor (keeper_cpu()): the one on which the least is being made. */
struct slot *slot_find_idle(struct slots *all, enum plan_template t, bool space)
{
    unsigned births[CPU_SETSIZE] = {0};
    struct slot *best = NULL;

    for (size_t i = 0; i < all->n; i++)
        births[keeper_cpu(all->slot[i].index, all->cpus_n)] += all->slot[i].state == SLOT_MAKING;
    for (size_t i = 0; i < all->n; i++) {
        struct slot *s = &all->slot[i];

        if (s->state == SLOT_IDLE && s->template == t && s->space == space &&
            slot_reaches(all, s) &&
            (!best || births[keeper_cpu(s->index, all->cpus_n)] <
                          births[keeper_cpu(best->index, all->cpus_n)]))
            best = s;
    }
    return best;
}
