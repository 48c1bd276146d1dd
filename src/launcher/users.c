/* SPDX-License-Identifier: MIT */
#include "launcher/users.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"

/* The first that can be had. In a container that may not write to /run the second is its own. */
static const char *const directories[] = {"/run/sandbox-executor.users",
                                          "/dev/shm/sandbox-executor.users"};

/* Nobody but us may hold locks there. -errno */
static int open_directory(const char *path)
{
    cleanup_close int fd = -1;
    struct stat st;

    if (mkdir(path, 0700) < 0 && errno != EEXIST)
        return -errno;
    fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0)
        return -errno;
    return st.st_uid == geteuid() && !(st.st_mode & 077) ? take_fd(&fd) : -EPERM;
}

/* The number of a process is used again; with the time of its start it is unique. */
static int name_daemon(char out[USERS_OWNER_MAX])
{
    enum { START = 20 }; /* fields behind the name and the state */
    char path[32], text[1024] = "", *at;
    cleanup_close int fd = -1;

    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)getppid());
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || read(fd, text, sizeof text - 1) <= 0)
        return fd < 0 ? -errno : -EIO;
    at = strrchr(text, ')');
    for (int i = 0; at && i < START; i++)
        at = strchr(at + 1, ' ');
    if (!at)
        return -EPROTO;
    (void)snprintf(out, USERS_OWNER_MAX, "%d %llu\n", (int)getppid(), strtoull(at, NULL, 10));
    return 0;
}

/* 0, -EWOULDBLOCK when it is somebody else's, or -errno. */
static int take_range(struct users *u, unsigned range)
{
    cleanup_close int fd = -1;
    char name[16];

    if (u->lock[range] >= 0)
        return 0;
    (void)snprintf(name, sizeof name, "%u", range);
    fd = openat(u->dir, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0)
        return -errno;
    if (ftruncate(fd, 0) < 0 || write(fd, u->owner, strlen(u->owner)) < 0)
        return -errno;
    u->lock[range] = take_fd(&fd);
    return 0;
}

/* By another launcher of our daemon? */
static bool is_held_beside_us(const struct users *u, unsigned range)
{
    cleanup_close int fd = -1;
    char name[16], text[USERS_OWNER_MAX] = "";

    (void)snprintf(name, sizeof name, "%u", range);
    fd = openat(u->dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    return fd >= 0 && read(fd, text, sizeof text - 1) > 0 && strcmp(text, u->owner) == 0;
}

/* When each range was taken last; 0: never. */
static void times_taken(const struct users *u, int64_t out[USERS_RANGES])
{
    for (unsigned i = 0; i < USERS_RANGES; i++) {
        struct stat st;
        char name[16];

        (void)snprintf(name, sizeof name, "%u", i);
        out[i] = fstatat(u->dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0
                     ? 0
                     : st.st_mtim.tv_sec * INT64_C(1000000000) + st.st_mtim.tv_nsec;
    }
}

/* Of several the first from that range on. */
static unsigned longest_unused(const int64_t taken[USERS_RANGES], unsigned from)
{
    unsigned oldest = from;

    for (unsigned i = 1; i < USERS_RANGES; i++)
        if (taken[(from + i) % USERS_RANGES] < taken[oldest])
            oldest = (from + i) % USERS_RANGES;
    return oldest;
}

int users_claim(struct users *u, uid_t first, unsigned wanted, bool needed, struct err *e)
{
    int64_t taken[USERS_RANGES];
    int r = -ENOENT;

    *u = (struct users){.first = first, .dir = -1};
    for (size_t i = 0; i < USERS_RANGES; i++)
        u->lock[i] = -1;
    for (size_t i = 0; i < ARRAY_LEN(directories) && u->dir < 0; i++) {
        r = open_directory(directories[i]);
        u->dir = r < 0 ? -1 : r;
    }
    if (u->dir < 0)
        return err_sys(e, r, "directory of locks for the users of sandboxes, %s or %s",
                       directories[0], directories[1]);
    r = name_daemon(u->owner);
    if (r < 0)
        return err_sys(e, r, "the daemon's start in /proc");
    times_taken(u, taken);
    for (unsigned i = 0; i <= USERS_RANGES; i++) {
        u->range = i == 0 && needed ? wanted : longest_unused(taken, wanted);
        taken[u->range] = INT64_MAX;
        r = take_range(u, u->range);
        if (r == 0)
            return 0;
        if (r != -EWOULDBLOCK)
            return err_sys(e, r, "lock of range %u of the users of sandboxes", u->range);
    }
    return err_set(e, ERR_HOST, "other launchers have all %d ranges of users for sandboxes",
                   USERS_RANGES);
}

uid_t users_slots(const struct users *u)
{
    return u->first + (uid_t)u->range * USERS_PER_RANGE;
}

uid_t users_kept(const struct users *u)
{
    return users_slots(u) + USERS_OF_SLOTS;
}

uid_t users_zygotes(const struct users *u)
{
    return users_kept(u) + USERS_KEPT;
}

int users_map(const struct users *u, char *ret, size_t max)
{
    size_t n = (size_t)snprintf(ret, max, "%u %u %u\n", users_slots(u), users_slots(u),
                                (unsigned)USERS_OF_SLOTS + USERS_KEPT);

    for (unsigned i = 0; i < USERS_RANGES && n < max; i++) {
        uid_t kept = u->first + (uid_t)i * USERS_PER_RANGE + USERS_OF_SLOTS;

        if (u->used[i])
            n += (size_t)snprintf(ret + n, max - n, "%u %u %u\n", kept, kept, (unsigned)USERS_KEPT);
    }
    if (u->stranger && n < max)
        n += (size_t)snprintf(ret + n, max - n, "%u %u 1\n", u->stranger, u->stranger);
    return n < max ? 0 : -ENOSPC;
}

void users_add_stranger(struct users *u, uid_t uid)
{
    if (uid == 0 || uid == u->stranger || uid - u->first < USERS_RANGES * USERS_PER_RANGE)
        return;
    u->stranger = uid;
    u->used_n++;
}

bool users_is_kept(const struct users *u, uid_t uid)
{
    uid_t at = uid - u->first;

    return uid >= u->first && at / USERS_PER_RANGE < USERS_RANGES &&
           at % USERS_PER_RANGE >= USERS_OF_SLOTS &&
           at % USERS_PER_RANGE < USERS_OF_SLOTS + USERS_KEPT;
}

unsigned users_range_of(const struct users *u, uid_t uid)
{
    return (uid - u->first) / USERS_PER_RANGE;
}

bool users_may_use(struct users *u, uid_t uid)
{
    unsigned range = users_range_of(u, uid);

    if (!users_is_kept(u, uid) || (take_range(u, range) < 0 && !is_held_beside_us(u, range)))
        return false;
    if (range != u->range && !u->used[range]) {
        u->used[range] = true;
        u->used_n++;
    }
    return true;
}
