/* SPDX-License-Identifier: MIT */
/* Bodies of the sandbox family, of every shape, strict and lenient: refused, or every string is
 * where it says. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "http/api/koyeb/koyeb.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check(const struct koyeb_body *b, struct bytes s)
{
    if (!s.p)
        return;
    assert(s.p >= b->shaping.arena.p && s.p + s.n < b->shaping.arena.p + b->shaping.arena.n);
    assert(s.p[s.n] == '\0');
}

static void check_body(const struct koyeb_body *b)
{
    const struct bytes all[] = {b->cmd, b->cwd, b->path, b->port, b->id, b->input};

    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        check(b, all[i]);
    for (size_t i = 0; i < b->env.n; i++) {
        check(b, b->env.v[i].name);
        if (b->env.v[i].value.n > 0)
            check(b, b->env.v[i].value);
        for (size_t k = 0; k < i; k++)
            assert(b->env.v[k].name.n != b->env.v[i].name.n ||
                   memcmp(b->env.v[k].name.p, b->env.v[i].name.p, b->env.v[i].name.n) != 0);
    }
    assert(b->timeout_s >= 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static const struct shape *const shapes[] = {&koyeb_command, &koyeb_path, &koyeb_file,
                                                 &koyeb_port, &koyeb_id};
    char *text = malloc(n + 1);

    assert(text);
    memcpy(text, data, n);
    text[n] = '\0';
    for (size_t i = 0; i < 2 * ARRAY_LEN(shapes); i++) {
        struct koyeb_body b;

        if (koyeb_parse(shapes[i / 2], text, n, i % 2, &b)) {
            struct command_order o = koyeb_order(&b);

            check_body(&b);
            assert(o.cmd.p && o.env_n == b.env.n);
        }
        koyeb_body_done(&b);
    }
    free(text);
    return 0;
}
