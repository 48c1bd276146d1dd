/* SPDX-License-Identifier: MIT */
/*
 * More writable directories at the top of a sandbox, beside /workspace: a function call may want to
 * work in /app or see its files in /data.
 *
 * The template's root is read-only and everybody's. So such a sandbox gets a small root of its own
 * with the same things in it, and the directories come from the tmpfs of the workspace: one limit,
 * one owner and one scan for all of them.
 */
#pragma once

#include "base/cleanup.h"
#include "walls/root.h"

/* In a workspace: "workspace" and these. 0 or -errno. */
must_check int dirs_make(int tree, const char *names, uid_t uid);

/*
 * names: "app/data", single components. Called behind root_mount_private(). *ret_tree is the tmpfs
 * as a whole: what the scan sees is workspace/..., app/..., data/....
 */
must_check int dirs_mount(const struct root_private *p, const char *names, int *ret_tree);
