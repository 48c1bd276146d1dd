/* SPDX-License-Identifier: MIT */
/*
 * What travels between the daemon, the launcher and the sandboxes' inits.
 * Fixed-size messages, no pointers, descriptors by SCM_RIGHTS. PROTOCOL, beside
 * this file, tells the story; here are the bytes.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "core/plan.h"

/* ---- daemon <-> launcher: SEQPACKET ---- */

enum launch_verb {
    /* daemon to launcher */
    LAUNCH_PREPARE = 1, /* build a sandbox; fds: ctl, job, in, out, err (the child's ends) */
    LAUNCH_KILL,        /* kill sandbox `id` at once */
    LAUNCH_MEASURE,     /* how large is the kept `workspace`? fd: takes a struct launch_measured;
                           not 0: the walk stops beyond workspace_max or workspace_files */
    LAUNCH_DISCARD,     /* remove the kept `workspace`; fd: takes a struct launch_measured */

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
    LAUNCH_HOST_NET = 16,    /* PREPARE: the host's network instead of one of its own */
    LAUNCH_LAZY = 64, /* HELLO: host directories can be lent (lazy.h); else `dirs` says why */
};                    /* flags */

enum {
    LAUNCH_FDS_PREPARE = 5,
    LAUNCH_FDS_STARTED = 6,
    LAUNCH_WORKSPACE_MAX = 136,
    LAUNCH_DIRS_MAX = 256,
    LAUNCH_DEPENDENCIES_MAX = 152,
    /* launcher to keeper: workspace, dependencies, a socket for what is lent; those that there are
     */
    LAUNCH_FDS_KEEPER = LAUNCH_FDS_PREPARE + 3,
    LAUNCH_LAZY_MAX = PLAN_LAZY_MAX,
    LAUNCH_FDS_MAX = LAUNCH_FDS_PREPARE + LAUNCH_LAZY_MAX + 1,
};

struct launch_msg {
    uint32_t verb;
    uint32_t template;
    uint64_t id;
    uint64_t memory_max, workspace_max, workspace_files, tmp_max;
    uint32_t pids_max, slot;
    uint32_t traits, templates; /* HELLO: enum jail_trait; which templates can be warmed */
    int32_t status;             /* DEAD: wait status of init */
    uint32_t flags;
    uint32_t uid;    /* launcher to keeper: the host user of the sandbox; rootless: 0 */
    uint32_t lazy_n; /* PREPARE: host directories that are lent; fds: one of each, then the list */
    char workspace[LAUNCH_WORKSPACE_MAX]; /* "": fresh tmpfs; else a name below the workspace root,
                                             or PLAN_WORKSPACE_OWN */
    char dirs[LAUNCH_DIRS_MAX];           /* "app/data": more writable directories; "": none */
    char dependencies[LAUNCH_DEPENDENCIES_MAX]; /* "owner/3" below their root; "": none */
    struct err err;                             /* FAILED */
};

/* The answer to MEASURE and DISCARD. No answer at all: a walk took too long. */
struct launch_measured {
    uint64_t bytes, files; /* of the workspace; one that is not there has none */
    uint64_t room, total;  /* bytes of the file system it is on; 0: not known */
    int32_t error;         /* errno: not everything was seen or removed; EAGAIN: too many at once */
    uint16_t too_deep;     /* directories in each other beyond what is walked */
    uint16_t gone;         /* there is no workspace of that name, or no longer */
};

/* How many come with a PREPARE from the daemon. */
static inline size_t launch_fds(const struct launch_msg *m)
{
    return LAUNCH_FDS_PREPARE + (m->lazy_n > 0 ? (size_t)m->lazy_n + 1 : 0);
}

/* Is there more than /workspace that can be written, and one tree of it all? */
static inline bool launch_has_tree(const struct launch_msg *m)
{
    return m->dirs[0] || m->lazy_n > 0;
}

/* ---- daemon <-> init: SEQPACKET ---- */

enum init_verb {
    /* daemon to init */
    INIT_STOP = 1, /* kill everything but init, then EXITED for what was running */
    INIT_SCAN,     /* list the workspace: ENTRY messages, then SCANNED */
    INIT_HELP,     /* persistent only: start helper `token`; fd: its control socket, where it
                      answers */
    INIT_END_HELP, /* persistent only: helper `token` and all it started end now */
    INIT_LISTEN,   /* listen on port `arg` of the loopback; LISTENING follows */
    INIT_SIGNAL,   /* signal `arg` to the program's process group, `status` not 0: to it alone;
                      SIGNALLED follows */
    INIT_PUT,      /* the file `name`, as ENTRY names it, gets `size` bytes of the fd from `arg` on;
                      PUT_DONE follows */

