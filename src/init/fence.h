/* SPDX-License-Identifier: MIT */
/*
 * A fence around a process and all it will start: nothing may be written any more but where a file
 * or a directory of its job has a right to be changed. Two posts: Landlock, which nobody inside can
 * take down, and the modes of files and directories, which their owner could change, but a program
 * that does not mean to trespass will not. Where neither holds (a kernel without Landlock, a right
 * that only some names in a directory have) the change stays private to the run and the daemon
 * finds it afterwards.
 *
 * Called by the process itself, inside, before it becomes a program; one thread.
 */
#pragma once

#include <stddef.h>

#include "base/cleanup.h"
#include "wire/wire.h"

/* 0 or -errno. Directories end in a slash. */
must_check int fence_raise(char *const *paths, const struct job_file *files, size_t n);
