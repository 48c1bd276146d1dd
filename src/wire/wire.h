/* SPDX-License-Identifier: MIT */
/*
 * What travels between the daemon, the launcher and the sandboxes' inits. Fixed-size messages, no
 * pointers, descriptors by SCM_RIGHTS. PROTOCOL, beside this file, tells the story; here, in
 * launch.h and in init_control.h are the bytes. The launcher reads only those two.
 */
#pragma once

#include "wire/init_control.h"
#include "wire/launch.h"

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
