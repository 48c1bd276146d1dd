/* SPDX-License-Identifier: MIT */
/*
 * sandbox-launcher for systems that are not Linux, and for the jails that need nothing of it
 * (launcher_posix.h). The directory of all rooms is the guard's to remove.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launch/guard.h"
#include "launch/launcher_posix.h"
#include "launch/tree.h"

#define USERS_FILE "/var/run/sandbox-executor.users"

enum {
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
static void clean_up(struct launcher *l, bool accident)
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

static int begin(struct launcher *l, struct err *e)
{
    (void)signal(SIGPIPE, SIG_IGN);
    return l->rootless ? 0 : users_claim(l, e);
}

static int prepare(struct launcher *l, struct err *e)
{
    return rooms_make(l->rooms, e);
}

static pid_t start(const struct launcher *l, struct err *e)
{
    pid_t pid = fork();

    (void)l;
    return pid < 0 ? err_sys(e, -errno, "fork the launcher") : pid;
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

    if (!l || argc < GUARD_ARGUMENTS || !find_kind(argv[7], &l->seatbelt))
        return free(l), NULL;
    l->daemon = GUARD_DAEMON_FD;
    l->rootless = geteuid() != 0;
    l->uid_base = (uid_t)strtoul(argv[1], NULL, 10);
    l->user = (uid_t)strtoul(argv[8], NULL, 10);
    l->group = (gid_t)strtoul(argv[9], NULL, 10);
    kept_init(&l->kept, argv[3], 0, l->rootless);
    kept_be_plain(&l->kept, l->user, l->group);
    guard_hide_arguments(argc, argv);
    return l;
}

int main(int argc, char **argv)
{
    static const struct guard guard = {begin, prepare, start, clean_up};

    return guard_run(&guard, parse(argc, argv));
}
