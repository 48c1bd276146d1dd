/* SPDX-License-Identifier: MIT */
/* The wrappers of wrap/, made part of the program by tools/embed. NUL-terminated. */
#pragma once

#include <stddef.h>

extern const char wrap_python[];
extern const size_t wrap_python_n;
extern const char wrap_javascript[];
extern const size_t wrap_javascript_n;
