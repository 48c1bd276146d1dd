/* SPDX-License-Identifier: MIT */
/*
 * Interpreters that start before anybody wants them: Ruby, PHP and Perl cannot be forked from a
 * warmed copy as Python and Node.js are, but they can be started in a locked sandbox and wait
 * there, with their wrapper read and rehearsed.
 *
 *   first process ──fork──▶ (gone) ──fork──▶ helper: reads the job from descriptor 3, writes files,
 *        │                                     │     limits the first process
 *        └─exec─▶ interpreter ◀──── a FIFO ────┘ directory and environment, then it is gone
 *                      └─ reads frames from descriptor 3, as always
 *
 * The interpreter is the first process, so its end, its signals and its use are seen as ever; the
 * helper is an orphan that init takes in. Nothing of a tenant's is read before the sandbox is
 * locked: both live in it. A job that the helper cannot apply it reports itself; then there is
 * nothing in the FIFO, and the interpreter leaves.
 *
 * A shell has no wrapper, and must not be able to tell that it was started ahead. It waits before
 * its own first line, in a library of ours that is loaded before its others (prestart_shell.c), and
 * needs no helper:
 *
 *   first process ──exec─▶ loader of bash ─▶ job from descriptor 3 ─▶ main() of bash
 */
#pragma once

#include "core/plan.h"
#include "init/init.h"

#define PRESTART_SHELL "sandbox-shell.so" /* in the template root, beside sandbox-init */

/* What starts in sandboxes of this template; NULL: nothing does before its time. */
const struct init_host *prestart_host(enum plan_template t);
