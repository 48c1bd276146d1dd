/* SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "selftest/witness_inner.h"

/* A victim that was not touched sleeps at the first look. */
enum { LOOKS_MAX = 10000, LOOK_MS = 1 };

static bool has(const char *text, size_t n, const char *what)
{
    return what[0] && memmem(text, n, what, strlen(what));
}

const char *witness_reads(const struct witness *w, const char *text, size_t n)
{
    if (!text || n == 0)
        return NULL;
    if (has(text, n, w->secret))
        return "the secret was read";
    if (strlen(w->host) > 3 && strcmp(w->host, "sandbox") != 0 && has(text, n, w->host))
        return "the name of the host was read";
    if (has(text, n, w->address))
        return "an address of the kernel was read";
    if (has(text, n, w->name) || has(text, n, w->shm_size))
        return "a directory or table of the host was read";
    for (size_t i = 0; i < LISTENERS; i++)
        if (has(text, n, w->inodes[i]))
            return "a table of the host's sockets was read";
    return has(text, n, w->machine) ? "the identity of the host was read" : NULL;
}

static bool look_at_files(const struct witness *w, char *out, size_t n)
{
    unsigned known = 0;
    bool changed = false;
    DIR *d = opendir(w->dir);

    for (struct dirent *at; d && (at = readdir(d));) {
        struct stat st;
        size_t i = 0;

        if (at->d_name[0] == '.' || strcmp(at->d_name, "door") == 0 ||
            strcmp(at->d_name, "letterbox") == 0)
            continue;
        if (strcmp(at->d_name, w->name) == 0)
            continue;
        while (i < WITNESS_CANARIES && strcmp(witness_canaries[i].name, at->d_name) != 0)
            i++;
        if (i < WITNESS_CANARIES && fstatat(dirfd(d), at->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
            st.st_size == (off_t)strlen(w->secret) &&
            (st.st_mode & 07777) == witness_canaries[i].mode) {
            known++;
            continue;
        }
        (void)snprintf(out, n, "file '%.40s' of the host", at->d_name);
        changed = true;
        if (i == WITNESS_CANARIES)
            (void)unlinkat(dirfd(d), at->d_name, 0);
    }
    if (d)
        (void)closedir(d);
    if (!changed && known < WITNESS_CANARIES) {
        (void)snprintf(out, n, "a file of the host is gone");
        changed = true;
    }
    if (changed && witness_put_canaries(w) < 0)
        (void)snprintf(out, n, "files of the host are gone");
    return changed;
}

static bool look_at_places(const struct witness *w, char *out, size_t n)
{
    static const char *const places[] = {"/usr/lib", "/etc",     "/bin", "/var/tmp",
                                         "/tmp",     "/dev/shm", "/dev", ""};
    char path[PATH_MAX];
    bool found = false;

    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        (void)snprintf(path, sizeof path, "%s/%s", places[i], w->mark);
        if (unlink(path) == 0) {
            (void)snprintf(out, n, "%.60s on the host", path);
            found = true;
        }
    }
    return found;
}

static bool look_at_listeners(const struct witness *w, char *out, size_t n)
{
    static const char *const names[LISTENERS] = {"TCP",           "TCP on IPv6", "UDP",
                                                 "abstract unix", "unix",        "unix datagrams"};
    bool heard = false;
    char byte[16];

    for (int i = 0; i < LISTENERS; i++) {
        for (int tries = 0; w->listeners[i] >= 0 && tries < 64; tries++) {
            cleanup_close int fd = -1;

            if (i == L_UDP || i == L_LETTERS) {
                if (recv(w->listeners[i], byte, sizeof byte, MSG_DONTWAIT) < 0)
                    break;
            } else {
                fd = accept4(w->listeners[i], NULL, NULL, SOCK_CLOEXEC);
                if (fd < 0)
                    break;
            }
            (void)snprintf(out, n, "the %s listener was reached", names[i]);
            heard = true;
        }
    }
    return heard;
}

