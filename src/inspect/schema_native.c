/* SPDX-License-Identifier: MIT */
#include "inspect/schema.h"

static void native_map(const struct native *n, struct buf *out)
{
    (void)buf_puts(out, "{\"type\":\"object\",\"additionalProperties\":");
    schema_of_native(n->of, out);
    (void)buf_putc(out, '}');
}

static void native_array(const struct native *n, struct buf *out)
{
    (void)buf_puts(out, "{\"type\":\"array\",\"items\":");
    schema_of_native(n->of, out);
    (void)buf_putc(out, '}');
}

/* Bounds only where every reader of JSON can hold them exactly. */
static void native_integer(const struct native *n, struct buf *out)
{
    (void)buf_puts(out, "{\"type\":\"integer\"");
    if (n->bits <= 32 && n->is_signed)
        (void)buf_printf(out, ",\"minimum\":%lld,\"maximum\":%lld", -(1LL << (n->bits - 1)),
                         (1LL << (n->bits - 1)) - 1);
    else if (n->bits <= 32)
        (void)buf_printf(out, ",\"minimum\":0,\"maximum\":%lld", (1LL << n->bits) - 1);
    else if (!n->is_signed)
        (void)buf_puts(out, ",\"minimum\":0");
    (void)buf_putc(out, '}');
}

void schema_of_native(const struct native *n, struct buf *out)
{
    static const char *const plain[] = {
        [NATIVE_VOID] = "{\"type\":\"null\"}",
        [NATIVE_BOOLEAN] = "{\"type\":\"boolean\"}",
        [NATIVE_NUMBER] = "{\"type\":\"number\"}",
        [NATIVE_STRING] = "{\"type\":\"string\"}",
        [NATIVE_UNSUPPORTED] = "{}",
    };

    if (!n)
        (void)buf_puts(out, "{}");
    else if (n->class == NATIVE_INTEGER)
        native_integer(n, out);
    else if (n->class == NATIVE_ARRAY)
        native_array(n, out);
    else if (n->class == NATIVE_MAP)
        native_map(n, out);
    else
        (void)buf_puts(out, plain[n->class]);
}
