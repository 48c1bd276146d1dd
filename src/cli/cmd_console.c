/* SPDX-License-Identifier: MIT */
/* sbx console: an address that opens the console, once. */
#include <stdlib.h>

#include "cli/talk.h"

int cmd_console(const struct args *a)
{
    cleanup_with(talk_close) struct talk t = {0};
    cleanup_with(http_answer_done) struct http_answer answer = {0};
    cleanup_free char *path = NULL;
    struct json_value v;

    if (a->n > 0)
        return args_wrong(a, "it takes nothing");
    if (talk_open(a, &t) < 0 || talk_json(&t, "POST", "/console/tickets", NULL, &answer, &v) < 0)
        return CMD_FAILED;
    path = member_text(v, "path");
    if (t.json)
        talk_print(v);
    else
        (void)printf("%s%s\n", t.at.url, path ? path : "");
    return 0;
}
