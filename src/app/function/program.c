/* SPDX-License-Identifier: MIT */
#include "app/function/program.h"

#include <string.h>

#include "app/daemon/app.h"
#include "app/function/build.h"
#include "app/function/call_module.h"
#include "app/packages/sets.h"
#include "core/languages.h"
#include "function/dirs.h"
#include "lang/lang_call.h"
#include "store/shelf.h"

int program_init(struct program *p, struct app *a, const char *id, struct buf *text)
{
    p->tree = call_tree_new();
    if (!p->tree)
        return -1;
    p->app = a;
    p->id = id;
    p->text = *text;
    *text = BUF_INIT(0);
    p->lang = -1;
    p->where = (struct place){a->jail, a->engine};
    return 0;
}

void program_done(struct program *p)
{
    build_free(take_ptr(&p->build));
    package_set_release(take_ptr(&p->packages));
    rights_done(&p->rights);
    call_tree_drop(take_ptr(&p->tree));
    call_request_done(&p->request);
    buf_done(&p->inspected);
    buf_done(&p->dirs);
    buf_done(&p->text);
}

unsigned program_flags(const struct program *p)
{
    return call_lang((size_t)p->lang)->flags;
}

/* ---- checking ---- */

static int check_language(struct program *p, struct err *e)
{
    const struct call_request *r = &p->request;

    p->lang = call_lang_find(r->language.p, r->language.n);
    if (p->lang < 0) {
        (void)err_set(e, ERR_CALLER, "Unsupported language: %.64s", r->language.p);
        return err_type(e, ERR_NONE, "UnsupportedLanguage");
    }
    p->wasm = r->wasm || p->lang == CALL_WASM;
    if (p->wasm) {
        if (call_wasm_check(p->app, p->where.jail, (enum call_lang_id)p->lang, e) < 0)
            return err_type(e, ERR_NONE, "EngineNotAvailable");
    } else if (!lang_call_available((enum call_lang_id)p->lang)) {
        (void)err_set(e, ERR_HOST, "%s is not installed on this host",
                      call_lang((size_t)p->lang)->name);
        return err_type(e, ERR_NONE, "LanguageNotAvailable");
    }
    return 0;
}

int program_check(struct program *p, struct err *e)
{
    const struct config *conf = &p->app->config;
    const struct call_request *r = &p->request;

    if (place_find(p->app, r->isolation.p ? r->isolation.p : "", &p->where, e) < 0) {
        (void)err_wrap(e, "isolation");
        return err_type(e, ERR_NONE, "ValueError");
    }
    if (check_language(p, e) < 0)
        return -1;
    if (r->packages.p && p->wasm)
        return err_set(e, ERR_CALLER, "packages: WebAssembly cannot use them");
    if (r->packages.p && !p->where.jail->mounts_dependencies)
        return err_set(e, ERR_CALLER, "packages: jail '%s' cannot mount them; 'native' can",
                       p->where.jail->ops->name);
    if (r->input.p && p->lang != CALL_WASM)
        return err_set(e, ERR_CALLER, "stdin: only for language wasm");
    if (r->code.n > conf->code_max && p->lang != CALL_WASM)
        return err_set(e, ERR_CALLER, "code: longer than %zu bytes", (size_t)conf->code_max);
    if (memchr(r->code.p, '\0', r->code.n))
        return err_set(e, ERR_CALLER, "code: contains a NUL character");
    return 0;
}

/* ---- files ---- */

int program_dirs(struct program *p, struct err *e)
{
    return call_dirs_find(&p->dirs, &p->request, &p->tree->mount, e);
}

const char *program_dirs_text(const struct program *p)
{
    return p->dirs.n > 0 ? p->dirs.p : NULL;
}

const char *program_packages(const struct program *p)
{
    return p->packages ? shelf_item_name(p->packages) : NULL;
}

bool program_has_files(const struct program *p)
{
    return p->request.mount.p || p->request.permissions.p;
}

int program_load(struct program *p, struct err *e)
{
    const struct tree_load how = {p->app, &p->where, p->lang, &p->limits};

    rights_done(&p->rights);
    if (call_tree_load(p->tree, &p->request, &how, e) < 0 ||
        call_tree_fence(p->tree, &p->request, &p->rights, &p->fenced, e) < 0) {
        (void)err_type(e, ERR_DENIED, "PermissionDeniedError");
        return err_type(e, ERR_NONE, "MountError");
    }
    return 0;
}
