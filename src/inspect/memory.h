/* SPDX-License-Identifier: MIT */
/*
 * Where trees live: memory that is given out by moving a pointer, and given back all at once.
 *
 * A parse takes a mark before and returns to it after, so every part of a text is parsed in
 * the memory of the part before it, which is in the cache and needs no page of the kernel. Nothing
 * is freed between: the library counts the children of a node in 16 bits when it takes trees apart,
 * and from a node with more of them (unbalanced braces by the ten thousand) it frees a pointer that
 * was never given to it. It cannot live without memory, nor report that there is none: the exit
 * status does.
 */
#pragma once

#include "inspect/inspect.h"

enum { MEMORY_EXIT = 3 }; /* memory ran out */

/* From now on the library takes its memory from here, in every thread. */
void memory_install(void);
extern const struct inspect_memory memory_marks;
