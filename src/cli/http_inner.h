/* SPDX-License-Identifier: MIT */
/* What http.c and connected.c, which see libcurl, share. */
#pragma once

#include <curl/curl.h>

#include "base/err.h"

/* What holds for every connection to the daemon: no proxy, no other protocol, no signals. */
void http_set_common(CURL *c);
/* Why an exchange with `url` failed, in words: -1. why: libcurl's own, "" if it has none. */
int http_why_not(const char *url, CURLcode code, long sys, const char *why, struct err *e);
