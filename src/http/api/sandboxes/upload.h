/* SPDX-License-Identifier: MIT */
/*
 * A body that brings files: one as it is, or any number as multipart/form-data. Each goes to the
 * sandbox as it comes, no faster than that writes it, one after the other; one that breaks off
 * leaves the old file, or none, and those before it stay.
 */
#pragma once

#include "app/sandbox/sandboxes.h"
#include "base/multipart.h"
#include "http/server/http_call.h"

struct upload;

/* Why it ended. All members empty: every file is in its place. */
struct upload_end {
    const struct file_result *failure; /* of the sandbox; NULL: none */
    const struct err *wrong;           /* of the body; NULL: none */
};

struct upload_conf {
    struct persistent *home;
    struct http_call *call;
    /* The absolute path of a part, to be freed; *ret NULL: it is ignored. */
    int (*path)(void *user, const struct multipart_part *part, char **ret, struct err *e);
    /* A file is in its place. */
    void (*entry)(void *user, const struct file_entry *entry);
    /* Once, unless the client left: then only freed() comes. The call is to be answered. */
    void (*ended)(void *user, const struct upload_end *end);
    void (*freed)(void *user);
    void *user;
    bool gzip;             /* the content is to be inflated */
    struct bytes metadata; /* of every file; borrowed */
};

/* Of a multipart body; -1: the content type names no boundary, and nothing was begun. */
must_check int upload_parts(const struct upload_conf *conf, const char *content_type,
                            struct err *e);
/* Of one file; the path is taken, also on failure. */
must_check int upload_one(const struct upload_conf *conf, char *path, struct err *e);
