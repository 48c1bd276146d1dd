/* SPDX-License-Identifier: MIT */
/*
 * sandbox-zygote-python: CPython, warmed.
 *
 * Started by the launcher in the template root, it imports what programs import
 * most, once, and then only forks keepers (zygote.h). A sandbox made by such a
 * keeper begins with this interpreter: pid 1 runs none of it, the first process
 * waits for its job and runs it as `python3 handler.py` would.
 *
 * Forked processes share pages until one of them writes. So the garbage collector is told to leave
 * everything that exists now alone, and the first process runs a small program of ours before it
 * waits, which touches what any program will.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <fcntl.h>
#include <signal.h>
#include <speedups.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/random.h"
#include "init/runner.h"
#include "walls/keeper.h"
#include "zygote/heap.h"
#include "zygote/hot.h"
#include "zygote/python_cells.h"
#include "zygote/python_job.h"
#include "zygote/python_program.h"
#include "zygote/rehearsal.h"
#include "zygote/serve.h"
#include "zygote/text.h"
#include "zygote/zygote.h"

#define WIDE_(text) L##text
#define WIDE(text)  WIDE_(text)

enum { JOB_ROOM = 24 << 10 }; /* that malloc gives to a job and a small program */

/* When sandboxes are used as fast as they are made, one waits less than this; then whatever can be
 * left out makes the next one come sooner. What takes longest waits until it is calm. */
enum { SOON_MS = 4, CALM_MS = 4 };

extern const char wrap_python[];
extern const char wrap_call_python[];
extern const char zygote_python_warm[];
extern const char zygote_python_science[];

struct warmed {
    bool science, cells;
    const char *directory; /* that programs begin in */
    struct python_channel channel;
    struct python_ends ends;
    struct python_program program;
    PyObject *shadowed, *rehearsed, *adopted;
    PyObject *main;            /* the module of that name, if it is no program's */
    PyObject *environ;         /* what os.environ holds */
    PyObject *random, *seed;   /* of the module: its generator and how that is seeded */
    PyObject *thread, *native; /* the main thread and the name of its number */
    struct rehearsal known, unknown;
    struct python_cells of_cells;
};

static int report(const char *what)
{
    (void)fprintf(stderr, "sandbox-zygote-python: %s\n", what);
    PyErr_Print();
    return -1;
}

/* As Debian's python3 starts with an empty environment. The hash seed is new with each zygote. */
static int start_interpreter(void)
{
    PyConfig c;
    PyStatus s;

    PyConfig_InitPythonConfig(&c);
    c.parse_argv = 0;
    c.write_bytecode = 0;
    c.safe_path = 0;
    s = PyConfig_SetString(&c, &c.program_name, WIDE(INTERPRETER_PYTHON));
    if (!PyStatus_Exception(s))
        s = PyConfig_SetString(&c, &c.executable, WIDE(INTERPRETER_PYTHON));
    if (!PyStatus_Exception(s))
        s = Py_InitializeFromConfig(&c);
    PyConfig_Clear(&c);
    return PyStatus_Exception(s) ? report(s.err_msg ? s.err_msg : "start") : 0;
}

/* The wrapper's text as a module that is in nobody's way. */
static PyObject *load(const char *name, const char *text)
{
    PyObject *code = Py_CompileString(text, name, Py_file_input), *m = NULL;

    if (code)
        m = PyImport_ExecCodeModule(name, code);
    Py_XDECREF(code);
    return m;
}

/* Modules that a template of its own has beside those that all have. The warmer takes the name
 * away again. */
static int warm_science(void)
{
    PyObject *m = load("_sandbox_science", zygote_python_science);

    Py_XDECREF(m);
    return m ? 0 : report("modules of data science");
}

