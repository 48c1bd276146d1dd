/* SPDX-License-Identifier: MIT */
#include "zygote/zygote.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/sys.h"
#include "init/order.h"

enum { PROGRAM_PATH_MAX = 128 };

/* Numerical libraries would start threads at import, and a fork keeps only one. */
/* clang-format off */
static char *const environment[] = {
#define VARIABLE(name, value, unless) (char *)name "=" value,
#include "core/variables.def"
#undef VARIABLE
    (char *)"OPENBLAS_NUM_THREADS=1",
    (char *)"OMP_NUM_THREADS=1",
    (char *)"LD_BIND_NOW=1", /* a symbol bound later would be bound again by every child */
    (char *)"MKL_NUM_THREADS=1",
    NULL,
};
/* clang-format on */

static bool is_complete(const struct zygotes *z, size_t t, int directory, bool wasm)
{
    if (!zygote_programs[t].program ||
        faccessat(directory, zygote_programs[t].program, X_OK, 0) < 0)
        return false;
    if (zygote_programs[t].companion &&
        faccessat(directory, zygote_programs[t].companion, R_OK, 0) < 0)
        return false;
    if (zygote_programs[t].needs && access(zygote_programs[t].needs, R_OK) < 0)
        return false;
    if (template_is_wasm((enum plan_template)t) && !wasm)
        return false;
    return !zygote_programs[t].runtime ||
           (z->runtimes >= 0 && faccessat(z->runtimes, zygote_programs[t].runtime, R_OK, 0) == 0);
}

/* ---- installed packages ---- */

static int64_t packages_changed(const struct zygotes *z)
{
    int64_t latest = 0;
    struct stat st;

    for (size_t i = 0; i < PACKAGE_TRACES; i++)
        if (z->installed[i] >= 0 && fstatat(z->installed[i], package_traces[i].name, &st, 0) == 0 &&
            st.st_mtime > latest)
            latest = st.st_mtime;
    return latest;
}

static void packages_look(struct zygotes *z)
{
    uint64_t now = clock_us();

    if (z->looked_us && now - z->looked_us < ZYGOTE_LOOK_S * UINT64_C(1000000))
        return;
    z->looked_us = now;
    z->packages = packages_changed(z);
}

unsigned zygotes_packages(const struct zygotes *z)
{
    return (unsigned)z->packages;
}

/* ---- programs ---- */

