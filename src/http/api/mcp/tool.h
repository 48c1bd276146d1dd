/* SPDX-License-Identifier: MIT */
/*
 * A tool: what a language model calls. A row of the table in tools.c; tools.json has what clients
 * are told about it.
 *
 * Rules for results: the text and the structured data each carry everything. With a picture or a
 * link among the blocks there is no structured data, because clients drop the blocks then. What a
 * model can act on is a result with `isError`, never an error of the protocol.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "app/sandbox/sandboxes.h"
#include "core/shape.h"
#include "http/api/mcp/exchange.h"

struct tool_call;

struct mcp_tool {
    const char *name;
    const struct shape *shape; /* of its arguments */
    size_t size;               /* of the struct they are decoded into */
    /* Answers, now or later. */
    void (*call)(struct tool_call *t);
};
/* Ends with a row without a name. */
extern const struct mcp_tool mcp_tools[];
/* NULL: there is none. */
const struct mcp_tool *mcp_tool_find(struct bytes name);

enum { TOOL_RUN_MAX = 40 };

struct tool_call {
    struct mcp_exchange *x;
    const struct mcp_tool *tool;
    struct mcp_session *session;         /* borrowed; NULL: of the modern era */
    char place[PERSISTENT_NAME_MAX + 1]; /* ?sandbox= of the address; "": none */
    struct shaping shaping;
    void *arguments;          /* owned: the decoded struct */
    struct activity activity; /* in the sandbox that it works in */
    bool lost;                /* the workspace of the session was lost before this call */
    enum mcp_outcome outcome;
    char run[TOOL_RUN_MAX]; /* id of what it has run; "": nothing */
};

struct published;
/* A tool that was published. */
void tool_call_published(struct tool_call *t, const struct published *tool,
                         struct json_value arguments);
/* Is there a tool of ours with that name? */
bool mcp_tool_is_reserved(const struct app *a, const char *name);

/* tools/call: of `params`. */
void mcp_tool_call(struct mcp_exchange *x, struct mcp_session *session);
/* The answer comes later; stop() frees what belongs to the tool and calls tool_free(). */
void tool_wait(struct tool_call *t, const struct mcp_worker *w);
/* The same for work in a sandbox, which stays in memory meanwhile. When the daemon ends, stop() is
 * called, too. */
void tool_wait_in(struct tool_call *t, struct persistent *home, const struct mcp_worker *w);
/* Without an answer: from stop(). */
void tool_free(struct tool_call *t);

/* ---- results ---- */

enum {
    TOOL_TEXT_MAX = 8 << 20,  /* bytes of a whole result */
    TOOL_IMAGE_MAX = 3 << 20, /* bytes of a picture that is shown */
    TOOL_HINT_MAX = 512,
};

struct tool_result {
    struct buf text;   /* the first block */
    struct buf blocks; /* others, JSON, each with a comma in front */
    struct buf data;   /* structuredContent: a JSON object; empty: none */
    struct buf meta;   /* members of _meta; empty: none */
    bool rich;         /* a block is no text */
    bool is_error;
};
#define TOOL_RESULT                                                                                \
    ((struct tool_result){.text = BUF_INIT(TOOL_TEXT_MAX),                                         \
                          .blocks = BUF_INIT(MCP_ANSWER_MAX),                                      \
                          .data = BUF_INIT(MCP_ANSWER_MAX),                                        \
                          .meta = BUF_INIT(MCP_META_MAX)})
void tool_result_done(struct tool_result *r);
void tool_add_text(struct tool_result *r, const char *p, size_t n); /* another block */
void tool_add_image(struct tool_result *r, const char *mime, const void *p, size_t n);
/* The same for one that is Base64 already. */
void tool_add_image_base64(struct tool_result *r, const char *mime, const char *p, size_t n);
void tool_add_link(struct tool_result *r, const char *uri, const char *name, const char *mime);

/* Answers and frees the call; the result is taken. */
void tool_answer(struct tool_call *t, struct tool_result *r);
/* The same for a tool whose result is data: that is its text, too, if it has none. */
void tool_answer_data(struct tool_call *t, struct tool_result *r);
/* The same for members of a result that somebody else wrote, JSON without braces; they are taken.
 * meta: members of its _meta, or NULL. */
void tool_answer_members(struct tool_call *t, const char *meta, struct buf *members);
/* A result with isError: what is wrong, and what to do (NULL: nothing is known). */
void tool_refuse(struct tool_call *t, const char *hint, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* The same for an error of a use case. */
void tool_refuse_err(struct tool_call *t, const char *hint, const struct err *e);

/* ---- the sandbox that a tool works in (workspace.c) ---- */

enum tool_need {
    TOOL_MAKES, /* one is made when none is named */
    TOOL_READS, /* there is nothing to read in a new one */
};
/*
 * The named one, else that of the address, else that of the session, else a new one. NULL: refused,
 * and answered.
 */
struct persistent *tool_sandbox(struct tool_call *t, struct bytes handle, enum tool_need need);
/* By its handle or its name, which keeps it from ending as what nobody has named; NULL: there is
 * none. */
struct persistent *mcp_sandbox_find(struct app *a, const char *name, size_t n);
/* A new one with these properties. NULL: refused, and answered. `name` may be "". */
struct tool_sandbox_spec {
    const char *name;
    const struct exec_var *env;
    size_t env_n;
    uint64_t memory_mb, idle_s; /* 0: the default */
};
struct persistent *tool_sandbox_make(struct tool_call *t, const struct tool_sandbox_spec *spec);