static int bind_all(struct warmed *w, PyObject *wrapper, PyObject *warmer)
{
    const struct python_binding theirs[] = {
        {&w->shadowed, "shadowed"},
        {&w->adopted,  "adopted" },
    };
    const struct python_binding ours[] = {
        {&w->rehearsed, "rehearsed"},
        {&w->environ,   "environ"  },
        {&w->random,    "generator"},
        {&w->seed,      "seed"     },
        {&w->thread,    "thread"   },
        {&w->main,      "main"     },
    };
    const struct python_binding native = {&w->native, "_native_id"};

    return python_bind(NULL, &native, 1) == 0 &&
                   python_bind(wrapper, theirs, ARRAY_LEN(theirs)) == 0
               ? python_bind(warmer, ours, ARRAY_LEN(ours))
               : -1;
}

/* The wrapper's own functions are for interpreters that start cold. Where it is, is told early:
 * what that makes then lies with the rest of what is written to (heap.c). */
static int give_functions(struct warmed *w, PyObject *wrapper)
{
    PyObject *send = python_channel_send(&w->channel), *end = python_channel_end(&w->channel);
    PyObject *settled = python_settled(&w->ends);
    PyObject *given = send && end && settled
                          ? PyObject_CallMethod(wrapper, "given", "OOO", send, end, settled)
                          : NULL;
    PyObject *path = PyUnicode_FromFormat("%s/handler.py", w->directory);
    PyObject *placed = given && path ? PyObject_CallMethod(wrapper, "take_place", "O", path) : NULL;

    Py_XDECREF(send);
    Py_XDECREF(end);
    Py_XDECREF(settled);
    Py_XDECREF(given);
    Py_XDECREF(path);
    Py_XDECREF(placed);
    return placed ? 0 : -1;
}

/* One that changes what nearly every one does: the last variable. */
static int make_rehearsal(struct rehearsal *ret, const char *directory, PyObject *warmer,
                          const char *name)
{
    static char *const environment[] = {
#define VARIABLE(name, value, unless) (char *)name "=" value,
#include "core/variables.def"
#undef VARIABLE
        (char *)"EVENT_JSON={\"a\":1}",
        NULL,
    };
    PyObject *frames = PyObject_GetAttrString(warmer, name), *kind, *payload;
    int r = frames ? rehearsal_make(ret, directory, INTERPRETER_PYTHON, environment) : -1;

    for (Py_ssize_t at = 0; r == 0 && PyDict_Next(frames, &at, &kind, &payload);)
        r = rehearsal_frame(ret, PyUnicode_AsUTF8(kind)[0], PyBytes_AS_STRING(payload),
                            (size_t)PyBytes_GET_SIZE(payload));
    Py_XDECREF(frames);
    return r;
}

/* Without the wrapper of functions, which is for /execute. */
static int warm_cells(struct warmed *w)
{
    if (warm_science() < 0)
        return -1;
    return python_cells_warm(&w->of_cells) < 0 ? report("cells") : 0;
}

static int warm(struct warmed *w)
{
    PyObject *wrapper = load("_sandbox", wrap_python), *warmer = NULL;

    if (!wrapper || give_functions(w, wrapper) < 0 ||
        python_program_bind(&w->program, wrapper, &w->channel, &w->ends) < 0 ||
        PyModule_AddStringConstant(wrapper, "calls", wrap_call_python) < 0)
        return report("wrapper");
    if (w->science && warm_science() < 0)
        return -1;
    if (python_channel_open(&w->channel, STDIN_FILENO) < 0) /* which is nothing: it rehearses */
        return report("channel");
    warmer = load("_sandbox_warm", zygote_python_warm);
    if (!warmer)
        return report("modules");
    if (bind_all(w, wrapper, warmer) < 0)
        return report("wrapper's functions");
    if (make_rehearsal(&w->known, w->directory, warmer, "KNOWN") < 0 ||
        make_rehearsal(&w->unknown, w->directory, warmer, "UNKNOWN") < 0)
        return report("rehearsal");
    (void)PyDict_DelItemString(PyImport_GetModuleDict(),
                               "_sandbox_warm"); /* not the program's to see */
    return 0;
}

