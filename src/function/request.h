/* SPDX-License-Identifier: MIT */
/*
 * A function call as it was asked for: the body of POST /v1/functions/call, checked. Pure.
 *
 * Values of the tenant (args, kwargs) stay the raw text they came in; only the envelope is decoded.
 * Fields that moved in the course of time are accepted at their old places, too: options.timeout,
 * options.argsMode, options.autoModeThreshold and resultOptions; the new place wins.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "core/exec_spec.h"
#include "core/plan.h"
#include "core/shape.h"

enum {
    CALL_FILES_MAX = 4096,      /* virtual files of one request */
    CALL_PATH_MAX = 1024,       /* bytes of a path */
    CALL_NAME_MAX = 256,        /* bytes of a function's name */
    CALL_VARS_MAX = 1000,       /* environment variables */
    CALL_INLINE_MAX = 1 << 20,  /* bytes of arguments in inline mode */
    CALL_AUTO_INLINE = 4096,    /* auto: below this inline */
    CALL_AUTO_STDIN = 8192,     /* auto: below this stdin, else file */
    CALL_AUTO_DEFAULT = 102400, /* autoModeThreshold when none is given */
};

enum call_mode { CALL_MODE_AUTO, CALL_MODE_INLINE, CALL_MODE_STDIN, CALL_MODE_FILE, CALL_MODES };
const char *call_mode_name(enum call_mode m);

/* A value that may be absent: p == NULL. */
struct call_file {
    const char *path;     /* absolute and normal, in the request's memory */
    struct bytes content; /* in the request's memory */
    bool unread;          /* it is there, but its content is not known here */
    const char *host; /* one that is lent (and unread): below its mount's host directory; or NULL */
    uint64_t size;    /* of it, when it was looked at */
};

/* What an answer tells of files that changed. */
struct call_reporting {
    bool changes, contents, denied;
};

struct call_request {
    struct shaping shaping; /* owned: decoded strings, NUL-terminated */
    struct buf paths;       /* owned: of the files */
    struct bytes language;  /* decoded */
    struct bytes code;      /* decoded */
    struct bytes function;  /* decoded; p == NULL: to be found */
    struct json_value args; /* p == NULL: none; an array or an object */
    struct json_value kwargs;
    struct json_value schema;
    struct json_value permissions;
    struct json_value mount;
    struct json_value packages; /* the name of a set, or lists */
    struct json_value webhook;  /* where the result is sent, too */
    enum call_mode mode;
    uint64_t auto_threshold;
    uint64_t wall_ms; /* 0: the default */
    double idle_s;    /* of a session: idleTimeout; below 0: not given */
    const char *workdir;
    const char *std; /* of C and C++: "" or "c17", ... */
    struct {
        struct call_file *files; /* owned array */
        size_t n;
    } attached;
    const struct exec_var *vars; /* of the shaping */
    size_t vars_n;
    struct call_reporting reporting;
    bool wasm;              /* engine: "wasm" */
    struct bytes input;     /* decoded: standard input of a module; p == NULL: none */
    struct bytes isolation; /* decoded: name of a jail; p == NULL: the default */
};

/* The bodies of /v1/functions/call, POST /v1/sessions and /v1/sessions/{id}/call. */
extern const struct shape call_shape, session_shape, turn_shape;

/*
 * Shapes a body. 0, or -1 with words that name the field. The text must outlive the request.
 * request_done() is fine after a failure.
 */
must_check int call_request_parse(struct call_request *r, const char *text, size_t n,
                                  struct err *e);
/* The same for the body that creates a session. */
must_check int call_request_parse_session(struct call_request *r, const char *text, size_t n,
                                          struct err *e);
/* The same for a call of a session, which has its language and its code already: what belongs to
 * the session is refused, and the name of a function must be there. `workdir`: the session's; it
 * must outlive the request. */
must_check int call_request_parse_turn(struct call_request *r, const char *text, size_t n,
                                       const char *workdir, const struct call_reporting *usual,
                                       struct err *e);
void call_request_done(struct call_request *r);

/* "a/../b" is refused, "./a//b/" becomes "a/b"; relative ones go below `base` ("" for none).
 * Appends an absolute path and a NUL to out. -1: not a path we take. */
must_check int call_path(const char *base, const char *p, size_t n, struct buf *out);
