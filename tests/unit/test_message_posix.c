/* SPDX-License-Identifier: MIT */
/* Linked with base/message_posix.c, which comes before that of Linux. */
#define ON_A_STREAM
#include "test_message.c"
