/* SPDX-License-Identifier: MIT */
/* The media type of a file, by the ending of its name. */
#pragma once

#define MIME_DEFAULT "application/octet-stream"

/* Never NULL. Any case; only the last ending counts ("a.tar.gz" is gzip); hidden files such as
 * ".html" have none. */
const char *mime_of(const char *path);
