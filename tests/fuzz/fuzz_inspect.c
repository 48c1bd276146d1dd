/* SPDX-License-Identifier: MIT */
/* Source text of any language: whatever it is, the answer is JSON with functions in it, or words.
 * The first byte chooses the language. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/json.h"
#include "inspect/inspect.h"

/* Beyond 65535 children of a node the library frees what it must not; sandbox-inspect itself keeps
 * everything (inspect/main.c), but here the leak checker is a judge, too. */
enum { TEXT_MAX = 60000 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check_answer(const struct buf *out)
{
    struct json_value v, functions, f, name;
    struct err e;
    size_t at = 0;

    assert(json_parse(out->p, out->n, 0, &v, &e) == 0);
    assert(json_get(v, "functions", &functions) && functions.type == JSON_ARRAY);
    while (json_array_next(functions, &at, &f)) {
        assert(json_get(f, "name", &name) && name.type == JSON_STRING && name.n > 2);
        assert(json_get(f, "tool", &name) && name.type == JSON_OBJECT);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static const char *const languages[] = {"python", "javascript", "ruby", "php", "c", "cpp"};
    struct buf out = BUF_INIT(INSPECT_OUTPUT_MAX);
    struct inspect_error e = {0};

    if (n < 1 || n > TEXT_MAX)
        return 0;
    if (inspect_source(languages[data[0] % ARRAY_LEN(languages)], (const char *)data + 1, n - 1,
                       NULL, &out, &e) == 0)
        check_answer(&out);
    else
        assert(e.type && e.message);
    buf_done(&out);
    return 0;
}
