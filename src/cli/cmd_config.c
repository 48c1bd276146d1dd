/* SPDX-License-Identifier: MIT */
/* sbx config: which daemon this command line speaks to, and how that one is set. */
#include <stdlib.h>
#include <string.h>

#include "cli/table.h"
#include "cli/talk.h"

static void print_settings(struct json_value all)
{
    static const char *const head[] = {"SETTING", "VALUE", NULL};
    cleanup_with(buf_done) struct buf name = BUF_INIT(4096);
    struct json_value key, v;
    struct table t;

    table_init(&t, head);
    for (size_t at = 0; all.p && json_object_next(all, &at, &key, &v);) {
        cleanup_free char *value = strndup(v.p, v.n);

        buf_clear(&name);
        if (json_decode_string(key, JSON_LENIENT_UTF8, &name) == 0) {
            table_cell(&t, name.p);
            table_cell(&t, value);
        }
    }
    table_print(&t, stdout);
    table_done(&t);
}

int cmd_config(const struct args *a)
{
    cleanup_with(talk_close) struct talk t = {0};
    cleanup_with(http_answer_done) struct http_answer answer = {0};
    struct json_value v;

    if (a->n > 0)
        return args_wrong(a, NULL);
    if (talk_open(a, &t) < 0 || talk_json(&t, "GET", "/v1/capabilities", NULL, &answer, &v) < 0)
        return CMD_FAILED;
    if (t.json) {
        talk_print(json_member(v, "settings"));
        return 0;
    }
    (void)printf("daemon   %s\nsecret   %s\nsandbox  ", t.at.url,
                 t.at.secret[0] ? "known" : "none is known");
    print_safe(t.sandbox, stdout);
    (void)fputs("\n\n", stdout);
    print_settings(json_member(v, "settings"));
    return 0;
}
