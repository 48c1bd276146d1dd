/* SPDX-License-Identifier: MIT */
/*
 * Whole directories as tar archives, unpacked and packed by a helper inside the sandbox, as its
 * user: nothing outside ever sees a name of the archive as a path.
 *
 * Unpacking. Names are below the directory: absolute ones and ".." end it, and a link on the way
 * is followed only as long as it stays inside. What is in the way of a file or link is replaced,
 * unless it is a directory; directories that are there stay. Modes are those of the archive
 * without the set-id bits, times too, the owner is the sandbox's user. Directories get theirs at
 * the end. On failure what was complete stays, the file that was being written goes.
 *
 * Packing. Names are sorted, relative to the directory. Files, directories and links; a file seen
 * before under another name becomes a hard link. Sockets, FIFOs and devices are left out, /proc
 * and /sys are not entered. A file that shrinks meanwhile is filled up with zeros, what it gains is
 * not sent; what vanishes is left out; what cannot be read ends it.
 *
 * The limits are those of the request: `size` bytes of archive, `arg` entries, `token` directories
 * within each other.
 */
#pragma once

#include "wire/wire.h"

/* Each sends the answer. The archive is read from, or written to, the descriptor. */
void archive_unpack(int sock, const struct init_msg *m, const char *path, int fd);
void archive_pack(int sock, const struct init_msg *m, const char *path, int fd);
