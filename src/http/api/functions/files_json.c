/* SPDX-License-Identifier: MIT */
/* Files that a call changed, as JSON. */
#include <string.h>

#include "base/base64.h"
#include "base/utf8.h"
#include "http/api/functions/function_json.h"

enum {
    ESCAPE_FACTOR = 6, /* one byte becomes at most \u00XX */
    CHANGE_ROOM = 512, /* a change beside its texts */
};

static void write_content(struct jw *w, const char *key, const char *p, size_t n)
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(BASE64_LENGTH(n) + 1);

    jw_key(w, key);
    if (utf8_is_valid(p, n)) {
        jw_bytes(w, p, n);
        return;
    }
    if (base64_encode(p, n, &text) < 0)
        w->out->failed = true;
    jw_object(w);
    jw_kv_bytes(w, "base64", text.p ? text.p : "", text.n);
    jw_object_end(w);
}

static void write_old(struct jw *w, const struct call_file *old)
{
    if (old->unread)
        jw_kv_bool(w, "oldContentOmitted", true);
    else
        write_content(w, "oldContent", old->content.p ? old->content.p : "", old->content.n);
}

static void write_change(struct jw *w, const struct change *one, bool contents)
{
    char at[CLOCK_ISO_MAX];

    jw_object(w);
    jw_kv_string(w, "type", change_operation(one->type));
    jw_kv_bytes(w, "path", one->path, strlen(one->path));
    if (contents && one->has_content)
        write_content(w, "content", one->content.p ? one->content.p : "", one->content.n);
    else if (contents && one->type != CHANGE_DELETED)
        jw_kv_bool(w, "contentOmitted", true);
    if (contents && one->before)
        write_old(w, one->before);
    jw_kv_int(w, "size", (int64_t)one->size);
    if (one->mtime_s > 0)
        jw_kv_string(w, "timestamp", clock_iso_at(one->mtime_s, one->mtime_ns, at));
    jw_object_end(w);
}

static void write_changes(struct jw *w, const struct changes *all, enum change_type t,
                          bool contents)
{
    static const char *const keys[CHANGE_TYPES] = {"created", "modified", "deleted"};

    jw_key(w, keys[t]);
    jw_array(w);
    for (size_t i = 0; i < all->n; i++)
        if (all->v[i].type == t && !all->v[i].denied)
            write_change(w, &all->v[i], contents);
    jw_array_end(w);
}

static void write_denied(struct jw *w, const struct changes *all, bool wanted)
{
    jw_key(w, "denied");
    jw_array(w);
    for (size_t i = 0; i < all->n && wanted; i++) {
        const struct change *one = &all->v[i];

        if (!one->denied || one->ignored)
            continue;
        jw_object(w);
        jw_kv_bytes(w, "path", one->path, strlen(one->path));
        jw_kv_string(w, "operation", change_operation(one->type));
        if (one->unjudged)
            jw_kv_string(w, "reason", "the rules took too many steps");
        jw_object_end(w);
    }
    jw_array_end(w);
}

void files_json(struct jw *w, const struct changes *all, const struct call_request *r,
                int64_t left_out)
{
    left_out += all->left_out;
    if (!r->reporting.changes)
        return;
    jw_key(w, "files");
    jw_object(w);
    for (int t = 0; t < CHANGE_TYPES; t++)
        write_changes(w, all, (enum change_type)t, r->reporting.contents);
    write_denied(w, all, r->reporting.denied);
    if (left_out > 0)
        jw_kv_int(w, "leftOut", left_out);
    jw_object_end(w);
}

size_t files_room(const struct changes *all)
{
    size_t room = 0;

    for (size_t i = 0; i < all->n; i++) {
        const struct change *one = &all->v[i];
        size_t old = one->before && !one->before->unread ? one->before->content.n : 0;

        room += ESCAPE_FACTOR * (strlen(one->path) + one->content.n + old) + CHANGE_ROOM;
    }
    return room;
}