    /* init to daemon */
    INIT_READY = 32, /* locked and waiting; persistent: `arg` says what can be written, OVERLAY_* */
    INIT_EXITED,  /* the program ended with `status`, and everything else is dead, too; `size` not
                     0: it said so itself, was the only process ever, and is being taken down:
                     the ends of its pipes may come later than this */
    INIT_ENTRY,   /* one regular file: `name`, `size`, times; fd: open for reading. `arg` not 0: it
                     was lent and nobody has touched it; there is no fd */
    INIT_SCANNED, /* end of the list; `arg`: how many were left out */
    INIT_FAILED,  /* `name` says what and why, in words; `arg` is the errno; of a helper `status`
                     is an enum help_op */
    INIT_LISTENING,   /* on port `arg`; fd: the listener, which no process inside has. Without fd
                         `status` is an errno */
    INIT_SIGNALLED,   /* the signal is pending or was delivered */
    INIT_PUT_DONE,    /* `arg`: errno or 0 */
    INIT_MAIN_EXITED, /* of a helper: its program ended with `status`; processes that it started
                         live on. EXITED follows when the last of them has ended */
};

enum { INIT_FDS_SPAWN = 4, INIT_NAME_MAX = 4096 }; /* job, in, out, err */
enum {
    INIT_SIGNAL_DONE = SIGUSR1
}; /* first process to init, queued with threads << 8 | exit code */

struct init_msg {
    uint32_t verb;
    uint32_t token;
    int32_t status, pid;
    int64_t arg;
    int64_t cpu_us, maxrss, io_read, io_write; /* EXITED: what was reaped so far; -1: unknown */
    int64_t oom;                               /* EXITED: killed by init's own memory watch */
    int64_t size, mtime_s, mtime_ns;           /* ENTRY */
    uint32_t mode, name_n;
    /* followed by name_n bytes */
};

/* EXITED, of a program that said itself that it is done and was the only process ever. */
static inline struct init_msg init_left(int code)
{
    return (struct init_msg){.verb = INIT_EXITED,
                             .status = (code & 255) << 8, /* as wait() would tell it */
                             .size = 1,
                             .cpu_us = -1, /* the control groups know */
                             .maxrss = -1};
}

/* ---- daemon <-> helper of a persistent sandbox: SEQPACKET, struct init_msg and bytes ---- */

/*
 * A helper is a process that pid 1 of a persistent sandbox starts. It does one thing at a time. The
 * last answer to a request about a file is DONE; then it waits for the next. End of file without
 * it: the helper died. After RUN it answers like init: READY with `pid`, or FAILED; MAIN_EXITED if
 * something outlives the program; EXITED when nothing of it is left; and
 * it understands STOP and SIGNAL. At the end of its socket it stays until what the program left has
 * ended.
 */
enum help_verb {
    /* daemon to helper */
    HELP_RUN = 64, /* a program; fds: job, in, out, err; `arg` not 0: the helper stays, and says
                      DONE after EXITED; `size` not 0: its streams are a terminal of that size
                      (plan_terminal()), which in and out carry */
    HELP_READ,     /* the file `name`; `size`: the most that may be sent as bytes */
    HELP_WRITE,    /* the file `name`, NUL, `token` bytes of metadata (NAME NUL VALUE NUL …); fd:
                      the content, until its end; `arg`: WRITE_* */
    HELP_MKDIR,  /* `name` and its parents; `arg` not 0: it must be new, and ENTRIES tells of it */
    HELP_REMOVE, /* a file or an empty directory */
    HELP_REMOVE_ALL, /* a tree */
    HELP_LIST,       /* NAMES messages */
    HELP_STAT,       /* `size`, `mode`, times */
    HELP_CONNECT,    /* to port `arg` of the loopback; fd with DONE */
    HELP_UNPACK,     /* a tar archive from the fd into the directory `name`; limits: `size` bytes,
                        `arg` entries, `token` levels */
    HELP_PACK,       /* the directory `name` as such an archive into the fd; limits as before */
    HELP_USAGE,      /* `pid`: processes; `size`: bytes of memory; `io_write`: bytes on disk */
    HELP_RESIZE,     /* while it runs a program: its terminal has `size` now */
    HELP_LOOK,       /* ENTRIES: what `name` is */
    HELP_WALK,  /* ENTRIES: what is in the directory `name`, `token` levels of it, at most `arg`
                   entries, which `token` of DONE counts; its `size` not 0: there are more.
                   NUL, the relative path of the entry they begin behind */
    HELP_MOVE,  /* `name`, NUL, the new path, whose parents are made; `arg`: what is there is
                   replaced; ENTRIES: what is there now */
    HELP_COPY,  /* the same, and the old one stays */
    HELP_WATCH, /* EVENTS: what happens in the directory `name`; `arg`: WATCH_* */

