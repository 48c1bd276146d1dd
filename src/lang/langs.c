/* SPDX-License-Identifier: MIT */
#include "lang/langs.h"

#include <string.h>
#include <unistd.h>

#include "lang/lang_job.h"
#include "lang/lang_wasm.h"

enum { ALIASES_MAX = 3 };

/* Two rows of facts each, because nothing here may be written at run time. */
/* clang-format off */
static const struct {
    struct lang_fact missing, present;
    const char *alias[ALIASES_MAX];
    const char *interpreter;
    lang_plan_fn *plan;
} langs[] = {
    [LANG_PYTHON] = {
        {"python", "", false}, {"python", "", true}, {"python3", "py"},
        "/usr/bin/python3", lang_python_plan,
    },
    [LANG_JAVASCRIPT] = {
        {"javascript", "", false}, {"javascript", "", true}, {"js", "node", "nodejs"},
        "/usr/bin/node", lang_javascript_plan,
    },
    [LANG_SHELL] = {
        {"shell", "", false}, {"shell", "", true}, {"bash", "sh"},
        "/bin/bash", lang_shell_plan,
    },
};
/* clang-format on */
_Static_assert(ARRAY_LEN(langs) == LANG_COUNT, "every language has a row");

static const struct lang_fact *fact(size_t i)
{
    if (i >= ARRAY_LEN(langs))
        return NULL;
    return access(langs[i].interpreter, X_OK) == 0 ? &langs[i].present : &langs[i].missing;
}

static bool has_name(size_t i, const char *name)
{
    if (strcmp(langs[i].present.name, name) == 0)
        return true;
    for (size_t k = 0; k < ALIASES_MAX && langs[i].alias[k]; k++)
        if (strcmp(langs[i].alias[k], name) == 0)
            return true;
    return false;
}

static int find(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(langs); i++)
        if (has_name(i, name))
            return (int)i;
    return -1;
}

static int plan(const struct exec_spec *s, struct plan **ret, struct err *e)
{
    struct lang_job *j;
    int at = find(s->language);

    if (at < 0)
        return err_set(e, ERR_CALLER, "unknown language '%.32s'", s->language);
    if ((s->wasm ? lang_wasm_plan : langs[at].plan)(s, &j, e) < 0)
        return -1;
    *ret = &j->plan;
    return 0;
}

static void plan_free(struct plan *p)
{
    lang_job_free((struct lang_job *)p);
}

const struct lang_ops lang_ops = {
    .fact = fact,
    .find = find,
    .plan = plan,
    .plan_free = plan_free,
};
