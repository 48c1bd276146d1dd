/* SPDX-License-Identifier: MIT */
/* GET /v1/executions: those under way and those that are kept, the newest first, page by page. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http/api/api.h"
#include "http/api/execute/execution_json.h"
#include "http/api/problem.h"

enum {
    LIMIT_USUAL = 100,
    LIMIT_MAX = 1000,
    LOOK_MAX = 20000, /* executions looked at for one page; a page may end early by that */
    WORDS_MAX = 64,
    PAGE_OVERHEAD = 64,
    CURSOR_MAX = 24,
};

static const char *const states[] = {"queued", "running", "collecting", "done"};

/* What a page is asked for. */
struct asked_page {
    char session_id[SESSION_ID_MAX + 1], state[WORDS_MAX];
    bool has_session, has_state;
    int lang;   /* -1: any */
    int status; /* -1: any */
    int64_t limit;
    uint64_t before; /* a number */
};

/* ---- the query ---- */

typedef void query_fn(struct http_call *c, struct shaping *s, const char *value,
                      struct asked_page *p);

static void take_number(struct shaping *s, const char *name, const char *value, int64_t most,
                        int64_t *ret)
{
    char *end;
    long long n = strtoll(value, &end, 10);

    if (*value < '0' || *value > '9' || *end || n < 1 || n > most)
        shape_complain(s, name, NULL, "int_parsing", "Input should be a number from 1 to %lld",
                       (long long)most);
    else
        *ret = n;
}

static void query_limit(struct http_call *c, struct shaping *s, const char *value,
                        struct asked_page *p)
{
    (void)c;
    take_number(s, "limit", value, LIMIT_MAX, &p->limit);
}

static void query_cursor(struct http_call *c, struct shaping *s, const char *value,
                         struct asked_page *p)
{
    int64_t n = 0;

    (void)c;
    take_number(s, "cursor", value, INT64_MAX - 1, &n);
    p->before = (uint64_t)n;
}

static void query_status(struct http_call *c, struct shaping *s, const char *value,
                         struct asked_page *p)
{
    (void)c;
    for (int i = 0; i < STATUS_COUNT; i++)
        if (strcmp(value, exec_status_name((enum exec_status)i)) == 0)
            p->status = i;
    if (p->status < 0)
        shape_complain(s, "status", NULL, "literal_error",
                       "Input should be 'success', 'failed', 'timeout' or 'error'");
}

static void query_state(struct http_call *c, struct shaping *s, const char *value,
                        struct asked_page *p)
{
    (void)c;
    for (size_t i = 0; i < ARRAY_LEN(states); i++)
        p->has_state |= strcmp(value, states[i]) == 0;
    if (!p->has_state)
        shape_complain(s, "state", NULL, "literal_error",
                       "Input should be 'queued', 'running', 'collecting' or 'done'");
    (void)snprintf(p->state, sizeof p->state, "%s", value);
}

static void query_language(struct http_call *c, struct shaping *s, const char *value,
                           struct asked_page *p)
{
    p->lang = http_app(c)->languages.ops->find(value);
    if (p->lang < 0)
        shape_complain(s, "language", NULL, "literal_error", "Input should be a language");
}

static void query_session(struct http_call *c, struct shaping *s, const char *value,
                          struct asked_page *p)
{
    (void)c, (void)s;
    p->has_session = true;
    (void)snprintf(p->session_id, sizeof p->session_id, "%s", value);
}

static const struct {
    const char *name;
    query_fn *take;
} queries[] = {
    {"limit",      query_limit   },
    {"cursor",     query_cursor  },
    {"status",     query_status  },
    {"state",      query_state   },
    {"language",   query_language},
    {"session_id", query_session },
};

/* A name that no row has would otherwise be a filter that does not filter. */
static void check_names(struct http_call *c, struct shaping *s)
{
    for (const char *p = http_request(c)->query; *p; p += *p == '&') {
        size_t n = strcspn(p, "&"), key = strcspn(p, "=&"), i = 0;

        while (i < ARRAY_LEN(queries) &&
               (strlen(queries[i].name) != key || memcmp(queries[i].name, p, key) != 0))
            i++;
        if (i == ARRAY_LEN(queries) && n > 0)
            shape_complain(s, "query", NULL, "extra_forbidden",
                           "Unknown parameter '%.*s'; known are: limit, cursor, status, state, "
                           "language, session_id",
                           key < WORDS_MAX ? (int)key : WORDS_MAX, p);
        p += n;
    }
}

static bool query_take(struct http_call *c, struct asked_page *p)
{
    cleanup_with(shaping_done) struct shaping s;
    char value[SESSION_ID_MAX + 1];

    *p = (struct asked_page){.lang = -1, .status = -1, .limit = LIMIT_USUAL, .before = UINT64_MAX};
    shaping_init(&s, NULL);
    check_names(c, &s);
    for (size_t i = 0; i < ARRAY_LEN(queries); i++)
        if (http_query(c, queries[i].name, value, sizeof value))
            queries[i].take(c, &s, value, p);
    if (s.issues_n > 0)
        problem_issues(c, &s);
    return s.issues_n == 0;
}

/* ---- the page ---- */

static bool is_meant(const struct execution *x, const struct asked_page *p)
{
    return x->in.number < p->before && (p->lang < 0 || x->lang == p->lang) &&
           (p->status < 0 || (execution_is_done(x) && (int)x->verdict.status == p->status)) &&
           (!p->has_state || strcmp(execution_state_name(x), p->state) == 0) &&
           (!p->has_session || strcmp(x->session_id, p->session_id) == 0);
}

static void write_page(struct jw *w, const struct registry *r, const struct asked_page *p)
{
    const struct execution *x;
    int64_t found = 0, looked = 0;
    uint64_t last = 0;
    char cursor[CURSOR_MAX];

    jw_object(w);
    jw_key(w, "executions");
    jw_array(w);
    TAILQ_FOREACH_REVERSE(x, &r->all, execution_list, in.all)
    {
        if (found == p->limit || looked++ == LOOK_MAX)
            break;
        if (x->in.number < p->before)
            last = x->in.number;
        if (!is_meant(x, p))
            continue;
        execution_row_json(x, w);
        found++;
    }
    jw_array_end(w);
    (void)snprintf(cursor, sizeof cursor, "%llu", (unsigned long long)last);
    jw_kv_string(w, "next", x && last > 0 ? cursor : NULL);
    jw_object_end(w);
}

void api_execution_list(struct http_call *c)
{
    struct asked_page p;
    struct buf body;
    struct jw w;

    if (!query_take(c, &p))
        return;
    body = BUF_INIT((size_t)p.limit * EXECUTION_ROW_MAX + PAGE_OVERHEAD);
    w = JW(&body);
    write_page(&w, &http_app(c)->registry, &p);
    http_reply_json(c, 200, &body);
}