    /* helper to daemon */
    HELP_NAMES = 96, /* LIST: some names, each with its NUL */
    HELP_BYTES,      /* READ of what is no ordinary file: some bytes */
    HELP_ENTRIES,    /* some struct help_entry, possibly none: the work goes on */
    HELP_EVENTS,     /* WATCH: none, once: it stands; then some struct help_event */
    HELP_DONE,       /* `arg`: errno or 0; on failure `status` is an enum help_op and `name` the
                        path it failed at; READ: fd of an ordinary file; UNPACK, PACK: `io_read`
                        entries, `size` bytes of files or of archive; on failure `token` is an
                        enum tar_fault, found at byte `size` */
};

enum { HELP_DATA_MAX = 64 * 1024, HELP_OWNER_MAX = 32 };

enum {
    WRITE_PARENTS = 1, /* are made */
    WRITE_GZIP = 2,    /* the content is to be inflated */
    WRITE_TOLD = 4,    /* ENTRIES: what it is then */
};                     /* flags */

enum {
    WATCH_RECURSIVE = 1, /* also what is in directories below, and in those that are made later */
    WATCH_ENTRIES = 2,   /* a struct help_entry comes with an event, if the file is still there */
};                       /* flags */

/* What something in a file system is. Of a link it tells about the link, and where that leads. */
struct help_entry {
    uint32_t n;                 /* bytes of this record, what follows included */
    uint32_t mode, target_mode; /* target_mode: of what a link leads to; 0: it leads nowhere */
    uint32_t uid, gid;
    uint32_t mtime_ns, atime_ns, ctime_ns;
    int64_t mtime_s, atime_s, ctime_s;
    int64_t size, inode;
    char owner[HELP_OWNER_MAX], group[HELP_OWNER_MAX]; /* names, or numbers as text */
    uint32_t path_n, link_n, target_n, metadata_n;
    /* followed by the path, the text of a link, where it leads, and NAME NUL VALUE NUL for each
     * piece of metadata */
};

enum help_event_kind {
    HELP_EVENT_CREATE,
    HELP_EVENT_WRITE,
    HELP_EVENT_REMOVE,
    HELP_EVENT_RENAME, /* it had this name */
    HELP_EVENT_CHMOD,
    HELP_EVENT_OVERFLOW, /* events were lost; no name */
    HELP_EVENT_COUNT,
};

struct help_event {
    uint32_t n; /* bytes of this record, what follows included */
    uint32_t kind;
    uint32_t name_n, entry_n;
    /* followed by the name, relative to the directory, and a struct help_entry, if there is one */
};

/* At which operation a request failed; the daemon has the words. */
enum help_op {
    HELP_OP_OPEN,
    HELP_OP_READ,
    HELP_OP_WRITE,
    HELP_OP_MKDIR,
    HELP_OP_REMOVE,
    HELP_OP_REMOVE_ALL,
    HELP_OP_UNLINK,
    HELP_OP_STAT,
    HELP_OP_CONNECT,
    HELP_OP_DIRECTORY, /* of a program: its working directory */
    HELP_OP_START,     /* of a program: everything else */
    HELP_OP_LINK,
    HELP_OP_PACK,
    HELP_OP_UNPACK,
    HELP_OP_TERMINAL, /* of a program: its terminal */
    HELP_OP_RENAME,
    HELP_OP_COPY,
    HELP_OP_WATCH,
    HELP_OP_COUNT,
};

/* ---- daemon -> runner: the head of the job stream ---- */

enum { JOB_MAGIC = 0x53425801, JOB_STRINGS_MAX = 8 << 20, JOB_ITEMS_MAX = 65536 };

enum {
    JOB_CHANNEL = 1, /* leave descriptor 3 open in the program, frames follow */
    JOB_NAMED = 2,   /* argv[0] is the file to execute; what the program sees begins at argv[1] */
    JOB_FENCED = 4,  /* may write only where files have rights; modes of directories count */
    JOB_TELLS = 8,   /* say when all files are in place, with a frame */
    JOB_LEAVES = 16, /* who was alone and kept nothing may say with a frame that it has ended */
    JOB_STAYS = 32,  /* and then waits for the end of its sandbox: there is no hurry */
};                   /* flags */

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
    uint32_t mode, rights; /* core/plan.h */
};

/* What can be written, as INIT_READY of a persistent sandbox tells. */
enum { OVERLAY_USR = 1, OVERLAY_LOCAL = 2, OVERLAY_ETC = 4 };
