/* SPDX-License-Identifier: MIT */
#include "roles.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

static const char *const names[] = {
    [ROLE_DAEMON] = "daemon", [ROLE_GUARD] = "guard",   [ROLE_LAUNCHER] = "launcher",
    [ROLE_ZYGOTE] = "zygote", [ROLE_KEEPER] = "keeper", [ROLE_CONFINE] = "confine",
    [ROLE_INIT] = "init",     [ROLE_HELPER] = "helper", [ROLE_PROCESS] = "process",
    [ROLE_TENANT] = "tenant",
};
_Static_assert(ARRAY_LEN(names) == ROLE_COUNT, "every role has a name");

/* As they call themselves, and what that means at which depth of pid namespaces: a program keeps
 * its parent's name until it takes its own. */
static const struct row {
    const char *comm;
    int depth; /* 1: the host's; 2: the launcher's; 3: a sandbox */
    int first; /* pid 1 there? -1: either */
    enum role role;
} rows[] = {
    {"sandbox-executo", 1, -1, ROLE_DAEMON  },
    {"sandbox-launche", 1, -1, ROLE_GUARD   },
    {"sandbox-guard",   1, -1, ROLE_GUARD   },
    {"sandbox-guard",   2, 1,  ROLE_LAUNCHER},
    {"sandbox-launch",  2, 1,  ROLE_LAUNCHER},
    {"sandbox-launch",  2, 0,  ROLE_KEEPER  },
    {"sandbox-keeper",  2, 0,  ROLE_KEEPER  },
    {"sandbox-zygote",  2, 0,  ROLE_ZYGOTE  },
    {"sandbox-zygote-", 2, 0,  ROLE_ZYGOTE  },
    {"sandbox-keeper",  3, 1,  ROLE_CONFINE },
    {"sandbox-init",    3, 1,  ROLE_INIT    },
    {"sandbox-init",    3, 0,  ROLE_PROCESS },
    {"sandbox-helper",  3, 0,  ROLE_HELPER  },
};

const char *role_name(enum role r)
{
    return names[r];
}

enum role role_parse(const char *name)
{
    enum role r = ROLE_DAEMON;

    while (r < ROLE_COUNT && strcmp(names[r], name) != 0)
        r++;
    return r;
}

/* "NSpid:\t812\t14\t1": how many numbers, and is the last one 1? */
static void count_namespaces(const char *line, int *ret_depth, int *ret_first)
{
    const char *last = strrchr(line, '\t');

    *ret_depth = 0;
    for (const char *p = line; *p; p++)
        *ret_depth += *p == '\t';
    *ret_first = last && strcmp(last, "\t1\n") == 0;
}

enum role role_of(pid_t pid)
{
    char path[64], line[256], comm[32] = "";
    int depth = 0, first = 0;
    FILE *f;

    (void)snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    f = fopen(path, "re");
    if (!f)
        return ROLE_TENANT;
    while (fgets(line, sizeof line, f)) {
        (void)sscanf(line, "Name:\t%31s", comm);
        if (strncmp(line, "NSpid:", 6) == 0)
            count_namespaces(line, &depth, &first);
    }
    (void)fclose(f);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (strcmp(rows[i].comm, comm) == 0 && rows[i].depth == depth &&
            (rows[i].first < 0 || rows[i].first == first))
            return rows[i].role;
    return ROLE_TENANT;
}
