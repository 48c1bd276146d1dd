/* SPDX-License-Identifier: MIT */
/* What runs, and what it is told. */
#include <stdio.h>

#include "selftest/carry.h"

extern const char program_common[], program_tail[], program_files[], program_processes[],
    program_network[], program_limits[], program_others[], program_py_control[],
    program_js_control[], program_sh_control[];

static const char *text_of(enum attack_program p)
{
    static const char *const texts[PROGRAM_COUNT] = {
        [PROGRAM_PY_FILES] = program_files,        [PROGRAM_PY_PROCESSES] = program_processes,
        [PROGRAM_PY_NETWORK] = program_network,    [PROGRAM_PY_LIMITS] = program_limits,
        [PROGRAM_PY_OTHERS] = program_others,      [PROGRAM_PY_CONTROL] = program_py_control,
        [PROGRAM_JS_CONTROL] = program_js_control, [PROGRAM_SH_CONTROL] = program_sh_control,
    };

    return texts[p];
}

bool errand_is_python(const struct errand *e)
{
    return e->attack->program >= PROGRAM_PY_FILES && e->attack->program <= PROGRAM_PY_CONTROL;
}

void errand_write_code(struct errand *e)
{
    const char *text = text_of(e->attack->program);

    if (errand_is_python(e))
        (void)buf_puts(&e->code, program_common);
    if (text)
        (void)buf_puts(&e->code, text);
    if (errand_is_python(e))
        (void)buf_puts(&e->code, program_tail);
}

void errand_probe_args(const struct errand *e, const char *path, char room[PROBE_ROOM],
                       const char *ret[PROBE_ARGS])
{
    bool is_repeated = e->attack->eye == EYE_CALL;

    (void)snprintf(room, PROBE_ROOM, "%d", (int)witness_victim(e->witness));
    ret[0] = path;
    ret[1] = e->attack->id;
    ret[2] = witness_mark(e->witness);
    ret[3] = witness_dir(e->witness);
    ret[4] = room;
    ret[5] = e->fake ? "fake" : is_repeated ? "again" : attack_is_held(e->attack) ? "hold" : NULL;
    ret[6] = NULL;
}
