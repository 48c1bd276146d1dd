/* SPDX-License-Identifier: MIT */
/*
 * Tar archives: taken apart and put together, without touching a file.
 *
 * The reader is fed bytes in pieces of any size and tells a sink what they mean. It takes what is
 * in use: ustar and its ancestor, pax extended headers (path, linkpath, size, mtime), GNU long
 * names and large numbers. Only files, directories and links are entries; what could be read in
 * two ways (sparse files, links with content) is refused rather than guessed. Memory is bounded by
 * one extended header, whatever the archive says.
 *
 *   HEAD ──▶ META ─┐        META: an extended header, about the next entry
 *    ▲ └───▶ DATA ─┤        DATA: the content of a file
 *    │ └───▶ SKIP ─┤        SKIP: what nobody wants, and padding
 *    └─────────────┘        END: after a block of zeros; anything may follow
 *
 * The writer makes ustar headers, with a pax header before those that need one.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/cleanup.h"

enum {
    TAR_BLOCK = 512,
    TAR_NAME_MAX = 4096,      /* with its NUL: what a kernel takes */
    TAR_META_MAX = 64 * 1024, /* one extended header */
};

enum tar_kind { TAR_FILE, TAR_DIRECTORY, TAR_SYMLINK, TAR_HARDLINK };

struct tar_entry {
    enum tar_kind kind;
    const char *name; /* relative, without ".", ".." and empty parts; "." is the top itself */
    const char *link; /* SYMLINK: as it stands; HARDLINK: another name; else "" */
    uint64_t size;    /* FILE */
    uint32_t mode;    /* permission bits */
    uint32_t uid, gid;
    int64_t mtime_s;
    uint32_t mtime_ns;
};

/* What can be wrong with an archive. */
enum tar_fault {
    TAR_FINE,
    TAR_CHECKSUM,
    TAR_NUMBER,
    TAR_EXTENDED,
    TAR_TYPE,
    TAR_SPECIAL,
    TAR_CONTENT,
    TAR_NAME_EMPTY,
    TAR_NAME_LONG,
    TAR_NAME_ABSOLUTE,
    TAR_NAME_PARENT,
    TAR_CUT,
    TAR_NO_END,
    TAR_MANY,
    TAR_DEEP,
    TAR_LARGE,
    TAR_MEMORY,
    TAR_FAULT_COUNT,
};
const char *tar_fault_words(unsigned fault); /* never NULL */
bool tar_fault_is_limit(unsigned fault);     /* MANY, DEEP, LARGE */

struct tar_limits {
    uint64_t entries, bytes; /* bytes of the archive itself */
    unsigned depth;          /* directories within each other */
};

/* Each returns 0, or something else to end the reading. */
struct tar_sink {
    int (*entry)(void *user, const struct tar_entry *e);
    int (*data)(void *user, const char *p, size_t n); /* of the FILE told last */
    int (*entry_end)(void *user);                     /* of a FILE */
    void *user;
};

enum tar_state { TAR_HEAD, TAR_META, TAR_DATA, TAR_SKIP, TAR_END };

struct tar_reader {
    struct tar_limits limits;
    struct tar_sink sink;
    enum tar_fault fault;
    uint64_t at, entries; /* bytes taken; entries told */
    uint64_t head_at;     /* where the header last looked at begins; the end, if that is wrong */
    enum tar_state state;
    char meta_type;
    uint64_t left, pad; /* of what the state is about; padding behind it */
    size_t block_n;
    char block[TAR_BLOCK];
    struct buf meta;
    bool has_name, has_link, has_size, has_mtime; /* said by an extended header */
    uint64_t size;
    int64_t mtime_s;
    uint32_t mtime_ns;
    char raw[TAR_NAME_MAX], raw_link[TAR_NAME_MAX];
    /* Of the entry last looked at, clean; as it stands when it was refused; "": there was none. */
    char name[TAR_NAME_MAX], link[TAR_NAME_MAX];
};

void tar_open(struct tar_reader *r, const struct tar_limits *limits, const struct tar_sink *sink);
void tar_close(struct tar_reader *r);
/* 0, or -1: `fault` says why, FINE: the sink ended it. Not to be fed again then. */
must_check int tar_feed(struct tar_reader *r, const char *p, size_t n);
/* Nothing more will come. */
must_check int tar_finish(struct tar_reader *r);

/* Makes a name clean and counts its directories. */
enum tar_fault tar_clean_name(const char *raw, char out[TAR_NAME_MAX], unsigned *ret_depth);

/* ---- writing ---- */

/* Appends the header(s) of an entry; a directory's name may lack its slash. */
void tar_put_header(struct buf *out, const struct tar_entry *e);
/* Zeros that follow content of that size. */
size_t tar_padding(uint64_t size);
enum { TAR_END_SIZE = 2 * TAR_BLOCK }; /* zeros that end an archive */