static bool look_at_terminal(const struct witness *w, char *out, size_t n)
{
    char bytes[256];

    if (w->terminal.master < 0 || read(w->terminal.master, bytes, sizeof bytes) <= 0)
        return false;
    (void)snprintf(out, n, "a terminal of the host was written to");
    return true;
}

/* How ready the kernel is to kill it. */
static bool victim_is_offered(const struct witness *w, char *out, size_t n)
{
    char path[64], text[16] = "";
    cleanup_close int fd = -1;

    (void)snprintf(path, sizeof path, "/proc/%d/oom_score_adj", (int)w->victim);
    fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0 || read(fd, text, sizeof text - 1) <= 0 || strtol(text, NULL, 10) != WITNESS_OFFERED)
        return false;
    (void)!pwrite(fd, "0", 1, 0);
    (void)snprintf(out, n, "the victim would be killed first");
    return true;
}

static bool is_asleep(pid_t pid)
{
    char path[64], text[256] = "", *name_end;
    cleanup_close int fd = -1;

    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || read(fd, text, sizeof text - 1) <= 0)
        return false;
    name_end = strrchr(text, ')');
    return name_end && strncmp(name_end, ") S", 3) == 0;
}

/* A signal has woken it when the sender's call returns. On a busy machine it takes a while to die
 * of it, or to stop: looking too early would miss a breach. */
static pid_t victim_changed(const struct witness *w, int *status)
{
    pid_t got = 0;

    for (int looks = 0; looks < LOOKS_MAX; looks++) {
        got = waitpid(w->victim, status, WNOHANG | WUNTRACED);
        if (got != 0 || is_asleep(w->victim))
            break;
        (void)poll(NULL, 0, LOOK_MS);
    }
    return got;
}

static bool look_at_victim(struct witness *w, char *out, size_t n)
{
    int status = 0;
    struct err ignored;
    pid_t got = victim_changed(w, &status);

    if (got == 0)
        return victim_is_offered(w, out, n);
    (void)snprintf(out, n, "the victim was %s", WIFSTOPPED(status) ? "stopped" : "killed");
    if (WIFSTOPPED(status))
        reapp(&w->victim); /* a dead one was reaped just now, and its number may be another's */
    if (witness_plant_victim(w, &ignored) < 0)
        (void)snprintf(out, n, "the victim is gone, and there is no other");
    return true;
}

static bool look_at_names(const struct witness *w, char *out, size_t n)
{
    char host[NAME_ROOM] = "", domain[NAME_ROOM] = "";

    (void)!gethostname(host, sizeof host - 1);
    (void)!getdomainname(domain, sizeof domain - 1);
    if (strcmp(host, w->host) == 0 && strcmp(domain, w->domain) == 0)
        return false;
    (void)snprintf(out, n, "the host's name was changed");
    (void)!sethostname(w->host, strlen(w->host));
    (void)!setdomainname(w->domain, strlen(w->domain));
    return true;
}

/* A process that goes by the mark and is not the victim has outlived its run. */
static bool look_at_processes(const struct witness *w, char *out, size_t n)
{
    DIR *d = opendir("/proc");
    bool found = false;

    for (struct dirent *at; d && (at = readdir(d));) {
        char path[64], text[64] = "";
        cleanup_close int fd = -1;
        long pid = strtol(at->d_name, NULL, 10);

        if (pid <= 0)
            continue;
        (void)snprintf(path, sizeof path, "/proc/%ld/cmdline", pid);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0 || read(fd, text, sizeof text - 1) <= 0 || strcmp(text, w->mark) != 0)
            continue;
        (void)snprintf(out, n, "a process outlived its run");
        found = true;
        (void)kill((pid_t)pid, SIGKILL);
    }
    if (d)
        (void)closedir(d);
    return found;
}

bool witness_look(struct witness *w, char *out, size_t n)
{
    bool seen = look_at_victim(w, out, n);

    witness_put_letter(w); /* somebody may have taken it */
    seen |= look_at_files(w, out, n);
    seen |= look_at_places(w, out, n);
    seen |= look_at_listeners(w, out, n);
    seen |= look_at_terminal(w, out, n);
    seen |= look_at_names(w, out, n);
    return seen | look_at_processes(w, out, n);
}
