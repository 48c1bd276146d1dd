/* SPDX-License-Identifier: MIT */
/* The JavaScript, and other languages' wrappers, that a zygote of node's has with it. */
#include "zygote/zygote_node_texts.h"

#include <string.h>

#include "base/cleanup.h"

extern const char zygote_node[], wasm_host[], wasm_wasi[], wasm_module[], wasm_files[],
    wasm_bridge[];
extern const char wrap_python[], wrap_call_python[], wrap_wasm_python[];
extern const char wrap_call_ruby[], wrap_call_php[], wrap_quickjs[];

void zygote_node_texts(napi_env env, napi_value object)
{
    static const struct {
        const char *name, *text;
    } rows[] = {
        {"zygote",     zygote_node     },
        {"host",       wasm_host       },
        {"wasi",       wasm_wasi       },
        {"module",     wasm_module     },
        {"files",      wasm_files      },
        {"bridge",     wasm_bridge     },
        {"python",     wrap_python     },
        {"callPython", wrap_call_python},
        {"wasmPython", wrap_wasm_python},
        {"callRuby",   wrap_call_ruby  },
        {"callPhp",    wrap_call_php   },
        {"quickjs",    wrap_quickjs    },
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        napi_value text = NULL;

        (void)napi_create_string_utf8(env, rows[i].text, strlen(rows[i].text), &text);
        (void)napi_set_named_property(env, object, rows[i].name, text);
    }
}
