/* SPDX-License-Identifier: MIT */
/*
 * sandbox-launcher for systems that are not Linux, and for the jails that need nothing of it
 * (launcher_posix.h). The outer process starts the launcher, and another one should that end by
 * accident; the directory of all rooms is its to remove.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "launch/launcher_posix.h"
#include "launch/tree.h"

#define USERS_FILE "/var/run/sandbox-executor.users"

enum {
    DAEMON_FD = 3,
    RESTARTS_MAX = 8,
    RESTARTS_WITHIN_S = 60,
    ARGUMENTS = 10,
    RANGES_MAX = 256, /* of users: as many launchers, as root, on one host */
    PASSES_MAX = 100, /* over what a launcher left that ended by accident */
    PASS_MS = 20,
};

/*
 * A run's user is killed as a whole, so no other launcher of this host may have it, whichever
 * daemon's that is. A range of users is ours as long as we hold a lock on its byte of a file.
 */
static int users_claim(struct launcher *l, struct err *e)
{
    int fd = open(USERS_FILE, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};

    if (fd < 0)
        return err_sys(e, -errno, USERS_FILE);
    for (int i = 0; i < RANGES_MAX; i++) {
        lock.l_start = i;
        if (fcntl(fd, F_SETLK, &lock) == 0) {
            l->uid_base += (uid_t)i * PLACES_MAX;
            return 0; /* the descriptor stays open until we end */
        }
    }
    (void)close(fd);
    return err_set(e, ERR_HOST, "%d launchers have all users there are for runs", RANGES_MAX);
}

/* Its inits end by themselves, for their leash has; users of theirs are looked through. */
static void clean_up(const struct launcher *l, bool accident)
{
    for (int pass = 0; accident && pass < PASSES_MAX; pass++) {
        size_t more = l->rootless ? 0 : tree_kill_user(l->uid_base, PLACES_MAX);

        room_remove(l->rooms);
        if (more == 0 && access(l->rooms, F_OK) < 0)
            return;
        (void)poll(NULL, 0, PASS_MS);
    }
    room_remove(l->rooms);
}

static int start_once(struct launcher *l, int *ret_status, struct err *e)
{
    pid_t pid;

    if (rooms_make(l->rooms, e) < 0)
        return -1;
    pid = fork();
    if (pid < 0)
        return err_sys(e, -errno, "fork the launcher");
    if (pid == 0)
        launcher_main(l);
    while (waitpid(pid, ret_status, 0) < 0 && errno == EINTR)
        ;
    clean_up(l, !WIFEXITED(*ret_status) || WEXITSTATUS(*ret_status) != EXIT_SUCCESS);
    return 0;
}

static void refuse_to_start(const struct launcher *l, const struct err *e)
{
    struct launch_msg hello = {.verb = LAUNCH_HELLO, .err = *e};

    (void)!fd_send(l->daemon, &hello, sizeof hello, NULL, 0);
}

static int guard(struct launcher *l)
{
    struct err e = {0};

    for (int restarts = 0; restarts < RESTARTS_MAX; restarts++) {
        uint64_t born_us = clock_us();
        int status = 0;

        if (start_once(l, &status, &e) < 0) {
            refuse_to_start(l, &e);
            break;
        }
        if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS)
            return EXIT_SUCCESS;
        if (clock_us() - born_us > RESTARTS_WITHIN_S * UINT64_C(1000000))
            restarts = 0;
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

static bool find_kind(const char *name, bool *ret_seatbelt)
{
    static const struct {
        bool built; /* -Djails */
        const char *name;
        bool seatbelt;
    } kinds[] = {
        {SBX_JAIL_SUBPROCESS, "subprocess", false},
        {SBX_JAIL_SEATBELT,   "seatbelt",   true },
    };

    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        if (kinds[i].built && strcmp(kinds[i].name, name) == 0) {
            *ret_seatbelt = kinds[i].seatbelt;
            return true;
        }
    return false;
}

/* The arguments are those of every launcher (client.c); some mean nothing here. */
static struct launcher *parse(int argc, char **argv)
{
    struct launcher *l = calloc(1, sizeof *l);

    if (!l || argc < ARGUMENTS || !find_kind(argv[7], &l->seatbelt))
        return free(l), NULL;
    l->daemon = DAEMON_FD;
    l->rootless = geteuid() != 0;
    l->uid_base = (uid_t)strtoul(argv[1], NULL, 10);
    l->user = (uid_t)strtoul(argv[8], NULL, 10);
    l->group = (gid_t)strtoul(argv[9], NULL, 10);
    kept_init(&l->kept, argv[3], 0, l->rootless);
    kept_be_plain(&l->kept, l->user, l->group);
    for (int i = 1; i < argc; i++) /* init inherits what lists of processes show of us */
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
    (void)signal(SIGINT, SIG_IGN); /* the terminal's; the daemon tells us by closing the socket */
    (void)signal(SIGTERM, SIG_IGN);
    (void)signal(SIGPIPE, SIG_IGN);
    (void)umask(022);
    raise_files();
    if (!l->rootless && users_claim(l, &e) < 0) {
        refuse_to_start(l, &e);
        return EXIT_FAILURE;
    }
    return guard(l);
}
