/* SPDX-License-Identifier: MIT */
/* Asking Python for a second opinion: lines of hexadecimal in, lines out. */
#pragma once

#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define PYTHON "/usr/bin/python3"

static inline bool python_is_there(void)
{
    return access(PYTHON, X_OK) == 0;
}

static inline void python_put_hex(FILE *f, const void *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        (void)fprintf(f, "%02x", ((const unsigned char *)p)[i]);
    (void)fputc('\n', f);
}

/* Bytes decoded in place; -1 if it is not hexadecimal. */
static inline ssize_t python_get_hex(char *s)
{
    size_t n = 0;
    unsigned byte;

    for (char *p = s; *p && *p != '\n'; p += 2) {
        if (sscanf(p, "%2x", &byte) != 1)
            return -1;
        s[n++] = (char)byte;
    }
    s[n] = '\0';
    return (ssize_t)n;
}

/* Runs the script with both files, from their beginnings, as its standard streams. */
static inline bool python_filter(const char *script, FILE *in, FILE *out)
{
    char python[] = PYTHON, isolated[] = "-I", command[] = "-c";
    char *argv[] = {python, isolated, command, (char *)(uintptr_t)script, NULL};
    char *envp[] = {NULL};
    posix_spawn_file_actions_t actions;
    int status = -1;
    pid_t pid;

    if (fflush(in) != 0 || lseek(fileno(in), 0, SEEK_SET) < 0)
        return false;
    if (posix_spawn_file_actions_init(&actions) != 0)
        return false;
    (void)posix_spawn_file_actions_adddup2(&actions, fileno(in), 0);
    (void)posix_spawn_file_actions_adddup2(&actions, fileno(out), 1);
    if (posix_spawn(&pid, python, &actions, NULL, argv, envp) == 0)
        (void)waitpid(pid, &status, 0);
    (void)posix_spawn_file_actions_destroy(&actions);
    rewind(out);
    return status == 0;
}
