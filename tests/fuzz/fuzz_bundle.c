/* SPDX-License-Identifier: MIT */
/* Any JSON as what the inspector says of a source text: either there are no tools, with words, or a
 * record of them that reads the same, whose tools have portable names and schemas and can be
 * called. And any bytes as a record from disk. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "function/bundle.h"
#include "function/portable.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char given[] = "{\"a\":{\"index\":1,\"value\":2}}";

static void look(const struct bundle *b)
{
    for (size_t i = 0; i < b->tools_n; i++) {
        struct buf body = BUF_INIT(0);
        struct json_value v = {JSON_OBJECT, given, sizeof given - 1};
        const struct published_order order = {.tool = &b->tools[i], .arguments = v};
        struct err e;

        assert(portable_name_is_good(b->tools[i].name, strlen(b->tools[i].name)));
        if (published_write_call(&order, &body, &e) == 0)
            assert(json_parse(body.p, body.n, JSON_LENIENT_DUPES, &v, &e) == 0);
        buf_done(&body);
    }
}

static void read_record(struct buf *text, bool must)
{
    struct bundle *b = NULL;
    struct err e;
    int r = bundle_read(text, &b, &e);

    assert(r == 0 || !must);
    if (r == 0)
        look(b);
    bundle_free(b);
}

static void inspected(struct json_value answer)
{
    const struct bundle_choice choice = {
        .bundle = {"b",  1},
          .prefix = {"p_", 2}
    };
    struct buf tools = BUF_INIT(BUNDLE_RECORD_ROOM), warnings = BUF_INIT(BUNDLE_RECORD_ROOM),
               text = BUF_INIT(BUNDLE_RECORD_ROOM);
    struct err e;

    if (bundle_write_tools(&choice, answer, &tools, &warnings, &e) == 0) {
        const struct bytes none = {"", 0};
        struct bundle_members m = {.version = 1, .timeout_s = 1, .code = none, .sha256 = none};

        m.name = choice.bundle;
        m.language = m.prefix = m.created_at = m.by = none;
        m.tools = (struct json_value){JSON_ARRAY, tools.p, tools.n};
        m.warnings = (struct json_value){JSON_ARRAY, warnings.p, warnings.n};
        bundle_write(&m, &text);
        if (!text.failed)
            read_record(&text, true);
    }
    buf_done(&tools);
    buf_done(&warnings);
    buf_done(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf text = BUF_INIT(size + 1);
    struct json_value v;
    struct err e;

    if (json_parse((const char *)data, size, JSON_LENIENT_DUPES, &v, &e) == 0)
        inspected(v);
    (void)buf_put(&text, data, size);
    read_record(&text, false);
    buf_done(&text);
    return 0;
}
