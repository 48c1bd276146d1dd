/* SPDX-License-Identifier: MIT */
#include "inspect/infer.h"

#include <string.h>

#include "inspect/schema.h"

enum { SCHEMA_MAX = INSPECT_TEXT_MAX * 8 };

static struct slice keep(struct walk *w, struct buf *b)
{
    struct slice s = {0};

    if (!b->failed && b->p)
        s = arena_copy(&w->m->arena, b->p, b->n);
    buf_done(b);
    return s;
}

/* Of an untyped parameter only the default tells what it wants; a number there does not mean that
 * fractions are refused. */
static void schema_of_default(struct slice json, struct buf *out)
{
    static const struct {
        const char *first, *schema;
    } guesses[] = {
        {"\"",          "{\"type\":\"string\"}" },
        {"tf",          "{\"type\":\"boolean\"}"},
        {"-0123456789", "{\"type\":\"number\"}" },
        {"[",           "{\"type\":\"array\"}"  },
        {"{",           "{\"type\":\"object\"}" },
    };

    for (size_t i = 0; json.p && json.n > 0 && i < ARRAY_LEN(guesses); i++)
        if (strchr(guesses[i].first, json.p[0])) {
            (void)buf_puts(out, guesses[i].schema);
            return;
        }
    (void)buf_puts(out, "{}");
}

static void infer_default(struct walk *w, struct param *p)
{
    struct buf json = BUF_INIT(SCHEMA_MAX);

    if (p->default_text.p && literal_to_json(w->m->dialect, p->default_text, &json))
        p->default_json = keep(w, &json);
    buf_done(&json);
}

static void infer_schema(struct walk *w, struct param *p)
{
    struct buf schema = BUF_INIT(SCHEMA_MAX);

    if (p->schema.p) /* the language knew better */
        return;
    if (p->native)
        schema_of_native(p->native, &schema);
    else if (p->type.p)
        schema_of_type(w->m->dialect, p->type, &schema);
    else
        schema_of_default(p->default_json, &schema);
    p->schema = keep(w, &schema);
}

static void infer_param(struct walk *w, struct param *p, const struct doc *d)
{
    const struct doc_entry *e = doc_find(d, p->name);

    if (e) {
        p->description = e->text;
        if (!p->type.p && e->type.n > 0)
            p->type = e->type;
    }
    infer_default(w, p);
    infer_schema(w, p);
}

static void infer_return(struct walk *w, struct function *f, const struct doc *d)
{
    struct buf schema = BUF_INIT(SCHEMA_MAX);

    f->return_doc = d->returns.text;
    if (!f->return_type.p && d->returns.type.n > 0)
        f->return_type = d->returns.type;
    if (f->return_native)
        schema_of_native(f->return_native, &schema);
    else if (f->return_type.p)
        schema_of_type(w->m->dialect, f->return_type, &schema);
    f->return_schema = keep(w, &schema);
}

void infer_function(struct walk *w, struct function *f, struct slice doc)
{
    struct doc d;

    doc_read(&w->m->arena, w->m->dialect, doc, &d);
    f->doc = doc;
    f->summary = d.summary;
    for (size_t i = 0; i < f->params_n; i++)
        infer_param(w, &f->params[i], &d);
    infer_return(w, f, &d);
}
