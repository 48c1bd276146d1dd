/* SPDX-License-Identifier: MIT */
/*
 * A file of a sandbox as the answer to GET or HEAD: its bytes straight from the file, with ranges,
 * ETag, Last-Modified and their conditions.
 */
#pragma once

#include <stdbool.h>

#include "core/port_files.h"
#include "http/server/http_call.h"

enum { DOWNLOAD_ETAG_MAX = 80, DOWNLOAD_BYTES_MAX = 64 << 20 /* of what is no ordinary file */ };

void download_etag(const struct file_result *f, char out[DOWNLOAD_ETAG_MAX]);
/*
 * Answers with what FILE_READ found. `shown`: a browser may show it, apart from everything else;
 * otherwise it is to be saved. False: the range is outside the file, and the caller refuses with
 * 416; Content-Range is set.
 */
bool download_reply(struct http_call *c, const char *path, struct file_result *f, bool shown);
