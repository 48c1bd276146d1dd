/* SPDX-License-Identifier: MIT */
/* What a jail truthfully provides. Policy asks for traits. */
#pragma once

#include "base/cleanup.h"

enum jail_trait {
    JAIL_FS = BIT(0),  /* own root, host files invisible */
    JAIL_PID = BIT(1), /* own process tree, killed as a whole */
    JAIL_IPC = BIT(2),
    JAIL_UTS = BIT(3),
    JAIL_NET = BIT(4),    /* no network but its own loopback */
    JAIL_USER = BIT(5),   /* a user that owns nothing outside */
    JAIL_NNP = BIT(6),    /* no new privileges */
    JAIL_NOCAPS = BIT(7), /* zero capabilities, empty bounding set */
    JAIL_SECCOMP = BIT(8),
    JAIL_MEMORY = BIT(9),   /* memory limit over the whole sandbox */
    JAIL_PIDS = BIT(10),    /* process limit over the whole sandbox */
    JAIL_CPU = BIT(11),     /* CPU share apart from the daemon's */
    JAIL_INODES = BIT(12),  /* inodes of its own: no watch or lock meets another sandbox's, */
    JAIL_DEVICES = BIT(13), /* nor on a device of /dev */
};
enum { JAIL_TRAIT_COUNT = 14 };
