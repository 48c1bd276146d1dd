/* SPDX-License-Identifier: MIT */
/*
 * The console: one page for people, served from memory (docs/console.md). Its files are made by
 * tools/build-console and linked into the daemon, each compressed with gzip, so that nothing is
 * compressed or decompressed while we serve.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "core/shape.h"
#include "http/server/route.h"

struct console_file {
    const char *name;   /* "app-K3J5.js"; "": the page itself */
    const char *type;   /* its media type */
    const char *policy; /* Content-Security-Policy; NULL: it is no document */
    const char *etag;   /* with its quotes */
    const char *p;      /* gzip */
    size_t n;
    bool hashed; /* its name changes with its content */
};

/* Made by tools/build-console; without npm packages there are none. */
extern const struct console_file console_files[];
extern const size_t console_files_n;

/* Is the console built in, and not switched off? */
bool console_is_there(const struct app *a);

api_fn console_page, console_file, console_ticket, console_login, console_session;
extern const struct shape console_login_shape;
