/* SPDX-License-Identifier: MIT */
/*
 * A warmed Python for the cells of contexts: IPython, numpy, pandas and matplotlib, as far as they
 * are installed, and the program that runs cells (lang/cells/cells_python.py) up to where it would
 * speak to the daemon. Its copies are warm processes (init/warm.h); a copy of these is a context.
 */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "init/helper.h"

struct python_cells {
    PyObject *environ;   /* owned: what os.environ holds */
    PyObject *is_unlike; /* owned: does the job want an interpreter that starts anew? */
    PyObject *run;       /* owned: from the fork to the end of the process */
    struct helper_host host;
};

/* Imports and rehearses. -1: an exception. c must stay. */
int python_cells_warm(struct python_cells *c);