/* More than anybody could guess. Left to itself, the module's generator takes eighty times as much
 * from the kernel, for every run. */
enum { SEED = 32 };

static PyObject *new_seed(void)
{
    char digits[2 * SEED + 1];

    random_hex(digits, SEED);
    return PyLong_FromString(digits, NULL, 16);
}

/*
 * What changes in a fork of a process that has one thread and holds no lock. Of
 * the functions that modules left with os.register_at_fork() the others only
 * make locks anew; running all of them would cost a copy of a hundred pages.
 */
static void wake(const struct warmed *w)
{
    PyObject *number = PyLong_FromLong(gettid()), *seed = new_seed();
    PyObject *done = seed ? PyObject_CallFunctionObjArgs(w->seed, w->random, seed, NULL) : NULL;

    if (!done || !number || PyObject_SetAttr(w->thread, w->native, number) < 0)
        PyErr_Print();
    Py_XDECREF(done);
    Py_XDECREF(seed);
    Py_XDECREF(number);
}

static void wake_copy(const struct warmed *w)
{
    if (w->science) /* who knows what those modules left to be done after a fork */
        PyOS_AfterFork_Child();
    wake(w);
}

static const char *variable(char **envp, const char *name)
{
    size_t n = strlen(name);

    for (; *envp; envp++)
        if (strncmp(*envp, name, n) == 0 && (*envp)[n] == '=')
            return *envp + n + 1;
    return NULL;
}

/* Packages of a session may stand in for modules that are here already. Nothing of the job but its
 * head has been read: an interpreter of its own reads the rest. */
static void start_anew_if_shadowed(const struct warmed *w, const struct job *j)
{
    const char *path = variable(j->envp, "PYTHONPATH");
    PyObject *answer = path ? PyObject_CallFunction(w->shadowed, "y", path) : NULL;
    bool anew = answer && PyObject_IsTrue(answer) == 1;

    if (!answer)
        PyErr_Clear();
    Py_XDECREF(answer);
    if (anew)
        runner_fail("exec", runner_become(j));
}

static int take_environment(const struct warmed *w, const struct job *j)
{
    PyObject *done;

    if (python_environment(w->environ, j->envp) < 0)
        return -1;
    if (!w->science && !variable(j->envp, "TZ") && !variable(j->envp, "PYTHONPATH"))
        return 0;
    done = PyObject_CallNoArgs(w->adopted);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

/* Reads the job and runs it; the exit status. */
static long run_program(struct warmed *w, const struct job *j)
{
    struct python_frames f;
    long status = 1;

    start_anew_if_shadowed(w, j);
    (void)fcntl(RUNNER_FD, F_SETFD, FD_CLOEXEC);
    if (!python_frames_read(&f, RUNNER_FD) && !PyErr_Occurred())
        _exit(1); /* the daemon went away before it had said everything */
    if (!PyErr_Occurred() && python_channel_open(&w->channel, RUNNER_FD) == 0 &&
        take_environment(w, j) == 0)
        status = python_program_run(&w->program, &f);
    if (PyErr_Occurred())
        PyErr_Print();
    python_frames_free(&f);
    return status;
}

/* Leaves no trace that a program could see. */
static void forget_rehearsal(struct warmed *w)
{
    PyObject *done = w->science ? PyObject_CallNoArgs(w->rehearsed) : NULL;

    if (!w->science) { /* as that function does, but for looking at it */
        python_program_end(&w->program);
        (void)PyDict_SetItem(PyImport_GetModuleDict(), w->program.name.__main__, w->main);
    }
    PyErr_Clear();
    Py_XDECREF(done);
    python_channel_release(&w->channel);
}

/* What it touches is then private before the job comes. */
static void rehearse(struct warmed *w, const struct rehearsal *r)
{
    struct rehearsal_ends ends;
    const char *what;
    struct job j;

    if (rehearsal_begin(r, &ends) < 0)
        return;
    if (runner_read(NULL, &j, &what) == 0 && run_program(w, &j) == 0)
        forget_rehearsal(w);
    (void)fflush(NULL);
    rehearsal_end(&ends);
}

/* For a program that the daemon knows, and once there is time, for others. */
static void await_job(struct warmed *w)
{
    if (!SPEEDUP_REHEARSAL || runner_has_job(SOON_MS))
        return;
    rehearse(w, &w->known);
    if (runner_has_job(CALM_MS))
        return;
    rehearse(w, &w->unknown);
    rehearse(w, &w->known);
    runner_touch(JOB_ROOM); /* for one that is larger than ours */
}

/* In the first process of a sandbox. */
__attribute__((noreturn)) static void run_job(void *user)
{
    struct warmed *w = user;
    const char *what = "job";
    struct job j;
    long status;
    int r;

    (void)prctl(PR_SET_NAME, "python3");
    (void)signal(SIGPIPE, SIG_IGN); /* a broken pipe is an exception, as in every Python, */
    (void)signal(SIGXFSZ, SIG_IGN); /* and so is a file that is larger than its own limit */
    wake_copy(w);
    await_job(w);
    r = runner_await(&j);
    if (r == 0)
        r = runner_apply(NULL, &j, &what);
    if (r == -ENODATA)
        _exit(0); /* never used */
    if (r < 0)
        runner_fail(what, r);
    status = run_program(w, &j);
    python_program_end(&w->program);
    (void)fflush(NULL);
    runner_leave(j.head.flags, (int)status, false, w->channel.held, w->channel.held_n);
}

static void learn(struct warmed *w, struct hot *h)
{
    if (!SPEEDUP_PINNED_PAGES || !hot_try(h, NULL))
        return;
    wake_copy(w);
    rehearse(w, &w->known); /* what every copy does: compiling is not among it */
    hot_tell(h);
}

/* Nothing of the daemon's terminal may decide how Python buffers. */
static int quiet_streams(void)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    return null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 ? -1 : 0;
}

