/* SPDX-License-Identifier: MIT */
#include "lang/runners.h"

#include <string.h>
#include <unistd.h>

#include "core/languages.h"
#include "lang/lang_job.h"
#include "lang/lang_wasm.h"

/* What /execute runs. Two rows of facts each, because nothing here may be written at run time;
 * names, aliases and interpreters are in core/languages.c. */
/* clang-format off */
static const struct {
    enum call_lang_id id;
    struct lang_fact missing, present;
    lang_plan_fn *plan;
} langs[] = {
    [LANG_PYTHON]     = {CALL_PYTHON,     {"python", "", false},     {"python", "", true},     lang_python_plan},
    [LANG_JAVASCRIPT] = {CALL_JAVASCRIPT, {"javascript", "", false}, {"javascript", "", true}, lang_javascript_plan},
    [LANG_SHELL]      = {CALL_SHELL,      {"shell", "", false},      {"shell", "", true},      lang_shell_plan},
};
/* clang-format on */
_Static_assert(ARRAY_LEN(langs) == LANG_COUNT, "every language has a row");

static const struct lang_fact *fact(size_t i)
{
    if (i >= ARRAY_LEN(langs))
        return NULL;
    return access(language(langs[i].id)->interpreter, X_OK) == 0 ? &langs[i].present
                                                                 : &langs[i].missing;
}

static int find(const char *name)
{
    int id = language_find(name, strlen(name), LANGUAGE_EXECUTE);

    for (size_t i = 0; i < ARRAY_LEN(langs); i++)
        if ((int)langs[i].id == id)
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
