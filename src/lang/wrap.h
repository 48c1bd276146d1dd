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

/* One per language whose functions can be called, wrap/call_<name>.*, found by its name; NULL:
 * there is none. ret_n may be NULL. */
const char *wrap_call_find(const char *name, size_t *ret_n);
/* Of C and C++, and of both in WebAssembly. */
extern const char wrap_call_c[], wrap_call_cpp[], wrap_call_wasi[];
extern const size_t wrap_call_c_n, wrap_call_cpp_n, wrap_call_wasi_n;
