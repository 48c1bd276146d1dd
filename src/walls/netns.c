/* SPDX-License-Identifier: MIT */
#include "walls/netns.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/hash.h"

/* No TIME_WAIT may outlive its process; low ports are nobody's inside; nothing is remembered of
 * past connections. Best effort: what cannot be set shows as a trace and costs only the reuse. */
static const struct {
    const char *path, *value;
} settings[] = {
    {"/proc/sys/net/ipv4/tcp_max_tw_buckets",         "0"},
    {"/proc/sys/net/ipv4/ip_unprivileged_port_start", "0"},
    {"/proc/sys/net/ipv4/tcp_no_metrics_save",        "1"},
};

/*
 * Everything in them but the first is counted per namespace, and there only its first line is. What
 * netstat has counts packets and connections in more detail, and takes longest to print: none of it
 * moves unless one of these does. Kept open: finding them takes as long as reading.
 */
static const char *const files[NETNS_FILES] = {"/proc/self/net/sockstat", "/proc/self/net/dev",
                                               "/proc/self/net/snmp", "/proc/self/net/snmp6"};
enum { SOCKSTAT };

/* Beside 127.0.0.1 it has 198.18.0.1/15: every address of that range is local, so that names can
 * have addresses at which a door listens (egress/names.h). Nobody listens unless there is a door.
 */
static int loopback_up(void)
{
    cleanup_close int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct ifreq up = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING},
                 names = {.ifr_name = "lo:1"};
    struct sockaddr_in *at = (struct sockaddr_in *)&names.ifr_addr;

    *at = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(0xc6120001)};
    if (s < 0 || ioctl(s, SIOCSIFFLAGS, &up) < 0 || ioctl(s, SIOCSIFADDR, &names) < 0)
        return -errno;
    at->sin_addr.s_addr = htonl(0xfffe0000);
    return ioctl(s, SIOCSIFNETMASK, &names) < 0 ? -errno : 0;
}

static void apply_settings(void)
{
    for (size_t i = 0; i < ARRAY_LEN(settings); i++) {
        cleanup_close int fd = open(settings[i].path, O_WRONLY | O_CLOEXEC);

        if (fd >= 0)
            (void)!write(fd, settings[i].value, strlen(settings[i].value));
    }
}

static uint64_t fingerprint(const struct netns *ns)
{
    uint64_t print = 0;
    char text[4096];

    for (size_t i = SOCKSTAT + 1; i < NETNS_FILES; i++) {
        ssize_t n = ns->files[i] < 0 ? 0 : sizeof text;

        for (off_t at = 0; n == sizeof text; at += n) { /* less than was asked for: the end */
            n = pread(ns->files[i], text, sizeof text, at);
            print = hash_bytes(print, text, n > 0 ? (size_t)n : 0);
        }
    }
    return print;
}

/* "sockets: used N" is per namespace and counts every family; the other lines are not. */
static bool has_sockets(const struct netns *ns)
{
    static const char none[] = "sockets: used 0\n";
    char text[sizeof none - 1];

    return ns->files[SOCKSTAT] < 0 ||
           pread(ns->files[SOCKSTAT], text, sizeof text, 0) != sizeof text ||
           memcmp(text, none, sizeof text) != 0;
}

void netns_init(struct netns *n)
{
    *n = (struct netns){0};
    for (size_t i = 0; i < NETNS_FILES; i++)
        n->files[i] = -1;
}

int netns_new(struct netns *n)
{
    int r;

    fd_close_all(n->files, NETNS_FILES); /* they would keep the last one alive */
    if (unshare(CLONE_NEWNET) < 0)
        return -errno;
    r = loopback_up();
    if (r < 0)
        return r;
    apply_settings();
    for (size_t i = 0; i < NETNS_FILES; i++)
        n->files[i] = open(files[i], O_RDONLY | O_CLOEXEC);
    n->print = fingerprint(n);
    return 0;
}

bool netns_untouched(const struct netns *n)
{
    return !has_sockets(n) && fingerprint(n) == n->print;
}
