/* SPDX-License-Identifier: MIT */
/* What the daemon and pid 1 of a sandbox say to each other (PROTOCOL). */
#pragma once

#include <signal.h>
#include <stdint.h>

enum init_verb {
    /* daemon to init */
    INIT_STOP = 1, /* kill everything but init, then EXITED for what was running */
    INIT_SCAN,     /* list the workspace: ENTRY messages, then SCANNED */
    INIT_HELP,     /* persistent only: start helper `token`; fd: its control socket, where it
                      answers. `arg` not 0: a copy of the warm process (init/warm.h), if there is
                      one. From a warm helper to pid 1: `pid`, its own */
    INIT_END_HELP, /* persistent only: helper `token` and all it started end now */
    INIT_LISTEN,   /* listen on port `arg` (net_ports.h) of the loopback; LISTENING follows */
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
