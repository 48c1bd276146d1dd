/* SPDX-License-Identifier: MIT */
/*
 * Lists for people: columns in a line, a head that is bold on a terminal. What a tenant could have
 * written is printed without characters that a terminal takes for orders.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/buf.h"

enum { TABLE_COLUMNS_MAX = 12 };

struct table {
    struct buf text; /* owned; cells, a NUL behind each */
    size_t columns, cells;
};

/* The head's columns; NULL ends them. */
void table_init(struct table *t, const char *const head[]);
void table_done(struct table *t);
void table_cell(struct table *t, const char *text); /* NULL: "-" */
void table_number(struct table *t, int64_t n);
void table_bytes(struct table *t, int64_t n);
/* How long ago; `since` as the API says times. */
void table_age(struct table *t, const char *since);
void table_print(const struct table *t, FILE *out);

/* "1.5 MiB" */
enum { SIZE_TEXT_MAX = 24 };
const char *size_text(int64_t n, char out[SIZE_TEXT_MAX]);
/* Is this a terminal that wants colours? */
bool is_colourful(FILE *f);
/* One line that orders no terminal anything. */
void print_safe(const char *text, FILE *out);
