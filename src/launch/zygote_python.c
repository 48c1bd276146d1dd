/* SPDX-License-Identifier: MIT */
/*
 * sandbox-zygote-python: CPython, warmed.
 *
 * Started by the launcher in the template root, it imports what programs import
 * most, once, and then only forks keepers (zygote.h). A sandbox made by such a
 * keeper begins with this interpreter: pid 1 runs none of it, the first process
 * waits for its job and runs it as `python3 handler.py` would.
 *
 * Whoever forks shares pages until somebody writes. So the garbage collector is
 * told to leave everything that exists now alone, and the first process runs a
 * small program of ours before it waits, which touches what any program will.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "launch/heap.h"
#include "launch/keeper.h"
#include "launch/runner.h"
#include "launch/text.h"
#include "launch/zygote.h"

extern const char wrap_python[];
extern const char wrap_call_python[];
extern const char zygote_python_warm[];
extern const char zygote_python_science[];

struct warmed {
    bool science;
    PyObject *run, *finish, *shadowed, *before, *wake, *rehearse;
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
    s = PyConfig_SetString(&c, &c.program_name, L"/usr/bin/python3");
    if (!PyStatus_Exception(s))
        s = PyConfig_SetString(&c, &c.executable, L"/usr/bin/python3");
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

/* Modules that a template of its own has beside those that all have. */
static int warm_science(void)
{
    PyObject *m = load("_sandbox_science", zygote_python_science);

    Py_XDECREF(m);
    return m && PyDict_DelItemString(PyImport_GetModuleDict(), "_sandbox_science") == 0
               ? 0
               : report("modules of data science");
}

static int warm(struct warmed *w)
{
    PyObject *wrapper = load("_sandbox", wrap_python), *warmer = NULL, *done;

    if (!wrapper)
        return report("wrapper");
    done = PyObject_CallMethod(wrapper, "prepare", "s", wrap_call_python);
    Py_XDECREF(done);
    if (!done)
        return report("wrapper of calls");
    if (w->science && warm_science() < 0)
        return -1;
    warmer = load("_sandbox_warm", zygote_python_warm);
    if (!warmer)
        return report("modules");
    w->run = PyObject_GetAttrString(wrapper, "run");
    w->finish = PyObject_GetAttrString(wrapper, "finish");
    w->shadowed = PyObject_GetAttrString(wrapper, "shadowed");
    w->before = PyObject_GetAttrString(warmer, "before");
    w->wake = PyObject_GetAttrString(warmer, "wake");
    w->rehearse = PyObject_GetAttrString(warmer, "rehearse");
    (void)PyDict_DelItemString(PyImport_GetModuleDict(),
                               "_sandbox_warm"); /* not the program's to see */
    if (!w->run || !w->finish || !w->shadowed || !w->before || !w->wake || !w->rehearse)
        return report("wrapper's functions");
    return 0;
}

static PyObject *environment(char **envp)
{
    PyObject *list = PyList_New(0);

    for (; list && *envp; envp++) {
        PyObject *one = PyBytes_FromString(*envp);

        if (!one || PyList_Append(list, one) < 0)
            Py_CLEAR(list);
        Py_XDECREF(one);
    }
    return list;
}

static bool job_is_waiting(void)
{
    struct pollfd p = {.fd = RUNNER_FD, .events = POLLIN};

    return poll(&p, 1, 0) > 0;
}

/* Packages of a session may stand in for modules that are here already. Nothing of the job but its
 * head has been read: an interpreter of its own reads the rest. */
static void start_anew_if_shadowed(const struct warmed *w, const struct job *j, PyObject *env)
{
    PyObject *answer = PyObject_CallFunctionObjArgs(w->shadowed, env, NULL);
    bool anew = answer && PyObject_IsTrue(answer) == 1;

    if (!answer)
        PyErr_Clear();
    Py_XDECREF(answer);
    if (anew)
        runner_fail("exec", runner_become(j));
}

/* In the first process of a sandbox. */
__attribute__((noreturn)) static void run_job(void *user)
{
    const struct warmed *w = user;
    PyObject *code = NULL, *env, *ignored;
    const char *what;
    struct job j;
    long status = 1;
    int r;

    (void)signal(SIGPIPE, SIG_IGN); /* a broken pipe is an exception, as in every Python */
    if (w->science)                 /* who knows what they left to be done after a fork */
        PyOS_AfterFork_Child();
    ignored = PyObject_CallNoArgs(w->wake);
    if (!ignored)
        PyErr_Print();
    if (!job_is_waiting()) { /* else it would only delay it */
        ignored = PyObject_CallNoArgs(w->rehearse);
        if (!ignored)
            PyErr_Clear();
    }
    r = runner_read(NULL, &j, &what);
    if (r == -ENODATA)
        _exit(0); /* never used */
    if (r < 0)
        runner_fail(what, r);
    env = environment(j.envp);
    if (env)
        start_anew_if_shadowed(w, &j, env);
    if (env)
        code = PyObject_CallFunction(w->run, "iO", RUNNER_FD, env);
    if (code)
        status = PyLong_AsLong(code);
    else
        PyErr_Print();
    ignored = PyObject_CallFunctionObjArgs(w->finish, w->before, NULL);
    if (!ignored)
        PyErr_Print();
    (void)fflush(NULL);
    runner_leave((int)status);
}

/* Nothing of the daemon's terminal may decide how Python buffers. */
static int quiet_streams(void)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    return null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 ? -1 : 0;
}

int main(int argc, char **argv)
{
    struct warmed w = {.science = argc > 1 && strcmp(argv[1], "science") == 0};
    const struct init_host host = {.run = run_job, .user = &w};
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
    heap_prepare();
    if (start_interpreter() < 0 || warm(&w) < 0)
        return EXIT_FAILURE;
    heap_settle();
    text_settle();
    zygote_serve(&filters, &host, &k);
    keeper_run(&k);
}
