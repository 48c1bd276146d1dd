/* SPDX-License-Identifier: MIT */
#include "app/sandbox/filing.h"

int filing_start(struct persistent *p, const struct file_order *o, filework_fn *done, void *user,
                 struct filework **ret, struct err *e)
{
    return filework_start(p->crew, o, done, user, ret, e);
}
