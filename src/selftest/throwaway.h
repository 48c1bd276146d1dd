/* SPDX-License-Identifier: MIT */
/* A machine to be thrown away: see throwaway.c. */
#pragma once

enum { THROWAWAY_IMPOSSIBLE = 77 }; /* this host lets nobody make such namespaces */

typedef int throwaway_fn(void *user); /* returns an exit status */

/* Runs it in there, in a child; returns its status. Nothing of it is left afterwards. */
int throwaway_run(throwaway_fn *fn, void *user);
