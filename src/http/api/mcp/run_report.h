/* SPDX-License-Identifier: MIT */
/*
 * What a tool that runs something tells about it: as text for reading, and as data, each complete
 * alone. Output that is too long is cut in the middle, and all of it kept in a file of the sandbox.
 * Files that are new in /workspace are listed, pictures among them shown.
 *
 *   begun ──output──▶ ended ──▶ whole output kept ──▶ files looked for ──▶ pictures read ──▶
 * answered
 */
#pragma once

#include <time.h>

#include "core/port_run.h"
#include "core/port_work.h"
#include "http/api/mcp/tool.h"

enum {
    REPORT_ID_MAX = 24,
    REPORT_STREAM_MAX = 10 << 20, /* bytes of each stream that are kept */
    REPORT_FILES_MAX = 50,
    REPORT_IMAGES_MAX = 4,
    REPORT_VALUE_MAX = 16000, /* characters of a value */
    REPORT_LINE_MAX = 200,
    REPORT_PROCESS_MAX = 36,
};

enum report_status { REPORT_SUCCESS, REPORT_FAILED, REPORT_TIMEOUT, REPORT_ERROR, REPORT_RUNNING };

struct report_file {
    char *path; /* owned: below /workspace */
    uint64_t size;
};

struct run_report {
    struct work work; /* first: the result is written on a worker thread */
    struct tool_call *t;
    struct persistent *home; /* borrowed: the call is an activity in it */
    uint64_t owner;          /* of the files that it leaves */
    char id[REPORT_ID_MAX];
    struct {
        struct buf out[RUN_STREAMS]; /* as it came */
        bool lost[RUN_STREAMS];      /* there was more than REPORT_STREAM_MAX */
        size_t shown_max;            /* characters of each stream */
        enum run_stream keeping;     /* whose whole output is written now */
    } output;
    struct {
        enum report_status status;
        uint64_t began_us, took_us;
        struct timespec began_at; /* on the clock of files */
        bool exited;              /* exit_code is known */
        int exit_code;
        char process[REPORT_PROCESS_MAX + 1]; /* "": none */
        char place[PERSISTENT_ID_MAX + 1];    /* the sandbox */
    } ran;
    struct buf value; /* JSON of the value; empty: there is none */
    struct buf text;  /* what stands for it as text, if it is not the JSON */
    struct {
        struct buf type, message, stack;
    } error;               /* empty: none */
    struct buf tool_calls; /* JSON: an array; empty: it called none */
    char hint[TOOL_HINT_MAX];
    char line[REPORT_LINE_MAX + 1];
    bool is_error;
    bool text_alone; /* no structuredContent is wanted */
    struct tool_result result;
    char *path; /* owned: of the file that is written or read now */
    struct tool_file *file;
    struct filework *walk; /* owned */
    struct {
        struct report_file all[REPORT_FILES_MAX];
        size_t n, more, image_at, images_n;
    } found;
    bool writing; /* it is the worker's */
    bool left;    /* nobody wants it: freed when the worker is through */
};

/* Answered: NULL. A worker `stop` frees with report_free() and then tool_free(). */
struct run_report *report_new(struct tool_call *t, struct persistent *home);
void report_free(struct run_report *r);
void report_output(struct run_report *r, enum run_stream s, const char *p, size_t n);
/* The last line that was printed, for progress. */
const char *report_line(struct run_report *r);
void report_hint(struct run_report *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* A hint for what the program said, if it has none. */
void report_advise(struct run_report *r);
/* It has ended, or goes on elsewhere: looks at the files, answers, and frees all of it. */
void report_answer(struct run_report *r);
