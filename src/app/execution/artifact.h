/* SPDX-License-Identifier: MIT */
/* Artifacts: which files of a workspace are reported, and as what. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/port_store.h"

/* What became of the copy that others can ask for. */
enum artifact_fate {
    ARTIFACT_KEPT,
    ARTIFACT_UNWANTED,  /* nothing is kept here (RETAIN_COUNT=0) */
    ARTIFACT_TOO_LARGE, /* for RETAIN_BYTES, or for what is hashed of one execution */
    ARTIFACT_FAILED,    /* the state directory is full, or failed */
    ARTIFACT_FATE_COUNT,
};

struct artifact {
    char *path; /* owned; relative to the workspace, UTF-8 */
    enum artifact_fate fate;
    int64_t mtime_s, mtime_ns;
    struct stored stored;
};

struct artifacts {
    struct artifact **v; /* owned, each */
    size_t n, cap, max;
    int64_t left_out; /* worth reporting, but beyond the maximum */
};

/* Never hidden, never with "..", never absolute, always UTF-8. */
bool artifact_is_reported(const char *path, size_t n);
const char *artifact_type(const char *path); /* "output", "log" or "artifact" */
/* It was to be kept and is not: it is listed apart, with its reason. */
bool artifact_is_lost(const struct artifact *a);
const char *artifact_reason(const struct artifact *a); /* "too_large" or "storage" */

/* The new artifact, or NULL when it is not to be reported. It stays where it is until freed. */
struct artifact *artifacts_add(struct artifacts *a, const char *path, size_t n);
void artifacts_remove(struct artifacts *a, size_t i);
void artifacts_sort(struct artifacts *a); /* by bytes of the path */
const struct artifact *artifacts_find(const struct artifacts *a, const char *path);
void artifacts_done(struct artifacts *a);
