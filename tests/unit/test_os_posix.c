/* SPDX-License-Identifier: MIT */
/* Linked with base/os_posix.c and base/fd_posix.c, which come before those of Linux. */
#include "test_os.c"