/* Everything that copies begin with. */
static int start(struct warmed *w)
{
    if (SPEEDUP_HEAP_LAYOUT)
        heap_prepare();
    if (w->cells && setenv("MPLBACKEND", "module://matplotlib_inline.backend_inline", 1) < 0)
        return -1;
    if (chdir(w->directory) < 0 || start_interpreter() < 0)
        return -1;
    if ((w->cells ? warm_cells(w) : warm(w)) < 0)
        return -1;
    if (!w->cells)
        wake(w); /* what that looks up is then known */
    if (SPEEDUP_HEAP_LAYOUT)
        heap_settle();
    if (SPEEDUP_HUGE_CODE)
        text_settle();
    if (SPEEDUP_JOINED_MAPS)
        text_join();
    return 0;
}

int main(int argc, char **argv)
{
    struct hot hot = {.n = 0};
    struct warmed w = {.science = argc > 1 && strcmp(argv[1], "science") == 0,
                       .cells = argc > 1 && strcmp(argv[1], "cells") == 0,
                       .directory = "/workspace"};
    struct zygote_host host = {
        .first = {.run = run_job, .user = &w},
          .hot = &hot
    };
    struct filters filters;
    struct keeper k = {0};
    struct err e;

    if (fcntl(ZYGOTE_FD, F_SETFD, FD_CLOEXEC) < 0 || quiet_streams() < 0) {
        (void)fprintf(stderr, "sandbox-zygote-python is started by sandbox-launcher\n");
        return EXIT_FAILURE;
    }
    if (filters_build(&filters, &e) < 0) {
        (void)fprintf(stderr, "sandbox-zygote-python: %s\n", e.text);
        return EXIT_FAILURE;
    }
    if (start(&w) < 0)
        return EXIT_FAILURE;
    if (w.cells)
        host.warm =
            &w.of_cells.host; /* nothing is pinned: each page copied early is copied thrice */
    else
        learn(&w, &hot);
    hot_thin(&hot);
    text_release();
    zygote_serve(&filters, &host, &k);
    keeper_run(&k);
}
