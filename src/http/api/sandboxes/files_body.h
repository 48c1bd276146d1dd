/* SPDX-License-Identifier: MIT */
/* What the verbs of /v1/sandboxes/{id}/files share: a request with paths in its body. */
#pragma once

#include "app/sandbox/sandboxes.h"
#include "base/jw.h"
#include "core/shape.h"
#include "http/server/http_call.h"
#include "http/server/sse.h"

struct files_body {
    struct bytes path, from, to, after, method;
    int64_t depth, limit, expires_in;
    bool replace, recursive, entries;
};

extern const struct shape files_path_shape, files_list_shape, files_move_shape, files_watch_shape,
    files_sign_shape;

/* One request being carried out. */
struct files_call {
    struct activity activity;
    struct http_call *call;
    struct filework *filework;
    struct files_body body;
    struct shaping shaping; /* owned: what the body points into */
    char *path, *second;    /* owned: absolute; NULL: none */
    struct buf out;         /* of an answer that is collected */
    struct buf last;        /* of a list: the path told last */
    size_t told;
    struct sse sse; /* of a watch */
    bool begun;     /* the answer is */
};

/* Decodes the body and finds the sandbox. NULL: answered. */
struct files_call *files_begin(struct http_call *c, const struct shape *shape,
                               struct persistent **ret);
/* The path of a body as the sandbox's programs would see it, absolute. False: answered, freed. */
bool files_path(struct files_call *f, const struct persistent *p, const struct bytes *path,
                const char *name, char **ret);
/* Sends the order. False: answered, freed. */
bool files_start(struct files_call *f, struct persistent *p, const struct file_home *home,
                 const struct file_order *o, filework_fn *done);
void files_free(struct files_call *f);
/* For http_on_gone() of what changes nothing: it ends with its client. */
void files_gone(void *user);
/* For http_on_drain(): more entries or events are welcome. */
void files_drained(void *user);
/* Does the URL of this request open what it asks for? Asked in place of the secret. */
bool files_are_signed(struct http_call *c);
