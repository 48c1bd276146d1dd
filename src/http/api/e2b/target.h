/* SPDX-License-Identifier: MIT */
/*
 * Which sandbox and which of its ports a request is for: by its Host (PORT-ID.anything) or by the
 * headers E2b-Sandbox-Id and E2b-Sandbox-Port, and for signed files by the signature. Anything else
 * is none of a sandbox.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "app/sandbox/sandboxes.h"
#include "http/server/h1.h"
#include "http/server/http_call.h"

enum {
    PORT_ENVD = 49983,        /* commands, terminals, files */
    PORT_INTERPRETER = 49999, /* cells */
};

enum target_kind {
    TARGET_NONE,   /* the control plane, or another API of this server */
    TARGET_BROKEN, /* one of the two headers without the other, or no port */
    TARGET_ENVD,
    TARGET_INTERPRETER,
    TARGET_PORT, /* a server inside the sandbox */
};

struct target {
    enum target_kind kind;
    uint16_t port;
    char id[PERSISTENT_ID_MAX + 1]; /* "": only a signature says it */
};

/* What a request with these values is for; each may be NULL. `path_query` as it came. */
void target_parse(const char *host, const char *id, const char *port, const char *path_query,
                  struct target *ret);

/* `claims` and `admit` of the dialects of a sandbox (http/server/dialect.h). */
bool e2b_claims_envd(const struct app *a, const struct h1_head *h);
bool e2b_claims_interpreter(const struct app *a, const struct h1_head *h);
bool e2b_claims_port(const struct app *a, const struct h1_head *h);
bool e2b_admit_envd(struct http_call *c);
bool e2b_admit_interpreter(struct http_call *c);
bool e2b_admit_port(struct http_call *c);
/* The port that a call is for. */
uint16_t e2b_port_of(const struct http_call *c);
