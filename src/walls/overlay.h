/* SPDX-License-Identifier: MIT */
/*
 * The root of a persistent sandbox: the template's, made writable in private.
 *
 *   /home /var /opt /srv /run /mnt   empty, on a tmpfs of the sandbox
 *   /etc                             a copy of the template's, on the same tmpfs
 *   /usr                             an overlay: what is changed goes to that tmpfs, and the host's
 *                                    files look as if the sandbox's user owned them. Where the
 *                                    kernel cannot do that (no idmapped layers: rootless, or a
 *                                    root on overlayfs), /usr/local alone is an overlay in which
 *                                    files can be added, and the rest stays read-only
 *   /                                read-only
 *
 * Everything is gone with the sandbox. The tmpfs counts against its memory.
 */
#pragma once

#include "walls/root.h"

/* Called in the sandbox after root_mount_private(), as root of the mount namespace. */
must_check int overlay_mount(const struct root_private *p);
