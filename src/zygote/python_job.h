/* SPDX-License-Identifier: MIT */
/*
 * What lies on the way of every job in a warmed Python: its frames, its
 * environment, and the channel that its result goes through. The wrapper
 * (lang/wrap/python.py) has all of this in Python, for an interpreter that starts
 * cold. After a fork that would copy a page for nearly every object it touches;
 * this copies hardly any.
 */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* A function whose first argument is a capsule of context, which is borrowed and must stay. A new
 * reference, or NULL with an exception. */
PyObject *python_function(void *context, PyMethodDef *def);

struct python_binding {
    PyObject **to; /* owned from then on */
    const char *name;
};
/* What a module has under these names; without one the names themselves, interned. What is called
 * after a fork is then not looked up there. -1: an exception. */
int python_bind(PyObject *module, const struct python_binding *of, size_t n);

/* Where results go. A program that closes the descriptor may have a file of its own under that
 * number; one that forks has a second copy of this, which has nothing to tell. */
enum { PYTHON_HELD_MAX = 2048 };
struct python_channel {
    int fd;
    bool ended;
    pid_t pid;
    dev_t dev;
    ino_t ino;
    char held[PYTHON_HELD_MAX]; /* a frame that waits for the next one, or for the end */
    size_t held_n;
};

/* The functions send(kind, payload) and end() of a channel; c is borrowed and must stay. New
 * references, or NULL with an exception. */
PyObject *python_channel_send(struct python_channel *c);
PyObject *python_channel_end(struct python_channel *c);

/* One frame. -1: an exception. */
int python_channel_put(struct python_channel *c, char kind, const char *payload, size_t n);
/* The same, but a short one is held: told together with the end, it wakes the daemon once. Nothing
 * of the program may run before it is sent. */
int python_channel_hold(struct python_channel *c, char kind, const char *payload, size_t n);
void python_channel_release(struct python_channel *c);

/* What a program may leave to be done at its end: threads, functions, log files. */
enum { PYTHON_ENDS_MAX = 8 };
struct python_ends {
    PyObject *of[PYTHON_ENDS_MAX]; /* owned: lists, dictionaries, sets */
    Py_ssize_t sizes[PYTHON_ENDS_MAX];
    size_t n;
    PyObject *exits_count; /* owned: a function */
    long exits;
};

/* The function settled(...) of such a list: with arguments it remembers how large they are now,
 * without it tells whether they still are. e is borrowed and must stay. */
PyObject *python_settled(struct python_ends *e);
bool python_is_settled(const struct python_ends *e);

/* From now on they mean fd, in this process. */
int python_channel_open(struct python_channel *c, int fd);

/* What the daemon sent, by kind. */
enum { PYTHON_KINDS = 'Z' - 'A' + 1 };
struct python_frames {
    PyObject *of[PYTHON_KINDS]; /* owned: bytes, or NULL; see python_frame() */
};

/* All frames from fd up to the last. False: the daemon went away before it had said everything, or
 * there is an exception. */
bool python_frames_read(struct python_frames *f, int fd);
PyObject *python_frame(const struct python_frames *f, char kind); /* borrowed, or NULL */
PyObject *python_frames_dict(const struct python_frames *f);      /* a new reference */
void python_frames_free(struct python_frames *f);

/* Makes envp, which must stay, the environment of the process, and known, which is what os.environ
 * holds, agree with it. -1: an exception. */
int python_environment(PyObject *known, char **envp);
