/* SPDX-License-Identifier: MIT */
/*
 * What travels between the daemon, the launcher and the sandboxes' inits.
 * Fixed-size messages, no pointers, descriptors by SCM_RIGHTS. PROTOCOL, beside
 * this file, tells the story; here are the bytes.
 */
#pragma once

#include <stdint.h>

#include "base/err.h"

/* ---- daemon <-> launcher: SEQPACKET ---- */

enum launch_verb {
    /* daemon to launcher */
    LAUNCH_PREPARE = 1, /* build a sandbox; fds: ctl, job, in, out, err (the child's ends) */
    LAUNCH_KILL,        /* kill sandbox `id` at once */

    /* launcher to daemon */
    LAUNCH_HELLO,   /* first message, and again after a restart: traits this host gives */
    LAUNCH_STARTED, /* sandbox `id` runs in `slot`; fds when the slot is new: cpu, memory, oom, pids
                     */
    LAUNCH_FAILED,  /* sandbox `id` was not made; text says why */
    LAUNCH_DEAD,    /* sandbox `id` is gone and its slot is clean or retired */
    LAUNCH_VERB_COUNT,
};

enum {
    LAUNCH_PERSISTENT = 1,   /* PREPARE: no first process, lives until released */
    LAUNCH_WATCH_MEMORY = 2, /* PREPARE: no memory controller here; init watches instead */
    LAUNCH_CGROUP2 = 4,      /* STARTED: usage files are those of version 2 */
    LAUNCH_RETIRED = 8,      /* DEAD: the slot is closed, its usage files are void */
};                           /* flags */

enum { LAUNCH_FDS_PREPARE = 5, LAUNCH_FDS_STARTED = 4, LAUNCH_WORKSPACE_MAX = 136 };

struct launch_msg {
    uint32_t verb;
    uint32_t template;
    uint64_t id;
    uint64_t memory_max, workspace_max, workspace_files, tmp_max;
    uint32_t pids_max, slot;
    uint32_t traits, templates; /* HELLO: enum jail_trait; which templates can be warmed */
    int32_t status;             /* DEAD: wait status of init */
    uint32_t flags;
    char
        workspace[LAUNCH_WORKSPACE_MAX]; /* "": fresh tmpfs; else a name below the workspace root */
    struct err err;                      /* FAILED */
};

/* ---- daemon <-> init: SEQPACKET ---- */

enum init_verb {
    /* daemon to init */
    INIT_SPAWN = 1, /* one more process `token`; fds: job, in, out, err */
    INIT_SIGNAL,    /* signal `arg` to process `token` and all it started */
    INIT_STOP,      /* kill everything but init, then EXITED for what was running */
    INIT_SCAN,      /* list the workspace: ENTRY messages, then SCANNED */

    /* init to daemon */
    INIT_READY = 32, /* locked and waiting */
    INIT_STARTED,    /* process `token` is `pid` */
    INIT_EXITED,     /* process `token` ended with `status`; for the first process of an ephemeral
                        sandbox everything else is dead, too */
    INIT_ENTRY,      /* one regular file: `name`, `size`, times; fd: open for reading */
    INIT_SCANNED,    /* end of the list; `arg`: how many were left out */
    INIT_FAILED,     /* `arg` is an errno, `name` says what */
};

enum { INIT_FDS_SPAWN = 4, INIT_NAME_MAX = 4096 };

struct init_msg {
    uint32_t verb;
    uint32_t token;
    int32_t status, pid;
    int64_t arg;
    int64_t cpu_us, maxrss, io_read, io_write; /* EXITED: what was reaped so far */
    int64_t oom;                               /* EXITED: killed by init's own memory watch */
    int64_t size, mtime_s, mtime_ns;           /* ENTRY */
    uint32_t mode, name_n;
    /* followed by name_n bytes */
};

/* ---- daemon -> runner: the head of the job stream ---- */

enum { JOB_MAGIC = 0x53425801, JOB_STRINGS_MAX = 8 << 20, JOB_ITEMS_MAX = 65536 };

enum { JOB_CHANNEL = 1 }; /* flags: leave descriptor 3 open in the program, frames follow */

struct job_head {
    uint32_t magic;
    uint32_t argc, envc, filec;
    uint64_t strings_n; /* cwd, argv, env, then for each file its path: NUL-terminated, in a row */
    uint64_t files_n;   /* bytes of all files together, in a row, after the strings */
    uint64_t cpu_s, file_max;
    uint32_t nofile, nproc;
    uint32_t flags, reserved;
    /* strings; struct job_file[filec]; file contents; then frames for descriptor 3 */
};

struct job_file {
    uint64_t size;
    uint32_t mode, reserved;
};
