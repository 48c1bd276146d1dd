/* SPDX-License-Identifier: MIT */
#include "core/denial.h"

#include <signal.h>
#include <string.h>

#include "base/cleanup.h"

enum { DENIAL_LOOK = 16384, NEEDLES_MAX = 10 }; /* bytes at the end of each text */

/* Where packages come from. */
#define PACKAGES                                                                                   \
    "name the package in the member 'packages' of the request, {\"python\": [...], \"npm\": "      \
    "[...]} or the "                                                                               \
    "name of a set that POST /v1/packages has installed"

#define PACKAGES_SANDBOX                                                                           \
    "make the sandbox with the member 'packages', {\"python\": [...], \"npm\": [...]} or the "     \
    "name "                                                                                        \
    "of a set that POST /v1/packages has installed, or upload it with "                            \
    "PUT /v1/sandboxes/{id}/files/{path}?archive=tar"

/* clang-format off */
static const struct {
    const char *what; /* NULL: nothing was refused */
    const char *setting[2], *advice[2]; /* by place */
    const char *needles[NEEDLES_MAX];
} rows[DENIAL_COUNT] = {
    [DENIAL_INSTALL] = {
        "package installation", {NULL, "ALLOW_HOST_NETWORK"},
        {"nothing can be installed from inside; " PACKAGES,
         "nothing can be installed from inside without a network; " PACKAGES_SANDBOX},
        {"externally-managed-environment", "No matching distribution found", "npm ERR! network", "npm error network",
         "npm ERR! code EAI_AGAIN", "npm error code EAI_AGAIN", "No module named pip", "pip: not found",
         "pip: command not found", "npm: command not found"}},
    [DENIAL_MODULE] = {
        NULL, {NULL, NULL},
        {"a module is not installed here; " PACKAGES,
         "a module is not installed here; " PACKAGES_SANDBOX},
        {"ModuleNotFoundError", "MODULE_NOT_FOUND", "Cannot find module", "Cannot find package", "cannot load such file",
         "in @INC"}},
    [DENIAL_RESULT] = {
        NULL, {NULL, NULL},
        {"the operator's RESULT_MAX bounds a returned value; write a large one to a file in the workspace, and fetch that",
         "the operator's RESULT_MAX bounds a returned value; write a large one to a file, and fetch that"},
        {"bytes as JSON, at most "}},
    [DENIAL_NETWORK] = {
        "network", {NULL, "ALLOW_HOST_NETWORK"},
        {"there is no network but the program's own loopback; bring what it needs along with the request",
         "there is no network but the sandbox's own loopback; where the operator sets ALLOW_HOST_NETWORK, a sandbox may be made with the host's"},
        {"Network is unreachable", "ENETUNREACH", "name resolution", "EAI_AGAIN", "resolve host",
         "Temporary failure resolving", "Name or service not known", "ENOTFOUND"}},
    [DENIAL_READ_ONLY] = {
        "write", {NULL, NULL},
        {"the system is read-only; write below /workspace or /tmp",
         "this part of the system is read-only; write below /workspace, /home, /tmp, /var, /opt or /usr/local"},
        {"Read-only file system", "EROFS", "read-only file system"}},
    [DENIAL_CALL] = {
        "system call", {NULL, NULL},
        {"the sandbox has no privileges, and mounts, namespaces, tracing and rare system calls are refused; no setting allows them",
         "the sandbox has no privileges, and mounts, namespaces, tracing and rare system calls are refused; no setting allows them"},
        {"Operation not permitted", "EPERM", "Function not " "implemented", "ENOSYS", "Bad system call",
         "Address family not supported", "Protocol not supported", "EAFNOSUPPORT"}},
    [DENIAL_PIDS] = {
        "processes", {"PIDS_MAX", "SANDBOX_PIDS"},
        {"threads count, too; the operator's PIDS_MAX bounds them",
         "threads count, too; the operator's SANDBOX_PIDS bounds them"},
        {"start new thread", "fork: retry", "Resource temporarily unavailable", "EAGAIN",
         "pthread_create failed"}},
    [DENIAL_MEMORY] = {
        "memory", {"MAX_MEMORY_MB", "SANDBOX_MEMORY_MB"},
        {"files in /workspace, /tmp and /dev/shm count as memory; the operator's MAX_MEMORY_MB bounds it",
         "files count as memory; the operator's SANDBOX_MEMORY_MB bounds it"},
        {"MemoryError", "Cannot allocate memory", "heap out of memory", "ENOMEM", "std::bad_alloc",
         "Allocation failed", "OutOfMemory"}},
    [DENIAL_DISK] = {
        "disk", {"WORKSPACE_MB", "SANDBOX_DISK_MB"},
        {"the operator's WORKSPACE_MB, WORKSPACE_FILES and TMP_MB bound files in /workspace and /tmp",
         "the operator's SANDBOX_DISK_MB and SANDBOX_FILES bound files in /workspace and elsewhere"},
        {"No space left on device", "ENOSPC", "Disk quota exceeded", "EDQUOT", "no space left"}},
    [DENIAL_DESCRIPTORS] = {
        "open files", {"OPEN_FILES_MAX", "OPEN_FILES_MAX"},
        {"the operator's OPEN_FILES_MAX bounds open descriptors of a process",
         "the operator's OPEN_FILES_MAX bounds open descriptors of a process"},
        {"Too many open files", "EMFILE"}},
};
/* clang-format on */

static bool is_said(const struct buf *b, const char *const needles[NEEDLES_MAX])
{
    size_t n = b && b->p ? b->n : 0, look = n < DENIAL_LOOK ? n : DENIAL_LOOK;

    for (size_t i = 0; look > 0 && i < NEEDLES_MAX && needles[i]; i++)
        if (memmem(b->p + n - look, look, needles[i], strlen(needles[i])))
            return true;
    return false;
}

unsigned denials_find(const struct denial_facts *f)
{
    unsigned set = 0;

    for (unsigned i = 0; i < DENIAL_COUNT; i++)
        for (size_t k = 0; k < ARRAY_LEN(f->said); k++)
            if (is_said(f->said[k], rows[i].needles))
                set |= BIT(i);
    if (f->signal == SIGSYS)
        set |= BIT(DENIAL_CALL);
    if (f->usage && f->usage->oom_kills > 0)
        set |= BIT(DENIAL_MEMORY);
    if (f->usage && f->usage->pids_denied > 0)
        set |= BIT(DENIAL_PIDS);
    return set;
}

void denials_json(struct jw *w, unsigned set, enum denial_place place)
{
    if (!(set & ~(BIT(DENIAL_MODULE) | BIT(DENIAL_RESULT))))
        return;
    jw_key(w, "denied");
    jw_array(w);
    for (unsigned i = 0; i < DENIAL_COUNT; i++) {
        if (!(set & BIT(i)) || !rows[i].what)
            continue;
        jw_object(w);
        jw_kv_string(w, "what", rows[i].what);
        jw_kv_string(w, "setting", rows[i].setting[place]);
        jw_kv_string(w, "advice", rows[i].advice[place]);
        jw_object_end(w);
    }
    jw_array_end(w);
}

const char *denials_hint(unsigned set, enum denial_place place)
{
    for (unsigned i = 0; i < DENIAL_COUNT; i++)
        if (set & BIT(i))
            return rows[i].advice[place];
    return NULL;
}
