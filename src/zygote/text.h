/* SPDX-License-Identifier: MIT */
/*
 * The code of a program that forks a lot, on huge pages.
 *
 * A fork does not copy the page tables of files: every child of a zygote would
 * fault its interpreter's code in again, and pay for each of those pages once
 * more when it ends. Code in anonymous huge pages is there at once, for the price of
 * a few entries. The linker has to leave room for it (-z max-page-size).
 *
 * Speedup `huge-code` of -Dspeedups. text_settle() and renew_code(). Without it a trivial run
 * of Python takes 8 to 16 % more CPU, one of JavaScript 17 %.
 *
 * Speedup `joined-maps`: text_join(). Without it 7 % and 5 %, without both a quarter for Python.
 */
#pragma once

/* Moves the program's own code, constants and data. What cannot be moved stays where it is. */
void text_settle(void);

/*
 * Each library is five mappings, which every fork copies and every exit takes down one by one. With
 * equal protection they become two. What this gives up protects a program from its own mistakes;
 * here the program is a tenant's, who may do as he likes with it.
 */
void text_join(void);

/*
 * What starting and warming has read of code and constants is in the kernel's memory anyway, and a
 * process that only forks from now on has no use for it.
 */
void text_release(void);
