/* SPDX-License-Identifier: MIT */
/* What witness.c plants and witness_look.c looks at. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "selftest/witness.h"

enum {
    LISTENERS = 6,
    PATH_ROOM = 160,
    NAME_ROOM = 96,
    MACHINE_ID = 32,
    WITNESS_CANARIES = 3,
    NUMBER_ROOM = 24
};
enum { WITNESS_OFFERED = 321 }; /* what an attack writes into the victim's oom_score_adj */
enum { L_TCP, L_TCP6, L_UDP, L_ABSTRACT, L_PATH, L_LETTERS };

struct witness {
    char mark[WITNESS_MARK_MAX], secret[WITNESS_SECRET_MAX];
    char dir[PATH_ROOM], shm_file[PATH_ROOM], queue[PATH_ROOM];
    char host[NAME_ROOM], domain[NAME_ROOM], machine[MACHINE_ID + 1];
    char name[NAME_ROOM];                                       /* of a file, told to nobody */
    char inodes[LISTENERS][NUMBER_ROOM], shm_size[NUMBER_ROOM]; /* numbers told to nobody */
    int listeners[LISTENERS];  /* owned; -1: this host has none of that kind */
    char address[NUMBER_ROOM]; /* of the kernel; "": hidden */
    struct witness_usual usual;
    uint16_t tcp, tcp6, udp;
    pid_t victim; /* owned */
    key_t shm_key;
    int shm; /* owned; -1: none */
    struct {
        int master, slave; /* owned; -1: none */
        char name[NAME_ROOM];
    } terminal;
};

struct witness_canary {
    const char *name;
    mode_t mode;
};
extern const struct witness_canary witness_canaries[WITNESS_CANARIES];

must_check int witness_put_canaries(const struct witness *w);
void witness_put_letter(const struct witness *w);
must_check int witness_plant_victim(struct witness *w, struct err *e);
