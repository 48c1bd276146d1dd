/* SPDX-License-Identifier: MIT */
#include "fake/fake_lang.h"

#include <stdlib.h>
#include <string.h>

static const char *const argv[] = {"/bin/fake", NULL};
static const struct lang_fact only = {"fake", "1", true};

static const struct lang_fact *fact(size_t i)
{
    return i == 0 ? &only : NULL;
}

static int find(const char *name)
{
    return strcmp(name, only.name) == 0 ? 0 : -1;
}

static int plan(const struct exec_spec *s, struct plan **ret, struct err *e)
{
    struct plan *p;

    if (s->code.n == 6 && memcmp(s->code.p, "refuse", 6) == 0)
        return err_set(e, ERR_CALLER, "this cannot be planned");
    p = calloc(1, sizeof *p);
    if (!p)
        return err_set(e, ERR_HOST, "no memory");
    p->argv = argv;
    p->envp = argv + 1;
    p->cwd = "/workspace";
    p->limits = s->limits;
    *ret = p;
    return 0;
}

static void plan_free(struct plan *p)
{
    free(p);
}

const struct lang_ops fake_lang_ops = {fact, find, plan, plan_free};
