/* SPDX-License-Identifier: MIT */
#include "core/port_jail.h"

#include <assert.h>

#include "core/templates.h"

/* In the order of the bits. These words are public: /v1/capabilities and every result use them. */
static const char *const names[] = {
    "filesystem",        /* JAIL_FS */
    "pid",               /* JAIL_PID */
    "ipc",               /* JAIL_IPC */
    "uts",               /* JAIL_UTS */
    "network",           /* JAIL_NET */
    "user",              /* JAIL_USER */
    "no_new_privileges", /* JAIL_NNP */
    "no_capabilities",   /* JAIL_NOCAPS */
    "seccomp",           /* JAIL_SECCOMP */
    "memory",            /* JAIL_MEMORY */
    "pids",              /* JAIL_PIDS */
    "cpu",               /* JAIL_CPU */
    "inodes",            /* JAIL_INODES */
    "devices",           /* JAIL_DEVICES */
};
_Static_assert(ARRAY_LEN(names) == JAIL_TRAIT_COUNT, "every trait has a name");
_Static_assert(JAIL_DEVICES == BIT(JAIL_TRAIT_COUNT - 1), "the last trait is the last bit");

const char *jail_trait_name(unsigned index)
{
    assert(index < JAIL_TRAIT_COUNT);
    return names[index];
}

const char *jail_template_name(enum plan_template t)
{
    return templates[t].name;
}
