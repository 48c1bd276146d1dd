/* SPDX-License-Identifier: MIT */
/* What a daemon does to itself before it serves: state directory, identity, walls, secret. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "core/config.h"

enum { BOOT_SECRET_MAX = 4096 };

/* Whom the daemon will be. */
struct boot_identity {
    bool change; /* false: stays who it is */
    uid_t uid;
    gid_t gid;
};

/* Address to listen on when none is configured. */
void boot_host(struct config *c);
/* Only root becomes somebody else: config->run_as. */
must_check int boot_identity(const struct config *c, struct boot_identity *ret, struct err *e);
/* Chooses the state directory when none is configured, makes it (0700) and gives it away. */
must_check int boot_state_dir(struct config *c, const struct boot_identity *who, struct err *e);
must_check int boot_dependencies(struct config *c, const struct boot_identity *who, struct err *e);
/* Chooses the directory of kept workspaces when none is configured, makes it, and opens it to be
 * listed by a daemon that could not open it itself. */
must_check int boot_workspaces(struct config *c, int *ret_dir, struct err *e);
/* For good: groups, ids, capabilities, no new privileges. */
must_check int boot_become(const struct boot_identity *who, struct err *e);
/* The walls around ourselves (base/lockdown.h). Afterwards nothing is executed any more, and
 * nothing is written but state, results, workspaces, the claimed secret and what may be mounted. */
must_check int boot_confine(const struct config *c, unsigned *ret_walls, struct err *e);
/* The secret that the first start made, in <state>/secret (0600); makes it when it is not there. */
must_check int boot_secret(const struct config *c, char out[BOOT_SECRET_MAX], bool *ret_made,
                           struct err *e);
/* What is in a file, without white space around it. */
must_check int boot_secret_read(const char *path, char out[BOOT_SECRET_MAX], struct err *e);
/* Holds the state directory for this process until it ends; -1 with the words for an operator when
 * another daemon has it. */
must_check int boot_lock(const struct config *c, const struct boot_identity *who, struct err *e);
