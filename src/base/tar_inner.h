/* SPDX-License-Identifier: MIT */
/* What the parts of the tar code share: where the fields of a header are, and how they are read. */
#pragma once

#include "base/tar.h"

struct tar_head {
    char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8], type, link[100];
    char magic[6], version[2], uname[32], gname[32], major[8], minor[8], prefix[155], unused[12];
};
_Static_assert(sizeof(struct tar_head) == TAR_BLOCK, "a header is one block");

/* Seconds, on both sides of 1970 and in both ways of saying them: what is read can be written. */
#define TAR_TIME_MAX (INT64_MAX / 2)

/* The sum of all bytes, those of the checksum taken for spaces. */
void tar_sums(const struct tar_head *h, unsigned *ret_plain, int *ret_signed);

/* A field of octal digits, or in GNU's way for large ones. */
bool tar_read_number(const char *p, size_t n, int64_t *ret);
bool tar_sum_is_right(const struct tar_head *h);

/* Always -1. */
int tar_refuse(struct tar_reader *r, enum tar_fault fault);
/* An extended header, or one name of GNU's. 0, or -1 and the fault. */
int tar_pax_records(struct tar_reader *r, const char *p, size_t n);
int tar_pax_path(struct tar_reader *r, const char *p, size_t n);
int tar_pax_link(struct tar_reader *r, const char *p, size_t n);
