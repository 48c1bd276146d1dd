/* SPDX-License-Identifier: MIT */
/* The wrappers of wrap/, made part of the program by tools/embed. NUL-terminated. */
#pragma once

#include <stddef.h>

extern const char wrap_python[];
extern const size_t wrap_python_n;
extern const char wrap_javascript[];
extern const size_t wrap_javascript_n;

/* What a WebAssembly runtime runs beside the others. */
extern const char wrap_wasm_python[];
extern const char wrap_quickjs[];

/* One per language whose functions can be called. */
extern const char wrap_call_python[];
extern const size_t wrap_call_python_n;
extern const char wrap_call_javascript[];
extern const size_t wrap_call_javascript_n;
extern const char wrap_call_ruby[];
extern const char wrap_call_php[];
extern const char wrap_call_perl[];
extern const char wrap_call_c[];
extern const size_t wrap_call_c_n;
extern const char wrap_call_cpp[];
extern const size_t wrap_call_cpp_n;
