/* SPDX-License-Identifier: MIT */
#include "launch/seatbelt.h"

#include <stdlib.h>
#include <string.h>

/* Programs and what they load. Nothing here is a user's. */
static const char *const system_dirs[] = {
    "/bin",
    "/sbin",
    "/usr/bin",
    "/usr/sbin",
    "/usr/lib",
    "/usr/libexec",
    "/usr/share",
    "/usr/local",
    "/opt/homebrew",
    "/System",
    "/Library/Frameworks",
    "/Library/Developer/CommandLineTools",
};

static const char *const system_files[] = {
    "/",
    "/private/etc/localtime",
    "/private/etc/protocols",
    "/private/etc/services",
    "/private/var/db/dyld",
    "/dev/null",
    "/dev/zero",
    "/dev/random",
    "/dev/urandom",
    "/dev/dtracehelper",
};

static const char *const writable_files[] = {"/dev/null", "/dev/zero", "/dev/dtracehelper",
                                             "/dev/tty"};

/* What a process asks of the kernel before its first line. */
static const char head[] =
    "(version 1)\n"
    "(deny default)\n"
    "(allow process-fork)\n"
    "(allow signal (target same-sandbox))\n"
    "(allow sysctl-read)\n"
    "(allow mach-lookup (global-name \"com.apple.system.opendirectoryd.libinfo\"))\n"
    "(allow file-read-metadata)\n";

/* A string of the language: backslash and quote are escaped, nothing else needs to be. */
static int put_path(struct buf *out, const char *kind, const char *path, struct err *e)
{
    if (path[0] != '/')
        return err_set(e, ERR_BUG, "a path of a profile must be absolute");
    (void)buf_printf(out, " (%s \"", kind);
    for (const char *p = path; *p; p++) {
        if ((unsigned char)*p < ' ' || *p == 0x7f)
            return err_set(e, ERR_CALLER, "a path with a control character cannot be in a profile");
        if (*p == '"' || *p == '\\')
            (void)buf_putc(out, '\\');
        (void)buf_putc(out, *p);
    }
    (void)buf_puts(out, "\")");
    return 0;
}

static int put_list(struct buf *out, const char *kind, const char *const *paths, size_t n,
                    struct err *e)
{
    for (size_t i = 0; i < n; i++)
        if (put_path(out, kind, paths[i], e) < 0)
            return -1;
    return 0;
}

static int put_own(struct buf *out, const struct seatbelt *s, struct err *e)
{
    if (put_path(out, "subpath", s->room, e) < 0)
        return -1;
    return s->workspace ? put_path(out, "subpath", s->workspace, e) : 0;
}

int seatbelt_profile(const struct seatbelt *s, struct buf *out, struct err *e)
{
    (void)buf_puts(out, head);
    (void)buf_puts(out, "(allow process-exec");
    if (put_list(out, "subpath", system_dirs, ARRAY_LEN(system_dirs), e) < 0 ||
        put_own(out, s, e) < 0)
        return -1;
    (void)buf_puts(out, ")\n(allow file-read*");
    if (put_list(out, "subpath", system_dirs, ARRAY_LEN(system_dirs), e) < 0 ||
        put_list(out, "literal", system_files, ARRAY_LEN(system_files), e) < 0 ||
        put_own(out, s, e) < 0)
        return -1;
    (void)buf_puts(out, ")\n(allow file-write*");
    if (put_list(out, "literal", writable_files, ARRAY_LEN(writable_files), e) < 0 ||
        put_own(out, s, e) < 0)
        return -1;
    (void)buf_puts(out, ")\n");
    if (s->network)
        (void)buf_puts(out, "(allow network*)\n");
    return out->failed ? err_set(e, ERR_HOST, "the profile is too long") : 0;
}

const char **seatbelt_argv(const char *profile, char *const *argv)
{
    size_t n = 0;
    const char **all;

    while (argv[n])
        n++;
    all = calloc(n + SEATBELT_ARGS + 1, sizeof *all);
    if (!all)
        return NULL;
    all[0] = SEATBELT_PATH;
    all[1] = "-p";
    all[2] = profile;
    memcpy(all + SEATBELT_ARGS, argv, n * sizeof *all);
    return all;
}
