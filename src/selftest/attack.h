/* SPDX-License-Identifier: MIT */
/*
 * The table of attacks, and what was seen of one.
 *
 * Theory of operation
 *
 *   selftest.c ──row──▶ carry.c ──plan──▶ a jail ──▶ the program of the row
 *        │                 ▲
 *        │                 └ HELD, BREACH, HOLD on its standard output
 *        └──before, after──▶ witness.c: files, listeners, a process, names of the host
 *
 * A row says which program attacks what, and which trait of a jail forbids it. The program says how
 * it went; the witness, outside, says whether anything of the host was touched, and does so after
 * every single attack, whatever the program says. Either is enough for a breach.
 *
 * A test that cannot fail proves nothing. bare.c runs the same rows without a jail, in namespaces
 * that are thrown away, with the same witness; there the attacks have to succeed.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/port_jail.h"
#include "core/result.h"

enum attack_group {
    GROUP_FILES,
    GROUP_ARTIFACTS,
    GROUP_MOUNTS,
    GROUP_PRIVILEGE,
    GROUP_NAMESPACES,
    GROUP_PROCESSES,
    GROUP_CALLS,
    GROUP_SOCKETS,
    GROUP_NETWORK,
    GROUP_LIMITS,
    GROUP_OTHERS,
    GROUP_WORK,
    GROUP_COUNT,
};

enum attack_program {
    PROGRAM_PROBE,
    PROGRAM_PY_FILES,
    PROGRAM_PY_PROCESSES,
    PROGRAM_PY_NETWORK,
    PROGRAM_PY_LIMITS,
    PROGRAM_PY_OTHERS,
    PROGRAM_PY_CONTROL,
    PROGRAM_JS_CONTROL,
    PROGRAM_SH_CONTROL,
    PROGRAM_COUNT,
};

enum attack_shown { SHOWN_REAL, SHOWN_FAKED, SHOWN_UNSHOWN };

/* What outside the sandbox would show a success, whatever the program says. The first are planted
 * or kept by witness.c and the carriers, the others are asked of the host's kernel about the
 * attacking process, or its family, while it waits (hold.c). */
enum attack_eye {
    EYE_NONE,     /* nothing: it only waits, for a neighbour; no attack has it */
    EYE_CANARY,   /* files, names, memory of the host, and a secret that comes back */
    EYE_LISTENER, /* somebody called */
    EYE_VICTIM,   /* a process of the host */
    EYE_NAMES,    /* names of the host */
    EYE_LEFT,     /* a process that is still there */
    EYE_RESULT,   /* what arrived here: output, files, the reason of the end */
    EYE_FD,       /* a descriptor of the process */
    EYE_SPACES,   /* its namespaces */
    EYE_MOUNTS,   /* its mounts */
    EYE_ROOT,     /* its root */
    EYE_TREE,     /* control groups or /sys among its mounts */
    EYE_NODES,    /* devices in its /dev */
    EYE_NODE,     /* a device in its working directory */
    EYE_CAPS,     /* its capabilities */
    EYE_IDS,      /* its users and groups */
    EYE_NNP,      /* no_new_privs */
    EYE_CALL,     /* what the kernel answers to the very call, read as its tracer */
    EYE_CORE,     /* its limit on core dumps */
    EYE_PROGRAM,  /* the file that it was started from, and the mount that file is on */
    EYE_PATHS,    /* its program, mappings and mounts by name */
    EYE_LOCKED,   /* memory it has locked */
    EYE_SCHED,    /* how it is scheduled */
    EYE_TRACER,   /* who traces it, its parent or its children */
    EYE_RTTIME,   /* a limit of its parent */
    EYE_PERSONA,  /* its personality */
    EYE_LINK,     /* interfaces and addresses of its network */
    EYE_SLOWED,   /* how its parent is scheduled */
    EYE_SCORE,    /* when it, or its parent, is killed for want of memory */
    EYE_SETTINGS, /* settings of the kernel that it has open for writing */
    EYE_MEMORY,   /* what it and its children have: memory, */
    EYE_QUEUES,   /* what waits in TCP and UDP sockets of its network, */
    EYE_DISK,     /* bytes of its working directory, */
    EYE_TMP,      /* of /tmp, */
    EYE_SHM,      /* of /dev/shm, */
    EYE_FILES,    /* files, */
    EYE_TASKS,    /* processes and threads, */
    EYE_OPEN,     /* descriptors, */
    EYE_TIME,     /* processor time */
    EYE_ALIVE,    /* that it is there after its time */
    EYE_COUNT,
};

enum attack_flag {
    FLAG_TIGHT = BIT(0),   /* small limits, so that three times of them hurt nobody */
    FLAG_SHORT = BIT(1),   /* and little time */
    FLAG_CPU = BIT(2),     /* and little processor time */
    FLAG_QUIET = BIT(3),   /* its output is the attack: it says nothing */
    FLAG_COLLECT = BIT(4), /* the workspace is read afterwards, as for artifacts */
    FLAG_AFTER = BIT(5),   /* twice, one after the other: plant, look */
    FLAG_BESIDE = BIT(6),  /* twice, at the same time */
    FLAG_LEAK = BIT(7),    /* without a jail it is given a descriptor to find */
};

struct attack {
    const char *id, *title;
    enum attack_group group;
    enum attack_program program;
    unsigned traits; /* enum jail_trait */
    unsigned ends;   /* BIT(enum end_reason) */
    enum attack_shown shown;
    unsigned flags; /* enum attack_flag */
    enum attack_eye eye;
};

extern const struct attack attacks[];
extern const size_t attacks_n;
const char *attack_group_name(enum attack_group g);
/* The kind of witness in a word. `weak`: what was left of it. */
const char *attack_eye_name(enum attack_eye e, bool weak);
/* Is it looked at while it waits? */
bool attack_is_held(const struct attack *a);
/* What should happen, in a word or two. */
const char *attack_expected(const struct attack *a);

enum { SIGHT_WORDS = 160 };

/* What was seen of one attack. */
struct sight {
    bool held, breach, ok, absent; /* what the program said */
    bool noticed;                  /* what the witness said */
    bool failed;                   /* it could not even be started */
    bool weak;                     /* the witness saw less than it should: EYE_CALL */
    enum end_reason reason;
    int exit_code;
    char words[SIGHT_WORDS];   /* of the program, or why it failed */
    char witness[SIGHT_WORDS]; /* of the witness; "": nothing noticed */
    char numbers[SIGHT_WORDS]; /* what the first of two handed on */
    uint64_t us;
};

enum verdict_kind {
    VERDICT_HELD,       /* refused, as declared */
    VERDICT_BREACHED,   /* a declared trait does not hold */
    VERDICT_UNPROMISED, /* it went through, and nobody had declared otherwise */
    VERDICT_WORKS,      /* ordinary work */
    VERDICT_BROKEN,     /* ordinary work does not work, or an attack did not run */
    VERDICT_ABSENT,     /* not on this host */
    VERDICT_COUNT,
};

enum verdict_kind attack_verdict(const struct attack *a, unsigned traits, const struct sight *s);
const char *verdict_kind_name(enum verdict_kind v);
