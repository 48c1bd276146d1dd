/* SPDX-License-Identifier: MIT */
#include "http/api/e2b/envd_entry.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/base64.h"
#include "base/clock.h"

enum { NUMBER_MAX = 24, PERMISSIONS = 0777 };

/* ---- users and paths ---- */

/* Authorization: Basic base64("NAME:"); "" when it is not there. False: malformed. */
static bool basic_name(const struct http_call *c, char out[ENVD_USER_MAX])
{
    const char *text = http_header(c, "authorization");
    cleanup_with(buf_done) struct buf name = BUF_INIT(2 * ENVD_USER_MAX);
    size_t n;

    out[0] = '\0';
    if (!text || strncasecmp(text, "basic ", 6) != 0)
        return true;
    text += 6 + strspn(text + 6, " ");
    if (base64_decode(text, strlen(text), &name) < 0)
        return false;
    n = name.p ? strcspn(name.p, ":") : 0;
    if (n >= ENVD_USER_MAX)
        return false;
    memcpy(out, name.p ? name.p : "", n);
    out[n] = '\0';
    return true;
}

bool envd_user(const struct http_call *c, char out[ENVD_USER_MAX])
{
    static const char *const known[] = {"", "user", "root", "sandbox"};

    if (strstr(http_request(c)->query, "username=")) {
        if (!http_query(c, "username", out, ENVD_USER_MAX))
            return false;
    } else if (!basic_name(c, out)) {
        return false;
    }
    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if (strcmp(out, known[i]) == 0)
            return true;
    return false;
}

int envd_path(const struct persistent *p, const char *user, const char *path, size_t n, char **ret,
              struct err *e)
{
    const char *home = strcmp(user, "root") == 0 ? "/root" : persistent_home(p);

    if (n >= PATH_MAX || (n > 0 && memchr(path, '\0', n)))
        return err_set(e, ERR_CALLER, "a path has at most 4095 bytes, none of them NUL");
    if (n > 0 && path[0] == '~') {
        if (n > 1 && path[1] != '/')
            return err_set(e, ERR_CALLER, "the home of another user: %.300s", path);
        path++;
        n--;
        if (asprintf(ret, "%s/%.*s", home, (int)n, path) < 0)
            return err_set(e, ERR_HOST, "no memory for a path");
    } else if (asprintf(ret, "%s%s%.*s", n > 0 && path[0] == '/' ? "" : home,
                        n > 0 && path[0] == '/' ? "" : "/", (int)n, n > 0 ? path : "") < 0) {
        return err_set(e, ERR_HOST, "no memory for a path");
    }
    entry_path_clean(*ret);
    if (strlen(*ret) < PATH_MAX)
        return 0;
    free(*ret);
    *ret = NULL;
    return err_set(e, ERR_CALLER, "a path has at most 4095 bytes");
}

/* ---- EntryInfo ---- */

void envd_write_metadata(struct jw *w, const struct file_entry *e)
{
    const char *p = e->metadata.p, *end = p + e->metadata.n;

    if (e->metadata.n == 0)
        return;
    jw_key(w, "metadata");
    jw_object(w);
    while (p < end) {
        const char *value = p + strlen(p) + 1;

        if (value >= end)
            break;
        jw_kv_string(w, p, value);
        p = value + strlen(value) + 1;
    }
    jw_object_end(w);
}

/* Of a link: of what it leads to. */
static const char *type_of(uint32_t mode)
{
    return S_ISREG(mode)   ? "FILE_TYPE_FILE"
           : S_ISDIR(mode) ? "FILE_TYPE_DIRECTORY"
                           : "FILE_TYPE_UNSPECIFIED";
}

void envd_write_entry(struct jw *w, const struct entry_path *p, const struct file_entry *e)
{
    uint32_t mode = S_ISLNK(e->mode) ? e->target_mode : e->mode;
    char permissions[ENTRY_PERMISSIONS], size[NUMBER_MAX], time[CLOCK_ISO_MAX];
    struct bytes name = entry_name(p);

    entry_permissions(e->mode, 'L', permissions);
    (void)snprintf(size, sizeof size, "%llu", (unsigned long long)e->size);
    jw_object(w);
    jw_kv_bytes(w, "name", name.p, name.n);
    jw_kv_string(w, "type", type_of(mode));
    jw_key(w, "path");
    entry_write_path(w, p);
    jw_kv_string(w, "size", size);
    jw_kv_int(w, "mode", (mode ? mode : e->mode) & PERMISSIONS);
    jw_kv_string(w, "permissions", permissions);
    jw_kv_string(w, "owner", e->owner);
    jw_kv_string(w, "group", e->group);
    jw_kv_string(w, "modifiedTime", clock_iso_at(e->modified.s, e->modified.ns, time));
    if (S_ISLNK(e->mode)) {
        jw_key(w, "symlinkTarget");
        if (e->target.n > 0)
            jw_bytes(w, e->target.p, e->target.n);
        else
            entry_write_path(w, p);
    }
    envd_write_metadata(w, e);
    jw_object_end(w);
}
