/* SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>

void random_bytes(void *p, size_t n);     /* getrandom; aborts if the kernel has none */
void random_base36(char *out, size_t n);  /* n characters and a NUL */
void random_hex(char *out, size_t bytes); /* 2 * bytes characters and a NUL */
void random_uuid4(char out[37]);
