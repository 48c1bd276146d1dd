/* SPDX-License-Identifier: MIT */
/*
 * The memory of a Python zygote, laid out for forking.
 *
 * What a fork and an exit cost is the page tables they copy and tear down. So
 * the objects of the warmed interpreter lie together on huge pages, and what a
 * child allocates comes from fresh small ones.
 *
 * Speedup `heap-layout` of -Dspeedups. Without it a trivial run of Python takes 30 % more CPU.
 */
#pragma once

/* Before the interpreter starts. */
void heap_prepare(void);
/* After everything is warm: from here on, memory is a child's. */
void heap_settle(void);
