/* SPDX-License-Identifier: MIT */
/* GET /v2/sandboxes: which sandboxes there are, page by page. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "app/daemon/app.h"
#include "http/api/e2b/control.h"
#include "http/api/e2b/e2b.h"
#include "http/api/sandboxes/sandbox_query.h"
#include "http/server/h1.h"

enum {
    PAGE_MAX = 100,
    WORD_MAX = 64,
    MS_PER_S = 1000,
    FIELD_MAX = 128,
};

/* ---- the parameters ---- */

/* RFC 3339, to milliseconds since 1970. */
static bool parse_time(const char *text, int64_t *ret)
{
    struct tm tm = {0};
    const char *p = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm);
    int64_t ms = 0, place = 100;
    int hours, minutes;

    if (!p)
        return false;
    if (*p == '.')
        for (p++; *p >= '0' && *p <= '9'; p++, place /= 10)
            ms += (*p - '0') * place;
    ms += (int64_t)timegm(&tm) * MS_PER_S;
    if (strcmp(p, "Z") != 0 && strcmp(p, "z") != 0) {
        if ((*p != '+' && *p != '-' && *p != ' ') ||
            sscanf(p + 1, "%2d:%2d", &hours, &minutes) != 2)
            return false;
        ms -= (*p == '-' ? -1 : 1) * (int64_t)(hours * 60 + minutes) * 60 * MS_PER_S;
    }
    *ret = ms;
    return true;
}

/* What is wrong with the parameters; NULL: nothing. */
static const char *read_query(const struct http_call *c, struct sandboxes_query *q, uint64_t *limit)
{
    char word[WORD_MAX];

    *limit = PAGE_MAX;
    if (http_query(c, "state", word, sizeof word) && !query_states(word, &q->states))
        return "state must be running, paused or both with a comma";
    if (http_query(c, "limit", word, sizeof word) && !query_number(word, 1, PAGE_MAX, limit))
        return "limit must be from 1 to 100";
    if (http_query(c, "nextToken", word, sizeof word) && word[0] &&
        !query_number(word, 1, UINT64_MAX, &q->after))
        return "nextToken is none of this server";
    if (http_query(c, "startedAfter", word, sizeof word) && !parse_time(word, &q->since_ms))
        return "startedAfter must be a time as in RFC 3339";
    q->oldest_first = http_query(c, "order", word, sizeof word) && strcmp(word, "asc") == 0;
    return NULL;
}

static void reply_page(struct http_call *c, const struct sandboxes_query *q, size_t limit)
{
    const struct persistent *page[PAGE_MAX];
    struct buf body = BUF_INIT(4);
    struct jw w = JW(&body);
    char token[WORD_MAX];
    bool more;
    size_t n = sandboxes_select(http_app(c)->sandboxes, q, limit, page, &more);

    for (size_t i = 0; i < n; i++)
        body.max += control_json_max(page[i]);
    jw_array(&w);
    for (size_t i = 0; i < n; i++)
        control_write_info(&w, page[i], false);
    jw_array_end(&w);
    if (more) {
        (void)snprintf(token, sizeof token, "%llu", (unsigned long long)page[n - 1]->life.serial);
        http_set_header(c, "X-Next-Token", token);
    }
    http_reply_json(c, 200, &body);
}

static void list(struct http_call *c, unsigned states)
{
    struct sandboxes_query q = {.states = states};
    struct exec_var pairs[PERSISTENT_PAIRS_MAX];
    char text[H1_TARGET_MAX + 1], template[FIELD_MAX];
    const char *wrong;
    uint64_t limit;

    wrong = read_query(c, &q, &limit);
    if (!wrong && http_query(c, "metadata", text, sizeof text)) {
        q.pairs = pairs;
        /* E2B's clients encode it once more than there are levels. */
        if (!query_decode(text) || !query_pairs(text, pairs, &q.pairs_n))
            wrong = "metadata must be pairs of names and values";
    }
    if (http_query(c, "template", template, sizeof template) && template[0])
        q.template = template;
    if (wrong)
        e2b_reply_status(c, 400, "%s", wrong);
    else
        reply_page(c, &q, limit);
}

void e2b_list(struct http_call *c)
{
    list(c, 0);
}

void e2b_list_old(struct http_call *c)
{
    list(c, BIT(PERSISTENT_RUNNING));
}
