/* SPDX-License-Identifier: MIT */
#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int err_set(struct err *e, enum err_kind kind, const char *fmt, ...)
{
    va_list ap;

    e->kind = kind;
    e->sys = 0;
    e->type = NULL;
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
    e->type = NULL;
    e->kind = e->sys == ENOENT ? ERR_ABSENT : ERR_HOST;
    va_start(ap, fmt);
    (void)vsnprintf(e->text, sizeof e->text, fmt, ap);
    va_end(ap);

    used = strlen(e->text);
    (void)snprintf(e->text + used, sizeof e->text - used, ": %s", strerror(e->sys));
    return -1;
}

int err_type(struct err *e, enum err_kind kind, const char *type)
{
    if (!e->type && (kind == ERR_NONE || e->kind == kind))
        e->type = type;
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
