/* SPDX-License-Identifier: MIT */
#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

/* clang-format off */
static const char *const kind_names[] = {
    [ERR_NONE]   = "none",
    [ERR_CALLER] = "caller",
    [ERR_DENIED] = "denied",
    [ERR_ABSENT] = "absent",
    [ERR_BUSY]   = "busy",
    [ERR_HOST]   = "host",
    [ERR_BUG]    = "bug",
};
/* clang-format on */
_Static_assert(ARRAY_LEN(kind_names) == ERR_KIND_COUNT, "every kind has a name");

const char *err_kind_name(enum err_kind kind)
{
    return kind_names[kind];
}

int err_set(struct err *e, enum err_kind kind, const char *fmt, ...)
{
    va_list ap;

    e->kind = kind;
    e->sys = 0;
    va_start(ap, fmt);
    (void)vsnprintf(e->text, sizeof e->text, fmt, ap);
    va_end(ap);
    return -1;
}

int err_sys(struct err *e, int negative_errno, const char *fmt, ...)
{
    va_list ap;
    size_t used;

    e->sys = -negative_errno;
    e->kind = e->sys == ENOENT ? ERR_ABSENT : ERR_HOST;
    va_start(ap, fmt);
    (void)vsnprintf(e->text, sizeof e->text, fmt, ap);
    va_end(ap);

    used = strlen(e->text);
    (void)snprintf(e->text + used, sizeof e->text - used, ": %s", strerror(e->sys));
    return -1;
}

int err_wrap(struct err *e, const char *fmt, ...)
{
    char inner[sizeof e->text];
    va_list ap;
    size_t used;

    memcpy(inner, e->text, sizeof inner);
    va_start(ap, fmt);
    (void)vsnprintf(e->text, sizeof e->text, fmt, ap);
    va_end(ap);

    used = strlen(e->text);
    (void)snprintf(e->text + used, sizeof e->text - used, ": %s", inner);
    return -1;
}

void err_send(int fd, const struct err *e)
{
    (void)!write(fd, e, sizeof *e); /* nobody to tell if this fails */
}

int err_recv(int fd, struct err *e)
{
    ssize_t n;

    do
        n = read(fd, e, sizeof *e);
    while (n < 0 && errno == EINTR);
    if (n == 0)
        return 0;
    if (n != sizeof *e || e->kind <= ERR_NONE || e->kind >= ERR_KIND_COUNT)
        (void)err_set(e, ERR_BUG, "garbled report (%zd bytes)", n);
    e->text[sizeof e->text - 1] = '\0';
    return 1;
}
