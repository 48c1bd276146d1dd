/* SPDX-License-Identifier: MIT */
/*
 * Moving and copying inside a sandbox, files and whole trees.
 *
 * A copy is made under a hidden name beside its destination and takes that name when it is whole,
 * so what fails leaves nothing there. It has the modes and times of the original and the owner of
 * the helper; links are copied as links, sockets and devices of a tree are left out.
 *
 * Moving is rename(2); between file systems it is a copy, after which the original is removed.
 */
#pragma once

#include <stdbool.h>

#include "wire/wire.h"

enum { TRANSFER_DEPTH_MAX = 256 };

/* Sends the answer. */
void transfer_serve(int sock, const struct init_msg *m, const char *from, const char *to);
