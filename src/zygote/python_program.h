/* SPDX-License-Identifier: MIT */
/*
 * The straight way of a program through a warmed Python: it is loaded, its handler
 * called, what that returns sent as JSON, and everything let go of. Whatever leaves
 * that way (an exception, a value that is not plain, a text never seen before) is
 * left to the wrapper (lang/wrap/python.py), which goes all of it in Python, for
 * interpreters that start cold. See python_job.h for why this one does not.
 *
 * Speedup `python-in-c` of -Dspeedups. Without it a trivial run takes 10 % more CPU, and its
 * answer 16 % longer when one comes every 20 ms.
 */
#pragma once

#include "zygote/python_job.h"

/* Of the wrapper. */
#define PYTHON_WRAPPED(OF)                                                                         \
    OF(Context)                                                                                    \
    OF(Loader)                                                                                     \
    OF(MAGIC_NUMBER)                                                                               \
    OF(Main)                                                                                       \
    OF(answer)                                                                                     \
    OF(builtins)                                                                                   \
    OF(callbacks)                                                                                  \
    OF(channel)                                                                                    \
    OF(collect)                                                                                    \
    OF(compiled)                                                                                   \
    OF(decode)                                                                                     \
    OF(encode_plain)                                                                               \
    OF(execute)                                                                                    \
    OF(failed)                                                                                     \
    OF(finish)                                                                                     \
    OF(flush)                                                                                      \
    OF(get_objects)                                                                                \
    OF(missing)                                                                                    \
    OF(scan)                                                                                       \
    OF(take_place)                                                                                 \
    OF(wants_context)

/* Names in dictionaries. */
#define PYTHON_NAMES(OF)                                                                           \
    OF(__builtins__)                                                                               \
    OF(__file__)                                                                                   \
    OF(__loader__)                                                                                 \
    OF(__main__)                                                                                   \
    OF(argv)                                                                                       \
    OF(compiled_max)                                                                               \
    OF(handler)                                                                                    \
    OF(mode)                                                                                       \
    OF(remaining_ms)                                                                               \
    OF(result_max)                                                                                 \
    OF(source)

#define PYTHON_MEMBER(name) PyObject *name;

/* Everything in it is owned, and bound before the fork: after it, nothing is looked up where a
 * program could have put something else. */
struct python_program {
    struct python_channel *to; /* borrowed */
    const struct python_ends *ends;
    struct {
        PYTHON_WRAPPED(PYTHON_MEMBER)
    } w;
    struct {
        PYTHON_NAMES(PYTHON_MEMBER)
    } name;
    PyObject *sys;    /* its names */
    PyObject *path;   /* that of the last rehearsal */
    PyObject *before; /* names in sys.modules when nothing of a program is there */
    PyObject *empty, *zero, *flush;
    struct python_stream {
        PyObject *name, *original, *flush;
    } streams[2];
    PyTypeObject *files[3];
};

/* All are borrowed and must stay. The wrapper gets the functions serve(frames) and end(), and the
 * set `before`. -1: an exception. */
int python_program_bind(struct python_program *p, PyObject *wrapper, struct python_channel *to,
                        const struct python_ends *ends);

/* Runs what the frames say; the exit status. What it has to tell may be held (python_job.h). */
long python_program_run(const struct python_program *p, const struct python_frames *f);

/* What the interpreter does at its end, but for taking itself apart. May be done more than once if
 * the program left nothing that comes only once. Only what runs nothing of the program is done
 * while something is held. */
void python_program_end(const struct python_program *p);
