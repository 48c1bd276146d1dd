/* SPDX-License-Identifier: MIT */
/* Standard output of programs that print and end: a failed write is an error of the program. */
#pragma once

#include "base/cleanup.h"

/* The exit status: `status`, but never success if not all of standard output could be written;
 * then standard error says why. To be asked once, at the very end. */
must_check int output_end(const char *program, int status);
