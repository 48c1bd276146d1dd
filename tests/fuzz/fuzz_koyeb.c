/* SPDX-License-Identifier: MIT */
/* Bodies of the sandbox family, of every shape: refused, or every string is where it says. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "http/koyeb.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check(const struct koyeb_body *b, struct bytes s)
{
    if (!s.p)
        return;
    assert(s.p >= b->text.p && s.p + s.n < b->text.p + b->text.n);
    assert(s.p[s.n] == '\0');
}

static void check_body(const struct koyeb_body *b)
{
    const struct bytes all[] = {b->cmd, b->cwd, b->path, b->port, b->id, b->input};

    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        check(b, all[i]);
    for (size_t i = 0; i < b->env_n; i++) {
        check(b, b->env[i].name);
        if (b->env[i].value.n > 0)
            check(b, b->env[i].value);
        for (size_t k = 0; k < i; k++)
            assert(b->env[k].name.n != b->env[i].name.n ||
                   memcmp(b->env[k].name.p, b->env[i].name.p, b->env[i].name.n) != 0);
    }
    assert(b->timeout_s >= 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    char *text = malloc(n + 1);

    assert(text);
    memcpy(text, data, n);
    text[n] = '\0';
    for (int shape = KOYEB_COMMAND; shape <= KOYEB_ID; shape++) {
        struct koyeb_body b;

        if (koyeb_parse((enum koyeb_shape)shape, text, n, &b)) {
            struct shell_order o = koyeb_order(&b);

            check_body(&b);
            assert(o.cmd.p && o.env_n == b.env_n);
        }
        koyeb_body_done(&b);
    }
    free(text);
    return 0;
}
