/* SPDX-License-Identifier: MIT */
/*
 * sandbox-launcher: the only holder of privilege.
 *
 * Theory of operation
 *
 *   daemon ──fd 3, SEQPACKET──▶ launcher ──▶ keepers ──▶ sandboxes
 *                                  └──▶ zygotes ──▶ keepers ──▶ sandboxes
 *
 * Three processes of this program exist. The outer one (`guard`) enters a user
 * namespace when it is not root, makes control groups, and forks the launcher as
 * pid 1 of a pid namespace: when that dies, by any cause, the kernel kills every
 * sandbox. The guard then starts another one; if the launcher ended because the
 * daemon closed its socket, the guard removes the groups and ends as well. The
 * third is a short-lived child that builds the template root.
 *
 * The launcher reads fixed-size messages and descriptors, nothing else; it never
 * opens a path below a directory that a tenant can write. It has one thread and
 * sleeps in poll().
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "core/port_jail.h"
#include "launch/keeper.h"
#include "launch/root.h"
#include "launch/runner.h"
#include "launch/slots.h"
#include "launch/sys.h"
#include "launch/zygote.h"

enum {
    DAEMON_FD = 3,
    SPARE_MIN = 1,    /* idle slots of a template kept ready once it is used */
    SPARE_MAX = 16,   /* more idle ones than that are closed */
    RESTARTS_MAX = 8,
    GRAVE_MS = 50,    /* between attempts to remove groups of closed slots */
};

struct launcher {
    int daemon;     /* owned */
    int mntns;      /* owned: template root */
    int workspaces; /* owned: directory of kept workspaces, or -1 */
    bool rootless, netns_fresh;
    uid_t uid_base;
    unsigned next_index;
    struct cgroups cgroups;
    struct filters filters;
    struct init_host exec_host;
    struct zygotes zygotes;
    struct slot slots[SLOTS_MAX];
    size_t slots_n; /* highest used + 1 */
    struct pending pending[PENDING_MAX];
    size_t pending_at, pending_n;
    unsigned graves[SLOTS_MAX]; /* closed slots whose groups are still there */
    size_t graves_n;
};

static int say(struct launcher *l, const struct launch_msg *m, const int *fds, size_t n)
{
    return fd_send(l->daemon, m, sizeof *m, fds, n);
}

static void refuse(struct launcher *l, struct launch_msg *m, const struct err *e)
{
    m->verb = LAUNCH_FAILED;
    m->err = *e;
    (void)!say(l, m, NULL, 0);
}

/* ---- slots ---- */

static size_t idle_slots(const struct launcher *l, enum plan_template t)
{
    size_t n = 0;

    for (size_t i = 0; i < l->slots_n; i++)
        n += l->slots[i].open && !l->slots[i].busy && l->slots[i].template == t;
    return n;
}

static void slot_close(struct launcher *l, struct slot *s)
{
    closep(&s->keeper); /* the keeper exits on end of file */
    closep(&s->pidfd);
    s->keeper = s->pidfd = -1;
    cgroup_slot_close(&s->cgroup);
    if (l->cgroups.version && l->graves_n < SLOTS_MAX)
        l->graves[l->graves_n++] = s->index;
    s->open = false;
}

/* A group can go only after its last process did. What refuses now is tried again, and at the very
 * end the guard removes everything. */
static void bury(struct launcher *l)
{
    size_t kept = 0;

    for (size_t i = 0; i < l->graves_n; i++)
        if (!cgroup_slot_remove(&l->cgroups, l->graves[i]))
            l->graves[kept++] = l->graves[i];
    l->graves_n = kept;
}

static struct keeper keeper_of(const struct launcher *l, const struct slot *s, int sock)
{
    struct keeper k = {
        .slot = s->index,
        .rootless = l->rootless,
        .netns_fresh = l->netns_fresh,
        .uid_first = l->uid_base + (s->index % SLOTS_MAX) * UIDS_PER_SLOT,
        .sock = sock,
        .mntns = l->mntns,
        .filters = &l->filters,
        .host = &l->exec_host,
    };

    memcpy(k.procs, s->cgroup.procs, sizeof k.procs);
    return k;
}

