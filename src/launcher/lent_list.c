/* SPDX-License-Identifier: MIT */
#include "launcher/lent_list.h"

#include <errno.h>
#include <string.h>

static const char *text_next(struct lent_list *l, uint32_t n)
{
    const char *text = l->at;

    if (n > LAZY_TEXT_MAX || (size_t)(l->end - l->at) < (size_t)n + 1 || strnlen(text, n + 1) != n)
        return NULL;
    l->at += n + 1;
    return text;
}

int lent_next(struct lent_list *l, struct lent_entry *ret)
{
    if (l->at == l->end)
        return 0;
    if ((size_t)(l->end - l->at) < sizeof ret->row)
        return -EPROTO;
    memcpy(&ret->row, l->at, sizeof ret->row);
    l->at += sizeof ret->row;
    ret->path = text_next(l, ret->row.path_n);
    ret->host = ret->path ? text_next(l, ret->row.host_n) : NULL;
    return ret->host && ret->path[0] && ret->path[0] != '/' ? 1 : -EPROTO;
}