void zygotes_init(struct zygotes *z, int directory, const char *runtimes)
{
    z->mntns = -1;
    z->runtimes = *runtimes ? open(runtimes, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
    for (size_t i = 0; i < PACKAGE_TRACES; i++)
        z->installed[i] = open(package_traces[i].directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
    packages_look(z);
    for (size_t t = 0; t < TEMPLATE_COUNT; t++) {
        struct zygote *g = &z->of[t];

        *g = (struct zygote){.sock = -1, .next = -1};
        g->installed = is_complete(z, t, directory, *runtimes != '\0');
    }
}

bool zygotes_has(const struct zygotes *z, enum plan_template t)
{
    return !zygote_programs[t].program ||
           z->of[t].installed; /* without a program there is nothing to miss */
}

static int enter(const struct zygotes *z, enum plan_template t)
{
    if (z->uid_first)
        return space_enter(z->mntns,
                           &(struct space){z->uid_first + (uid_t)t, z->uid_first + (uid_t)t, z->map,
                                           CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS});
    return setns(z->mntns, CLONE_NEWNS) < 0 ? -errno : 0;
}

__attribute__((noreturn)) static void become_zygote(const struct zygotes *z, enum plan_template t,
                                                    int sock)
{
    char *const argv[] = {(char *)zygote_programs[t].program, (char *)zygote_programs[t].role,
                          NULL};
    char path[PROGRAM_PATH_MAX];
    int there = fcntl(sock, F_DUPFD_CLOEXEC, 64);
    int runtimes = zygote_programs[t].runtime ? fcntl(z->runtimes, F_DUPFD_CLOEXEC, 64) : -1;
    unsigned past = ZYGOTE_FD + 1;

    (void)signal(SIGTERM, SIG_DFL);
    (void)signal(SIGINT, SIG_DFL);
    if (sys_unblock_signals() < 0 || enter(z, t) < 0 || chdir("/") < 0 ||
        dup2(there, ZYGOTE_FD) < 0)
        _exit(126);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* forgotten where a process becomes another user */
    if (runtimes >= 0 && dup2(runtimes, (int)past++) < 0)
        _exit(126);
    if (close_range(past, ~0u, 0) < 0)
        _exit(126);
    (void)snprintf(path, sizeof path, ROOT_PROGRAMS "/%s", zygote_programs[t].program);
    (void)execve(path, argv, environment);
    _exit(127);
}

/* ---- generations ---- */

static int boot(const struct zygotes *z, enum plan_template t, int *ret_sock, struct err *e)
{
    cleanup_close int here = -1, there = -1;
    int sp[2], r;
    pid_t pid;

    if (!z->of[t].installed)
        return err_set(e, ERR_HOST, "%s is not installed", zygote_programs[t].program);
    r = fd_message_pair(sp);
    if (r < 0)
        return err_sys(e, r, "zygote socket");
    here = sp[0], there = sp[1];
    pid = fork();
    if (pid < 0)
        return err_sys(e, -errno, "fork a zygote");
    if (pid == 0)
        become_zygote(z, t, there);
    *ret_sock = take_fd(&here);
    return 0;
}

/* The socket is taken. An older generation ends when its last keeper does. */
static void begin_generation(struct zygotes *z, enum plan_template t, int *sock)
{
    struct zygote *g = &z->of[t];

    closep(&g->sock);
    g->sock = take_fd(sock);
    g->generation++;
    g->runs = 0;
    g->born_us = clock_us();
    g->packages = z->packages;
    g->maps = z->maps;
}

void zygotes_map_anew(struct zygotes *z, unsigned maps)
{
    z->maps = maps;
    for (size_t t = 0; t < TEMPLATE_COUNT; t++) { /* the next keeper waits for the next zygote */
        closep(&z->of[t].sock);
        closep(&z->of[t].next);
        z->of[t].sock = z->of[t].next = -1;
    }
}

static int start(struct zygotes *z, enum plan_template t, struct err *e)
{
    cleanup_close int sock = -1;

    if (boot(z, t, &sock, e) < 0)
        return -1;
    begin_generation(z, t, &sock);
    return 0;
}

static bool spent(const struct zygotes *z, const struct zygote *g)
{
    return g->runs >= ZYGOTE_RUNS_MAX ||
           clock_us() - g->born_us >= ZYGOTE_SECONDS_MAX * UINT64_C(1000000) ||
           z->packages != g->packages;
}

/* Nobody waits for the next generation: it is started beside the old one and takes over when it
 * says that it is warm. One that dies before is tried again. */
static void renew(struct zygotes *z, enum plan_template t)
{
    struct zygote *g = &z->of[t];
    struct err ignored;
    ssize_t said;
    char warm;

    packages_look(z);
    if (g->sock < 0 || !spent(z, g))
        return;
    if (g->next < 0) {
        (void)boot(z, t, &g->next, &ignored);
        return;
    }
    said = recv(g->next, &warm, sizeof warm, MSG_DONTWAIT);
    if (said == sizeof warm)
        begin_generation(z, t, &g->next);
    else if (said == 0 || (errno != EAGAIN && errno != EINTR))
        closep(&g->next);
}

static int order(const struct zygote *g, const struct keeper *k)
{
    struct zygote_msg m = {
        .slot = k->slot,
        .host = k->host,
        .devices = k->devices >= 0,
    };
    int fds[2 + CG_CONTROLLER_COUNT] = {k->sock};
    size_t n = 1;

    if (k->devices >= 0)
        fds[n++] = k->devices;
    for (size_t i = 0; i < CG_CONTROLLER_COUNT; i++)
        if (k->procs[i] >= 0) {
            m.procs_mask |= BIT(i);
            fds[n++] = k->procs[i];
        }
    return fd_send(g->sock, &m, sizeof m, fds, n);
}

int zygotes_fork(struct zygotes *z, enum plan_template t, const struct keeper *k,
                 unsigned *ret_generation, struct err *e)
{
    struct zygote *g = &z->of[t];
    int r;

    renew(z, t);
    if (g->sock < 0 && start(z, t, e) < 0)
        return -1;
    r = order(g, k);
    if (r == -EPIPE || r == -ECONNRESET) { /* it died: once more with a new one */
        if (start(z, t, e) < 0)
            return -1;
        r = order(g, k);
    }
    if (r < 0)
        return err_sys(e, r, "%s", zygote_programs[t].program);
    *ret_generation = g->generation;
    return 0;
}

bool zygotes_outdated(struct zygotes *z, enum plan_template t, unsigned generation)
{
    struct zygote *g = &z->of[t];

    if (t == TEMPLATE_EXEC || template_is_prestarted(t)) {
        packages_look(z);
        return generation != zygotes_packages(z);
    }
    g->runs++;
    renew(z, t);
    return generation != g->generation;
}
