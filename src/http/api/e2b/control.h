/* SPDX-License-Identifier: MIT */
/* What the handlers of the control plane share. */
#pragma once

#include "app/sandbox/sandboxes.h"
#include "base/jw.h"
#include "http/server/http_call.h"

#define ENVD_VERSION "0.6.13" /* what the SDKs may expect of the services in a sandbox */

enum {
    CONTROL_LIFE_S = 300,    /* of a sandbox, when the request names none */
    CONTROL_LIFE_OLD_S = 15, /* the same for requests without /v2 */
};

/* Room for a sandbox as JSON. */
size_t control_json_max(const struct persistent *p);
/* `Sandbox`: what create, connect and resume answer. */
void control_write_made(struct jw *w, const struct app *a, const struct persistent *p);
/* `ListedSandbox`, or with `detail` `SandboxDetail`. */
void control_write_info(struct jw *w, const struct persistent *p, bool detail);
