/* SPDX-License-Identifier: MIT */
/*
 * Lines: those that begin with '-' are arguments, those with a '=' variables, and from the first
 * line that begins with '{' on it is the file. Whatever is accepted must be inside its range.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/config.h"

enum { LINES_MAX = 64 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
    char *argv[LINES_MAX + 2], *envp[LINES_MAX + 1];
    int argc, envc;
    const char *file;
    size_t file_n;
};

static void split(struct input *in, char *text, size_t n)
{
    static char name[] = "sandbox-executor";
    char *end = text + n;

    in->argv[in->argc++] = name;
    while (text < end && *text != '{') {
        char *line_end = memchr(text, '\n', (size_t)(end - text));

        if (!line_end)
            line_end = end;
        *line_end = '\0';
        if (*text != '-' && strchr(text, '=') && in->envc < LINES_MAX)
            in->envp[in->envc++] = text;
        else if (in->argc <= LINES_MAX)
            in->argv[in->argc++] = text;
        text = line_end + 1;
    }
    in->file = text < end ? text : NULL;
    in->file_n = text < end ? (size_t)(end - text) : 0;
}

static void check(const struct config *c)
{
    for (size_t i = 0; i < CONFIG_COUNT; i++) {
        const struct config_option *o = &config_options[i];
        const char *at = (const char *)c + o->at;

        if (o->type == CONFIG_NUM) {
            uint64_t v = *(const uint64_t *)(const void *)at;

            assert(v >= o->min && v <= o->max);
        }
        if (o->type == CONFIG_STR)
            assert(memchr(at, '\0', CONFIG_TEXT_MAX));
        assert(c->origin[i] < CONFIG_ORIGIN_COUNT);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cleanup_free struct config *c = malloc(sizeof *c);
    cleanup_free char *text = malloc(size + 1);
    struct input in = {.argc = 0};
    struct err e;

    if (!c || !text)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    split(&in, text, size);
    config_defaults(c);
    if (config_read_flags(c, in.argc, in.argv, &e) < 0 || config_read_env(c, in.envp, &e) < 0)
        return 0;
    if (in.file && config_read_json(c, in.file, in.file_n, &e) < 0)
        return 0;
    if (config_finish(c, in.envp, &e) == 0)
        check(c);
    return 0;
}
