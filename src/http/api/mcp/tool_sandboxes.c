/* SPDX-License-Identifier: MIT */
/* create_sandbox, list_sandboxes, delete_sandbox. */
#include <string.h>

#include "app/daemon/app.h"
#include "app/sandbox/process.h"
#include "http/api/mcp/tools.h"

enum { LIST_MAX = 1000, S_PER_MIN = 60, MS_PER_MIN = 60000, MIB = 20 /* bits */, ENV_MAX = 1000 };

/* clang-format off */
#define AT(member) offsetof(struct tool_create_sandbox, member)
static const struct shape_field create_fields[] = {
    {"name", SHAPE_STRING, 0, AT(name)},
    {"env", SHAPE_STRINGS, 0, AT(env), 0, ENV_MAX},
    {"memory_mb", SHAPE_INT, 0, AT(memory_mb), 64, INT32_MAX},
    {"idle_minutes", SHAPE_INT, 0, AT(idle_minutes), 1, 1440},
};
#undef AT
const struct shape tool_create_sandbox_shape = {create_fields, ARRAY_LEN(create_fields), 0, NULL};
const struct shape tool_list_sandboxes_shape = {NULL, 0, 0, NULL};
static const struct shape_field delete_fields[] = {
    {"sandbox", SHAPE_STRING, SHAPE_REQUIRED, offsetof(struct tool_delete_sandbox, sandbox)},
};
const struct shape tool_delete_sandbox_shape = {delete_fields, ARRAY_LEN(delete_fields), 0, NULL};
/* clang-format on */

void tool_create_sandbox(struct tool_call *t)
{
    const struct tool_create_sandbox *a = t->arguments;
    const struct tool_sandbox_spec spec = {
        .name = a->name.p ? a->name.p : "",
        .env = a->env.v,
        .env_n = a->env.n,
        .memory_mb = (uint64_t)a->memory_mb,
        .idle_s = (uint64_t)a->idle_minutes * S_PER_MIN,
    };
    struct tool_result r = TOOL_RESULT;
    struct persistent *p;
    struct jw w = JW(&r.data);

    p = tool_sandbox_make(t, &spec);
    if (!p)
        return;
    jw_object(&w);
    jw_kv_string(&w, "sandbox", p->id);
    jw_kv_string(&w, "name", p->label.name);
    jw_kv_int(&w, "idle_minutes", (int64_t)(p->life.idle_ms / MS_PER_MIN));
    jw_kv_int(&w, "memory_mb", (int64_t)(p->limits.memory_max >> MIB));
    jw_object_end(&w);
    tool_answer_data(t, &r);
}

static int64_t running(const struct persistent *p)
{
    const struct process *one;
    int64_t n = 0;

    TAILQ_FOREACH(one, &p->processes.list, link)
    n += process_runs(one);
    return n;
}

static void write_sandbox(struct tool_call *t, struct tool_result *r, struct jw *w,
                          const struct persistent *p)
{
    bool named = strcmp(p->label.name, p->id) != 0;
    bool mine = t->session && strcmp(t->session->sandbox, p->id) == 0;
    struct usage usage;

    jw_object(w);
    jw_kv_string(w, "sandbox", p->id);
    jw_kv_string(w, "name", p->label.name);
    jw_kv_string(w, "created_at", p->life.created_at);
    jw_kv_int(w, "processes", running(p));
    if (persistent_usage(p, &usage) && usage.memory_peak >= 0)
        jw_kv_double(w, "memory_mb", (double)usage.memory_peak / (1 << MIB), 1);
    jw_kv_bool(w, "mine", mine);
    jw_object_end(w);
    (void)buf_printf(&r->text, "%s%s%s%s%s  since %s\n", p->id, named ? " (" : "",
                     named ? p->label.name : "", named ? ")" : "", mine ? "  (this session)" : "",
                     p->life.created_at);
}

void tool_list_sandboxes(struct tool_call *t)
{
    const struct sandboxes_query q = {.oldest_first = true};
    const struct persistent *all[LIST_MAX];
    struct tool_result r = TOOL_RESULT;
    struct jw w = JW(&r.data);
    bool more;
    size_t n = sandboxes_select(t->x->app->sandboxes, &q, LIST_MAX, all, &more);

    jw_object(&w);
    jw_key(&w, "sandboxes");
    jw_array(&w);
    for (size_t i = 0; i < n; i++)
        write_sandbox(t, &r, &w, all[i]);
    jw_array_end(&w);
    jw_object_end(&w);
    if (n == 0)
        (void)buf_puts(&r.text, "no sandboxes");
    tool_answer_data(t, &r);
}

void tool_delete_sandbox(struct tool_call *t)
{
    const struct tool_delete_sandbox *a = t->arguments;
    struct tool_result r = TOOL_RESULT;
    struct persistent *p;
    struct jw w = JW(&r.data);
    struct err e;

    if (sandboxes_find(t->x->app->sandboxes, a->sandbox.p, &p, &e) < 0) {
        tool_refuse(t, "list_sandboxes shows what is there", "there is no sandbox '%.128s'",
                    a->sandbox.p);
        return;
    }
    if (t->session && strcmp(t->session->sandbox, p->id) == 0)
        t->session->sandbox[0] = '\0';
    sandboxes_delete(p, NULL, NULL);
    jw_object(&w);
    jw_kv_string(&w, "sandbox", a->sandbox.p);
    jw_kv_bool(&w, "deleted", true);
    jw_object_end(&w);
    tool_answer_data(t, &r);
}
