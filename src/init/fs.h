/* SPDX-License-Identifier: MIT */
/* What kind of file system something is on. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Files of processes look ordinary and are not: what is read depends on who reads. */
bool fs_is_proc(int fd);
/* Those, and others whose files the kernel makes up. Also if it cannot be told. */
bool fs_is_made_up(int fd);
/* Bytes in use there. */
int64_t fs_used(const char *path);
