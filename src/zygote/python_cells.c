/* SPDX-License-Identifier: MIT */
#include "zygote/python_cells.h"

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "init/runner.h"
#include "zygote/python_job.h"

extern const char zygote_python_cells[];

/* In a copy of a helper: the context's own process. A failure here ends it, with words on standard
 * error. */
static void run(void *user, const struct job *j)
{
    const struct python_cells *c = user;
    PyObject *unlike;

    (void)prctl(PR_SET_NAME, "python3");
    (void)signal(SIGPIPE, SIG_IGN); /* exceptions, as in every Python */
    (void)signal(SIGXFSZ, SIG_IGN);
    PyOS_AfterFork_Child();
    if (python_environment(c->environ, j->envp) < 0) {
        PyErr_Print();
        _exit(1);
    }
    unlike = PyObject_CallNoArgs(c->is_unlike);
    if (unlike != Py_False) {
        PyErr_Clear();
        runner_fail("exec", runner_become(j));
    }
    (void)PyObject_CallNoArgs(c->run);
    PyErr_Print();
    _exit(1);
}

int python_cells_warm(struct python_cells *c)
{
    const struct python_binding bindings[] = {
        {&c->environ,   "environ"  },
        {&c->is_unlike, "is_unlike"},
        {&c->run,       "run"      },
    };
    PyObject *code = Py_CompileString(zygote_python_cells, "_sandbox_cells_warm", Py_file_input);
    PyObject *m = code ? PyImport_ExecCodeModule("_sandbox_cells_warm", code) : NULL;
    int r = m ? python_bind(m, bindings, ARRAY_LEN(bindings)) : -1;

    Py_XDECREF(code);
    Py_XDECREF(m);
    c->host = (struct helper_host){.run = run, .user = c};
    return r == 0 ? PyDict_DelItemString(PyImport_GetModuleDict(), "_sandbox_cells_warm") : -1;
}
