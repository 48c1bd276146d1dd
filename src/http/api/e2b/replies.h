/* SPDX-License-Identifier: MIT */
/* What the dialects of E2B say (http/server/dialect.h): {"code":STATUS,"message":TEXT}, or text. */
#pragma once

#include "http/server/dialect.h"

void e2b_refuse(struct http_call *c, int status, const char *words);
void e2b_error(struct http_call *c, const struct err *e);
void e2b_issues(struct http_call *c, const struct shaping *s);

void e2b_text_refuse(struct http_call *c, int status, const char *words);
void e2b_text_error(struct http_call *c, const struct err *e);
void e2b_text_issues(struct http_call *c, const struct shaping *s);
