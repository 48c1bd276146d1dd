/* SPDX-License-Identifier: MIT */
#include "app/sandbox/cell_message.h"

int cell_message_read(const char *p, size_t n, struct cell_message *m)
{
    const struct {
        const char *name;
        struct json_value *to;
    } members[] = {
        {"id",         &m->id        },
        {"type",       &m->type      },
        {"text",       &m->text      },
        {"status",     &m->status    },
        {"data",       &m->data      },
        {"metadata",   &m->metadata  },
        {"main",       &m->main      },
        {"display_id", &m->display_id},
        {"update",     &m->update    },
        {"wait",       &m->wait      },
        {"name",       &m->name      },
        {"value",      &m->value     },
        {"traceback",  &m->traceback },
        {"call",       &m->call      },
        {"tool",       &m->tool      },
        {"arguments",  &m->arguments },
    };
    struct json_value object, key, value;
    struct err e;

    *m = (struct cell_message){0};
    if (json_parse(p, n, JSON_LENIENT_DUPES, &object, &e) < 0 || object.type != JSON_OBJECT)
        return -1;
    for (size_t at = 0;
         json_object_next(object, &at, &key, &value);) /* one pass: it may be large */
        for (size_t i = 0; i < ARRAY_LEN(members); i++)
            if (json_key_is(key, members[i].name))
                *members[i].to = value;
    return 0;
}

enum cell_ask cell_message_ask(const struct cell_message *m, int64_t *ret_number)
{
    static const char *const types[] = {
        [CELL_ASKS_CALL] = "call",
        [CELL_ASKS_SEARCH] = "search",
        [CELL_GIVES_UP] = "give_up",
        [CELL_TELLS_PROGRESS] = "progress",
    };

    for (size_t i = CELL_ASKS_CALL; i < ARRAY_LEN(types); i++) {
        if (!m->type.p || m->type.type != JSON_STRING || !json_key_is(m->type, types[i]))
            continue;
        if (i != CELL_TELLS_PROGRESS && (!m->call.p || !json_to_int(m->call, ret_number)))
            return CELL_ASKS_BROKEN;
        return (enum cell_ask)i;
    }
    return CELL_ASKS_NOTHING;
}
