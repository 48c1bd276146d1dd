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

/* One per language whose functions can be called: wrap/call_<word>.*. */
#define CALL_LANG(word, id, aliases, inspect, file, flags, start, wasm, literals)                  \
    extern const char wrap_call_##word[];                                                          \
    extern const size_t wrap_call_##word##_n;
#include "call/langs.def"
#undef CALL_LANG
/* Of C and C++ in WebAssembly. */
extern const char wrap_call_wasi[];
extern const size_t wrap_call_wasi_n;
