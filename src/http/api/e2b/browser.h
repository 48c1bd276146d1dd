/* SPDX-License-Identifier: MIT */
/* Cross-origin requests of web pages to E2B's services. */
#pragma once

#include <stdbool.h>

#include "http/server/h1.h"
#include "http/server/http_call.h"

struct app;

/* Does a browser ask whether a page may send a request to one of E2B's services? */
bool e2b_claims_preflight(const struct app *a, const struct h1_head *h);
/* Lets a page read the answer; true. */
bool e2b_admit_browser(struct http_call *c);