/* A keeper of our own, or one forked by the zygote of that template. */
static int start_keeper(struct launcher *l, struct slot *s, struct err *e)
{
    cleanup_close int here = -1, there = -1;
    struct keeper k;
    int sp[2], r;
    pid_t pid;

    r = fd_socketpair(SOCK_SEQPACKET, sp);
    if (r < 0)
        return err_sys(e, r, "keeper socket");
    here = sp[0], there = sp[1];
    k = keeper_of(l, s, there);
    if (s->template != TEMPLATE_EXEC) {
        if (zygotes_fork(&l->zygotes, s->template, &k, &s->generation, e) < 0)
            return -1;
    } else {
        pid = fork();
        if (pid < 0)
            return err_sys(e, -errno, "fork a keeper");
        if (pid == 0)
            keeper_run(&k);
    }
    s->keeper = take_fd(&here);
    return 0;
}

static struct slot *slot_open(struct launcher *l, enum plan_template t, struct err *e)
{
    struct slot *s = NULL;

    for (size_t i = 0; i < SLOTS_MAX && !s; i++)
        if (!l->slots[i].open) {
            s = &l->slots[i];
            l->slots_n = i + 1 > l->slots_n ? i + 1 : l->slots_n;
        }
    if (!s)
        return (void)err_set(e, ERR_BUSY, "all %d slots are in use", SLOTS_MAX), NULL;
    *s = (struct slot){.open = true, .index = l->next_index++, .template = t, .keeper = -1, .pidfd = -1};
    if (cgroup_slot_open(&l->cgroups, s->index, &s->cgroup, e) < 0) {
        s->open = false;
        return NULL;
    }
    if (start_keeper(l, s, e) < 0) {
        slot_close(l, s);
        return NULL;
    }
    return s;
}

static struct slot *slot_find_idle(struct launcher *l, enum plan_template t)
{
    for (size_t i = 0; i < l->slots_n; i++)
        if (l->slots[i].open && !l->slots[i].busy && l->slots[i].template == t)
            return &l->slots[i];
    return NULL;
}

/* ---- verbs ---- */

/* A kept workspace is a directory right below the one root, named by the daemon and checked here
 * again; the sandbox gets a detached mount of it. */
static int open_workspace(struct launcher *l, const struct launch_msg *m, uid_t owner, int *ret,
                          struct err *e)
{
    cleanup_close int dir = -1, tree = -1;

    if (l->workspaces < 0)
        return err_set(e, ERR_HOST, "no directory for kept workspaces");
    if (!memchr(m->workspace, '\0', sizeof m->workspace) || strchr(m->workspace, '/') || m->workspace[0] == '.')
        return err_set(e, ERR_CALLER, "bad workspace name");
    if (mkdirat(l->workspaces, m->workspace, 0700) < 0 && errno != EEXIST)
        return err_sys(e, -errno, "make workspace '%s'", m->workspace);
    dir = fd_open_beneath(l->workspaces, m->workspace, O_RDONLY | O_DIRECTORY, 0, FD_LINKS_NEVER);
    if (dir < 0)
        return err_sys(e, dir, "open workspace '%s'", m->workspace);
    if (!l->rootless && fchown(dir, owner, owner) < 0)
        return err_sys(e, -errno, "own workspace '%s'", m->workspace);
    tree = sys_open_tree(dir, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);
    if (tree < 0)
        return err_sys(e, -errno, "mount workspace '%s'", m->workspace);
    *ret = take_fd(&tree);
    return 0;
}

/* fds are borrowed. */
static int hand_over(struct launcher *l, struct slot *s, struct launch_msg *m, const int *fds, struct err *e)
{
    int with[LAUNCH_FDS_PREPARE + 1];
    cleanup_close int tree = -1;
    int r;

    if (cgroup_slot_limit(&l->cgroups, &s->cgroup, m->memory_max, m->pids_max, e) < 0)
        return -1;
    if (m->workspace[0] && open_workspace(l, m, l->uid_base, &tree, e) < 0)
        return -1;
    memcpy(with, fds, sizeof with[0] * LAUNCH_FDS_PREPARE);
    with[LAUNCH_FDS_PREPARE] = tree;
    m->slot = s->index;
    r = fd_send(s->keeper, m, sizeof *m, with, tree >= 0 ? LAUNCH_FDS_PREPARE + 1 : LAUNCH_FDS_PREPARE);
    if (r < 0)
        return err_sys(e, r, "keeper of slot %u", s->index);
    s->busy = true;
    s->id = m->id;
    return 0;
}

