/* SPDX-License-Identifier: MIT */
/* define_tools: source text becomes tools. */
#include <string.h>

#include "app/daemon/app.h"
#include "app/tools/toolbox.h"
#include "http/api/mcp/tools.h"

static const char *const languages[] = {"python", "javascript", "ruby", "php", "c", "cpp", NULL};

/* clang-format off */
#define AT(member) offsetof(struct tool_define_tools, member)
static const struct shape_field fields[] = {
    {"bundle", SHAPE_STRING, 0, AT(bundle)},
    {"code", SHAPE_STRING, 0, AT(code)},
    {"language", SHAPE_CHOICE, 0, AT(language), .words = languages},
    {"remove", SHAPE_BOOL, 0, AT(remove)},
};
#undef AT
const struct shape tool_define_tools_shape = {fields, ARRAY_LEN(fields), 0, NULL};
/* clang-format on */

/* A change under way. */
struct defining {
    struct tool_call *t;
    struct publication *publication;
    char bundle[BUNDLE_NAME_MAX + 1];
    bool remove;
};

static void write_tool(struct jw *w, const struct published *t)
{
    jw_object(w);
    jw_kv_string(w, "name", t->name);
    jw_kv_string(w, "bundle", t->bundle->is.name.p);
    jw_kv_int(w, "version", t->bundle->is.version);
    jw_key(w, "description");
    jw_raw(w, t->description.p, t->description.n);
    jw_key(w, "inputSchema");
    jw_raw(w, t->schema.p, t->schema.n);
    jw_object_end(w);
}

static void list(struct tool_call *t)
{
    struct published **all = toolbox_sorted(t->x->app->mcp_side.tools);
    struct tool_result r = TOOL_RESULT;
    struct jw w = JW(&r.data);

    jw_object(&w);
    jw_key(&w, "tools");
    jw_array(&w);
    for (size_t i = 0; all && all[i]; i++)
        write_tool(&w, all[i]);
    jw_array_end(&w);
    jw_object_end(&w);
    if (all && !all[0])
        (void)buf_puts(&r.text, "no tools are defined");
    free(all);
    tool_answer_data(t, &r);
}

static void on_stop(void *user)
{
    struct defining *d = user;
    struct tool_call *t = d->t;

    publication_leave(d->publication);
    free(d);
    tool_free(t);
}

static void answer_made(struct tool_call *t, const struct bundle *b)
{
    struct tool_result r = TOOL_RESULT;
    struct jw w = JW(&r.data);

    jw_object(&w);
    jw_kv_string(&w, "bundle", b->is.name.p);
    jw_kv_int(&w, "version", b->is.version);
    jw_key(&w, "tools");
    jw_array(&w);
    for (size_t i = 0; i < b->tools_n; i++)
        write_tool(&w, &b->tools[i]);
    jw_array_end(&w);
    jw_key(&w, "warnings");
    jw_raw(&w, b->is.warnings.p, b->is.warnings.n);
    jw_object_end(&w);
    tool_answer_data(t, &r);
}

static void answer_removed(struct tool_call *t, const char *bundle)
{
    struct tool_result r = TOOL_RESULT;
    struct jw w = JW(&r.data);

    jw_object(&w);
    jw_kv_string(&w, "bundle", bundle);
    jw_kv_bool(&w, "removed", true);
    jw_key(&w, "tools");
    jw_array(&w);
    jw_array_end(&w);
    jw_object_end(&w);
    tool_answer_data(t, &r);
}

static const char *hint_of(const struct err *e)
{
    if (e->type)
        return "rename the function, or remove that bundle";
    switch (e->kind) {
    case ERR_BUSY:
        return "try again in a few seconds";
    case ERR_ABSENT:
        return "define_tools without arguments lists what is defined";
    case ERR_CALLER:
        return "correct the source text and define the bundle again";
    case ERR_NONE:
    case ERR_DENIED:
    case ERR_HOST:
    case ERR_BUG:
    case ERR_KIND_COUNT:
        break;
    }
    return "try again; the log of the server says more";
}

static void on_done(void *user, const struct bundle *b, bool made, const struct err *why)
{
    struct defining *d = user;
    struct tool_call *t = d->t;

    (void)made;
    if (why)
        tool_refuse_err(t, hint_of(why), why);
    else if (b)
        answer_made(t, b);
    else
        answer_removed(t, d->bundle);
    free(d);
}

static int begin(struct defining *d, const struct tool_define_tools *a, struct err *e)
{
    struct toolbox *tools = d->t->x->app->mcp_side.tools;
    const char *language = languages[a->language];
    const struct change_order change = {
        .bundle = a->bundle, .by = "mcp", .done = on_done, .user = d};
    const struct publish_order publish = {
        .bundle = a->bundle,
        .language = {language, strlen(language)},
        .code = a->code,
        .prefix = {"",       0               },
        .expected_version = -1,
        .by = "mcp",
        .reserved = mcp_tool_is_reserved,
        .done = on_done,
        .user = d,
    };

    if (a->remove)
        return toolbox_remove(tools, &change, &d->publication, e);
    if (!a->code.p)
        return err_set(e, ERR_CALLER, "code is missing: source text with at least one function");
    return toolbox_publish(tools, &publish, &d->publication, e);
}

void tool_define_tools(struct tool_call *t)
{
    const struct tool_define_tools *a = t->arguments;
    struct defining *d;
    struct err e;

    if (!a->bundle.p && !a->code.p && !a->remove) {
        list(t);
        return;
    }
    d = calloc(1, sizeof *d);
    if (!d) {
        tool_refuse(t, "try again in a second", "out of memory");
        return;
    }
    d->t = t;
    (void)snprintf(d->bundle, sizeof d->bundle, "%s", a->bundle.p ? a->bundle.p : "");
    if (begin(d, a, &e) == 0) {
        tool_wait(t, &(struct mcp_worker){.stop = on_stop, .user = d});
        return;
    }
    free(d);
    tool_refuse_err(t, hint_of(&e), &e);
}
