/* SPDX-License-Identifier: MIT */
/*
 * Structured logs: one record per line, JSON or text, one write(2) each.
 *
 *   log_event(log, LOG_INFO, "execution_done", LOG_STR("execution_id", id), LOG_INT("code", 0));
 *
 * Secrets and result bodies are never passed here.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

enum log_level { LOG_TRACE, LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR, LOG_LEVEL_COUNT };

struct log {
    int fd;
    enum log_level level;
    bool json;
    char container_id[80]; /* a field of every record */
};

struct log_field {
    const char *key;
    const char *text; /* NULL: number */
    int64_t number;
};
static inline const char *log_text(const char *s)
{
    return s ? s : "";
}
#define LOG_STR(k, v) ((struct log_field){.key = (k), .text = log_text(v)})
#define LOG_INT(k, v) ((struct log_field){.key = (k), .number = (v)})

void log_write(const struct log *l, enum log_level level, const char *event,
               const struct log_field *fields, size_t n);
#define log_event(l, level, event, ...)                                                            \
    log_write(l, level, event, (const struct log_field[]){__VA_ARGS__},                            \
              ARRAY_LEN(((const struct log_field[]){__VA_ARGS__})))
bool log_level_parse(const char *name, enum log_level *ret); /* any case */