/* One spare keeps the next request from waiting for a keeper to be born. */
static void keep_spare(struct launcher *l, enum plan_template t)
{
    struct err ignored;

    if (idle_slots(l, t) < SPARE_MIN)
        (void)slot_open(l, t, &ignored);
}

static void verb_prepare(struct launcher *l, struct launch_msg *m, int *fds)
{
    struct slot *s;
    struct err e = {0};

    if (m->template >= TEMPLATE_COUNT) {
        (void)err_set(&e, ERR_BUG, "unknown template %u", m->template);
        refuse(l, m, &e);
    } else {
        s = slot_find_idle(l, (enum plan_template)m->template);
        if (!s)
            s = slot_open(l, (enum plan_template)m->template, &e);
        if (!s && e.kind == ERR_BUSY && l->pending_n < PENDING_MAX) {
            struct pending *p = &l->pending[(l->pending_at + l->pending_n++) % PENDING_MAX];

            p->msg = *m;
            memcpy(p->fds, fds, sizeof p->fds);
            return; /* the descriptors went along */
        }
        if (!s || hand_over(l, s, m, fds, &e) < 0)
            refuse(l, m, &e);
        else
            keep_spare(l, s->template);
    }
    fd_close_all(fds, LAUNCH_FDS_PREPARE);
}

static void verb_kill(struct launcher *l, struct launch_msg *m)
{
    for (size_t i = 0; i < l->slots_n; i++)
        if (l->slots[i].open && l->slots[i].busy && l->slots[i].id == m->id && l->slots[i].pidfd >= 0)
            (void)sys_pidfd_kill(l->slots[i].pidfd);
}

/* ---- what keepers tell ---- */

static int64_t oom_kills(const struct slot *s)
{
    char text[512] = "";
    const char *at;

    if (s->cgroup.usage[CG_USED_OOM] < 0 || pread(s->cgroup.usage[CG_USED_OOM], text, sizeof text - 1, 0) <= 0)
        return 0;
    at = strstr(text, "oom_kill ");
    return at ? strtoll(at + 9, NULL, 10) : 0;
}

static void on_started(struct launcher *l, struct slot *s, struct launch_msg *m, int pidfd)
{
    s->pidfd = pidfd;
    s->oom_before = oom_kills(s);
    m->flags = l->cgroups.version == 2 ? LAUNCH_CGROUP2 : 0;
    (void)!say(l, m, s->cgroup.usage, s->told || !l->cgroups.version ? 0 : LAUNCH_FDS_STARTED);
    s->told = true;
}

static void serve_pending(struct launcher *l)
{
    while (l->pending_n > 0) {
        struct pending *p = &l->pending[l->pending_at];
        struct slot *s = slot_find_idle(l, (enum plan_template)p->msg.template);
        struct err e = {0};

        if (!s)
            s = slot_open(l, (enum plan_template)p->msg.template, &e);
        if (!s)
            return;
        if (hand_over(l, s, &p->msg, p->fds, &e) < 0)
            refuse(l, &p->msg, &e);
        fd_close_all(p->fds, LAUNCH_FDS_PREPARE);
        l->pending_at = (l->pending_at + 1) % PENDING_MAX;
        l->pending_n--;
    }
}

static void on_dead(struct launcher *l, struct slot *s, struct launch_msg *m)
{
    bool clean = oom_kills(s) == s->oom_before && cgroup_slot_clean(&l->cgroups, &s->cgroup);
    bool retire = zygotes_outdated(&l->zygotes, s->template, s->generation) || !clean ||
                  idle_slots(l, s->template) >= SPARE_MAX;

    fd_close_all(&s->pidfd, 1);
    s->busy = false;
    m->flags = retire ? LAUNCH_RETIRED : 0;
    (void)!say(l, m, NULL, 0);
    if (retire)
        slot_close(l, s);
    serve_pending(l);
}

/* The keeper itself is gone or could not start: so is its sandbox. */
static void on_keeper_lost(struct launcher *l, struct slot *s, const struct err *e)
{
    struct launch_msg m = {.id = s->id, .slot = s->index};
    bool busy = s->busy;

    slot_close(l, s);
    if (busy)
        refuse(l, &m, e);
}

