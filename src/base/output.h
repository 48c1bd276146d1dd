/* SPDX-License-Identifier: MIT */
/* What a program that says something and ends owes to whoever reads it. */
#pragma once

#include "base/cleanup.h"

/* The exit status: `status`, but never success if not all of standard output could be written;
 * then standard error says why. To be asked once, at the very end. */
must_check int output_end(const char *program, int status);
