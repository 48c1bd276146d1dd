/* SPDX-License-Identifier: MIT */
/*
 * sandbox-zygote-node: starts node as a zygote, in the template root. With the name of a
 * WebAssembly runtime as argument it becomes a zygote of that one (wasm/host.js).
 * The library that does the work (zygote_node.c) lies beside it.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <speedups.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "init/order.h"
#include "walls/seccomp.h"
#include "zygote/zygote.h"

#define LIBRARY ROOT_PROGRAMS "/sandbox-zygote-node.node"

/* Loads the library as a module and runs the text that it brings along.
 * Braces, because programs could see what is declared at the top. */
static const char start[] = "{"
                            "const zygote = new (require('module'))('sandbox:zygote');"
                            "process.dlopen(zygote, '" LIBRARY "');"
                            "const { texts } = zygote.exports, wasm = process.argv.length > 1;"
                            "require('v8').setFlagsFromString('--no-lazy');"
                            "zygote._compile(wasm ? texts.host : texts.zygote, 'sandbox:zygote');"
                            "}";

static char *const environment[] = {
#define VARIABLE(name, value, unless) (char *)name "=" value,
#include "core/variables.def"
#undef VARIABLE
#if SPEEDUP_NEAR_HEAP
    (char *)"LD_PRELOAD=" LIBRARY, /* zygote_node_mmap.c; gone before anything else starts */
#endif
    NULL,
};

/* Nothing of the daemon's terminal may decide how node sees its streams. */
static int quiet_streams(void)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    return null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 ? -1 : 0;
}

/* A ring is shared with the kernel and cannot be made anew in a copy. Sandboxes have none either;
 * libuv takes this answer for an older kernel. A keeper's has one entry, and no copy gets it
 * (hot.h). */
static int refuse_rings(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 1, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog p = {.len = ARRAY_LEN(code), .filter = code};

    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? -errno : filter_install(&p);
}

/* Interpreters in WebAssembly recurse on V8's stack; 8 MiB is what a sandbox has (confine.c). */
#define WASM_STACK "--stack-size=7000"

int main(int argc, char **role)
{
    char heap[48];
    bool wasm = argc > 1;
    /* One thread of V8's for each copy: four would cost each prepared sandbox their stacks. And
     * nobody who looks for garbage because it is quiet: a copy would do so at once, since for it
     * the time since the zygote's last collection has passed already. */
    char *const argv[] = {
        (char *)INTERPRETER_NODE,
        (char *)"--v8-pool-size=1",
        (char *)"--no-memory-reducer",
        heap,
        (char *)"-e",
        (char *)start,
        wasm ? (char *)WASM_STACK : NULL,
        (char *)"--",
        wasm ? role[1] : NULL,
        NULL,
    };
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);

    if (fcntl(ZYGOTE_FD, F_GETFD) < 0 || quiet_streams() < 0 || refuse_rings() < 0) {
        (void)fprintf(stderr, "sandbox-zygote-node is started by sandbox-launcher\n");
        return EXIT_FAILURE;
    }
    /* The limit of a living heap can only be lowered. */
    (void)snprintf(heap, sizeof heap, "--max-old-space-size=%ld", pages * (page >> 10) >> 10);
    (void)execve(argv[0], argv, environment);
    perror("sandbox-zygote-node: " INTERPRETER_NODE);
    return EXIT_FAILURE;
}