static void on_keeper(struct launcher *l, struct slot *s)
{
    struct launch_msg m;
    int fd = -1;
    size_t n = 1;
    struct err e = {0};
    ssize_t got = fd_recv(s->keeper, &m, sizeof m, &fd, &n);

    if (got != sizeof m) {
        (void)err_set(&e, ERR_HOST, "the keeper of slot %u died", s->index);
        on_keeper_lost(l, s, &e);
    } else if (m.verb == LAUNCH_STARTED && n == 1) {
        on_started(l, s, &m, fd);
    } else if (m.verb == LAUNCH_DEAD) {
        on_dead(l, s, &m);
    } else {
        on_keeper_lost(l, s, &m.err);
    }
}

/* ---- the loop ---- */

static void on_daemon(struct launcher *l)
{
    int fds[LAUNCH_FDS_PREPARE];
    size_t n = LAUNCH_FDS_PREPARE;
    struct launch_msg m;
    ssize_t got = fd_recv(l->daemon, &m, sizeof m, fds, &n);

    if (got != sizeof m)
        exit(got == 0 ? EXIT_SUCCESS : EXIT_FAILURE); /* the kernel kills our namespace */
    if (m.verb == LAUNCH_PREPARE && n == LAUNCH_FDS_PREPARE) {
        verb_prepare(l, &m, fds);
        return;
    }
    fd_close_all(fds, n);
    if (m.verb == LAUNCH_KILL)
        verb_kill(l, &m);
}

static void loop(struct launcher *l)
{
    static const short in = POLLIN;

    for (;;) {
        struct pollfd p[SLOTS_MAX + 1];
        size_t n = l->slots_n;

        p[0] = (struct pollfd){.fd = l->daemon, .events = in};
        for (size_t i = 0; i < n; i++)
            p[i + 1] = (struct pollfd){.fd = l->slots[i].open ? l->slots[i].keeper : -1, .events = in};
        if (poll(p, n + 1, l->graves_n ? GRAVE_MS : -1) < 0 && errno != EINTR)
            exit(EXIT_FAILURE);
        while (waitpid(-1, NULL, WNOHANG) > 0) /* keepers, zygotes, orphans */
            ;
        bury(l);
        for (size_t i = 0; i < n; i++)
            if (p[i + 1].revents && l->slots[i].open)
                on_keeper(l, &l->slots[i]);
        if (p[0].revents)
            on_daemon(l);
    }
}

/* ---- start ---- */

static unsigned traits(const struct launcher *l)
{
    unsigned t = JAIL_FS | JAIL_PID | JAIL_IPC | JAIL_UTS | JAIL_NET | JAIL_USER | JAIL_NNP | JAIL_NOCAPS |
                 JAIL_SECCOMP;

    if (l->cgroups.version && cgroups_has(&l->cgroups, CG_MEMORY))
        t |= JAIL_MEMORY;
    if (l->cgroups.version && cgroups_has(&l->cgroups, CG_PIDS))
        t |= JAIL_PIDS;
    if (l->cgroups.version && cgroups_has(&l->cgroups, CG_CPU))
        t |= JAIL_CPU;
    return t;
}

static int prepare(struct launcher *l, struct err *e)
{
    if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
        return err_sys(e, -errno, "private mount namespace");
    if (mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
        return err_sys(e, -errno, "own /proc");
    if (filters_build(&l->filters, e) < 0)
        return -1;
    if (root_template(l->rootless, &l->mntns, e) < 0)
        return -1;
    l->zygotes.mntns = l->mntns;
    return 0;
}

/* Pid 1 of the launcher's pid namespace. */
__attribute__((noreturn)) static void launcher_main(struct launcher *l)
{
    struct launch_msg hello = {.verb = LAUNCH_HELLO};

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)prctl(PR_SET_NAME, "sandbox-launch");
    (void)signal(SIGPIPE, SIG_IGN);
    l->exec_host = (struct init_host){.run = runner_exec};
    if (prepare(l, &hello.err) == 0) {
        hello.traits = traits(l);
        for (unsigned t = 0; t < TEMPLATE_COUNT; t++)
            hello.templates |= zygotes_has(&l->zygotes, (enum plan_template)t) ? BIT(t) : 0;
        (void)snprintf(hello.workspace, sizeof hello.workspace, "%s",
                       l->cgroups.version == 2   ? "cgroup2"
                       : l->cgroups.version == 1 ? "cgroup1"
                                                 : l->cgroups.why);
    }
    if (say(l, &hello, NULL, 0) < 0 || hello.err.kind != ERR_NONE)
        exit(EXIT_SUCCESS); /* the daemon has the reason; trying again would not help */
    loop(l);
    exit(EXIT_FAILURE);
}

