/* SPDX-License-Identifier: MIT */
/*
 * A finished execution as a record of a file: everything that is asked for later, as values. Of
 * this machine only: numbers are in its byte order. A record of another version, or one that was
 * not written to its end, is none.
 */
#pragma once

#include <stdint.h>

#include "app/execution/execution.h"
#include "base/buf.h"

/* Pure; may run on a worker that holds the execution. */
void kept_file_write(const struct execution *x, int64_t finished_us, struct buf *out);
/* Bytes of the record that begins at p; 0: there is none. */
size_t kept_file_next(const char *p, size_t n);
/* What makes a record none, if it is its first byte. */
#define KEPT_FILE_ERASED "-"
/* A new execution that is done, and when it was; NULL: the bytes are not such a record, or there is
 * no memory. */
struct execution *kept_file_read(struct app *a, const char *p, size_t n, int64_t *ret_finished_us);