/* ---- the guard ---- */

static int write_self(const char *path, const char *text)
{
    cleanup_close int fd = open(path, O_WRONLY | O_CLOEXEC);

    return fd < 0 || write(fd, text, strlen(text)) < 0 ? -errno : 0;
}

/* Without root: become root of a user namespace that maps nobody but us. */
static int enter_user_namespace(struct err *e)
{
    char map[48];
    uid_t uid = geteuid();
    gid_t gid = getegid();
    int r;

    if (unshare(CLONE_NEWUSER) < 0)
        return err_sys(e, -errno, "user namespace (is kernel.unprivileged_userns_clone or an AppArmor "
                                  "restriction in the way? see 'sbx doctor')");
    r = write_self("/proc/self/setgroups", "deny");
    (void)snprintf(map, sizeof map, "0 %u 1", (unsigned)uid);
    if (r == 0)
        r = write_self("/proc/self/uid_map", map);
    (void)snprintf(map, sizeof map, "0 %u 1", (unsigned)gid);
    if (r == 0)
        r = write_self("/proc/self/gid_map", map);
    return r < 0 ? err_sys(e, r, "map of the user namespace") : 0;
}

static int start_once(struct launcher *l, int *ret_status, struct err *e)
{
    pid_t pid;

    if (unshare(CLONE_NEWPID | CLONE_NEWNS) < 0) /* the new pid namespace is for the next child */
        return err_sys(e, -errno, "pid and mount namespace");
    pid = fork();
    if (pid < 0)
        return err_sys(e, -errno, "fork the launcher");
    if (pid == 0)
        launcher_main(l);
    while (waitpid(pid, ret_status, 0) < 0 && errno == EINTR)
        ;
    return 0;
}

static void refuse_to_start(struct launcher *l, const struct err *e)
{
    struct launch_msg hello = {.verb = LAUNCH_HELLO, .err = *e};

    (void)!say(l, &hello, NULL, 0);
}

static int guard(struct launcher *l)
{
    int mounts = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
    struct err e = {0};

    for (int restarts = 0; restarts < RESTARTS_MAX; restarts++) {
        int status = 0;

        cgroups_open(&l->cgroups, getppid());
        if (start_once(l, &status, &e) < 0) {
            refuse_to_start(l, &e);
            break;
        }
        cgroups_close(&l->cgroups);
        if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS)
            return EXIT_SUCCESS;
        if (setns(mounts, CLONE_NEWNS) < 0)
            break;
    }
    return EXIT_FAILURE;
}

static void raise_files(void)
{
    struct rlimit l;

    if (getrlimit(RLIMIT_NOFILE, &l) == 0) {
        l.rlim_cur = l.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &l);
    }
}

/* Arguments come from the daemon alone: uid base, netns mode, directory of workspaces, directory of
 * our programs. */
static struct launcher *parse(int argc, char **argv)
{
    struct launcher *l = calloc(1, sizeof *l);

    if (!l || argc < 5)
        return free(l), NULL;
    l->daemon = DAEMON_FD;
    l->mntns = l->workspaces = -1;
    l->uid_base = (uid_t)strtoul(argv[1], NULL, 10);
    l->netns_fresh = strcmp(argv[2], "fresh") == 0;
    if (argv[3][0])
        l->workspaces = open(argv[3], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    l->rootless = geteuid() != 0;
    zygotes_init(&l->zygotes, argv[4], -1);
    for (int i = 1; i < argc; i++) /* init inherits what /proc shows of us */
        memset(argv[i], 0, strlen(argv[i]));
    return l;
}

int main(int argc, char **argv)
{
    struct launcher *l = parse(argc, argv);
    struct err e = {0};

    if (!l || fcntl(DAEMON_FD, F_SETFD, FD_CLOEXEC) < 0) {
        (void)fprintf(stderr, "sandbox-launcher is started by sandbox-executor\n");
        return EXIT_FAILURE;
    }
    (void)prctl(PR_SET_NAME, "sandbox-guard");
    (void)signal(SIGINT, SIG_IGN); /* the terminal's; the daemon tells us by closing the socket */
    (void)signal(SIGTERM, SIG_IGN);
    (void)umask(022);
    raise_files();
    if (l->rootless && enter_user_namespace(&e) < 0) {
        refuse_to_start(l, &e);
        return EXIT_FAILURE;
    }
    return guard(l);
}
