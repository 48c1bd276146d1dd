/* SPDX-License-Identifier: MIT */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <mqueue.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/random.h"
#include "selftest/witness_inner.h"

#define SHM_FAILED ((void *)-1)

/* Nothing of that size is ever touched; it is a number to be recognized by. */
enum { LETTER_BYTES = 64, SHM_LEAST = 100000000, SHM_SPAN = 800000000, SYMBOLS_MAX = 1000 };

const struct witness_canary witness_canaries[WITNESS_CANARIES] = {
    {"secret",    0644},
    {"writable",  0666},
    {"removable", 0666},
};

void witness_secret(char out[WITNESS_SECRET_MAX])
{
    random_hex(out, (WITNESS_SECRET_MAX - 2) / 2);
}

/* ---- planting ---- */

static int put_file(const char *path, const char *text, mode_t mode)
{
    cleanup_close int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    if (fd < 0 || fchmod(fd, mode) < 0)
        return -errno;
    return fd_write_all(fd, text, strlen(text));
}

int witness_put_canaries(const struct witness *w)
{
    char path[PATH_MAX];
    int r = 0;

    for (size_t i = 0; i < WITNESS_CANARIES && r == 0; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", w->dir, witness_canaries[i].name);
        r = put_file(path, w->secret, witness_canaries[i].mode);
    }
    if (r == 0) {
        (void)snprintf(path, sizeof path, "%s/%s", w->dir, w->name);
        r = put_file(path, "", 0644);
    }
    return r;
}

static int plant_files(struct witness *w, struct err *e)
{
    int r;

    (void)snprintf(w->dir, sizeof w->dir, "/tmp/sbx-%s", w->mark);
    if (mkdir(w->dir, 0700) < 0 || chmod(w->dir, 01777) < 0)
        return err_sys(e, -errno, "%s", w->dir);
    r = witness_put_canaries(w);
    (void)snprintf(w->shm_file, sizeof w->shm_file, "/dev/shm/%s-canary", w->mark);
    if (r == 0)
        r = put_file(w->shm_file, w->secret, 0644);
    return r < 0 ? err_sys(e, r, "canaries") : 0;
}

static int listen_at(int type, const struct sockaddr *at, socklen_t n, uint16_t *ret_port,
                     char inode[NUMBER_ROOM])
{
    cleanup_close int fd = socket(at->sa_family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct sockaddr_in6 got = {0};
    socklen_t got_n = sizeof got;
    struct stat st;

    if (fd < 0 || bind(fd, at, n) < 0)
        return -1;
    if (type == SOCK_STREAM && listen(fd, 16) < 0)
        return -1;
    if (fstat(fd, &st) == 0)
        (void)snprintf(inode, NUMBER_ROOM, " %lu ", (unsigned long)st.st_ino);
    if (ret_port && getsockname(fd, (struct sockaddr *)&got, &got_n) == 0)
        *ret_port = ntohs(got.sin6_port); /* at the same place in both families */
    return take_fd(&fd);
}

static int listen_unix(int type, const char *path, bool abstract, char inode[NUMBER_ROOM])
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    size_t n = strlen(path);
    int fd;

    if (n + 1 >= sizeof at.sun_path)
        return -1;
    memcpy(at.sun_path + abstract, path, n);
    fd = listen_at(type, (struct sockaddr *)&at,
                   (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n + abstract), NULL, inode);
    if (fd >= 0 && !abstract)
        (void)chmod(path, 0777);
    return fd;
}

static void plant_listeners(struct witness *w)
{
    const struct sockaddr_in any = {.sin_family = AF_INET};
    const struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    char path[PATH_MAX];

    w->listeners[L_TCP] = listen_at(SOCK_STREAM, (const struct sockaddr *)&any, sizeof any, &w->tcp,
                                    w->inodes[L_TCP]);
    w->listeners[L_UDP] =
        listen_at(SOCK_DGRAM, (const struct sockaddr *)&any, sizeof any, &w->udp, w->inodes[L_UDP]);
    w->listeners[L_TCP6] = listen_at(SOCK_STREAM, (const struct sockaddr *)&six, sizeof six,
                                     &w->tcp6, w->inodes[L_TCP6]);
    w->listeners[L_ABSTRACT] = listen_unix(SOCK_STREAM, w->mark, true, w->inodes[L_ABSTRACT]);
    (void)snprintf(path, sizeof path, "%s/door", w->dir);
    w->listeners[L_PATH] = listen_unix(SOCK_STREAM, path, false, w->inodes[L_PATH]);
    (void)snprintf(path, sizeof path, "%s/letterbox", w->dir);
    w->listeners[L_LETTERS] = listen_unix(SOCK_DGRAM, path, false, w->inodes[L_LETTERS]);
}

/* Found by its name, with the secret in its environment; ends with us. */
int witness_plant_victim(struct witness *w, struct err *e)
{
    char name[sizeof w->mark + sizeof w->secret + 16], secret[sizeof w->secret + 16];
    char *argv[] = {name, (char[]){"1000000"}, NULL}, *envp[] = {secret, NULL};

    (void)snprintf(name, sizeof name, "victim-%s-%s", w->mark, w->secret);
    (void)snprintf(secret, sizeof secret, "SELFTEST_SECRET=%s", w->secret);
    w->victim = fork();
    if (w->victim < 0)
        return err_sys(e, -errno, "the victim");
    if (w->victim > 0)
        return 0;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)unshare(
        CLONE_NEWNET); /* so that a process that enters its namespaces is seen elsewhere */
    (void)execve("/bin/sleep", argv, envp);
    _exit(127);
}

void witness_put_letter(const struct witness *w)
{
    struct mq_attr attr = {.mq_maxmsg = 1, .mq_msgsize = LETTER_BYTES};
    mode_t before = umask(0);
    mqd_t queue = mq_open(w->queue, O_CREAT | O_RDWR | O_NONBLOCK | O_CLOEXEC, 0666, &attr);

    if (queue != (mqd_t)-1) {
        (void)mq_send(queue, w->secret, strlen(w->secret), 0);
        (void)mq_close(queue);
    }
    (void)umask(before);
}

static void plant_memory(struct witness *w)
{
    uint32_t size;
    void *at;

    random_bytes(&w->shm_key, sizeof w->shm_key);
    random_bytes(&size, sizeof size);
    w->shm_key &= 0x7fffffff;
    size = SHM_LEAST + size % SHM_SPAN;
    (void)snprintf(w->shm_size, sizeof w->shm_size, "%u", size);
    w->shm = shmget(w->shm_key, size, IPC_CREAT | IPC_EXCL | SHM_NORESERVE | 0666);
    at = w->shm < 0 ? SHM_FAILED : shmat(w->shm, NULL, 0);
    if (at != SHM_FAILED) {
        memcpy(at, w->secret, sizeof w->secret);
        (void)shmdt(at);
    }
    (void)snprintf(w->queue, sizeof w->queue, "/%s", w->mark);
    witness_put_letter(w);
}

static void learn_names(struct witness *w)
{
    cleanup_close int fd = open("/etc/machine-id", O_RDONLY | O_CLOEXEC);

    (void)!gethostname(w->host, sizeof w->host - 1);
    (void)!getdomainname(w->domain, sizeof w->domain - 1);
    if (fd < 0 || fd_read_full(fd, w->machine, MACHINE_ID) != MACHINE_ID)
        w->machine[0] = '\0';
}

static int read_number(const char *path)
{
    char text[NUMBER_ROOM] = "";
    cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0 || read(fd, text, sizeof text - 1) <= 0)
        return 0;
    return (int)strtol(text, NULL, 10);
}

/* The first symbol that is shown to us with its address; to most it is not. */
static void learn_address(struct witness *w)
{
    char line[256];
    FILE *f = fopen("/proc/kallsyms", "re");

    for (int i = 0; f && i < SYMBOLS_MAX && fgets(line, sizeof line, f); i++) {
        size_t n = strcspn(line, " ");

        if (n >= sizeof w->address || line[strspn(line, "0")] == ' ')
            continue;
        (void)snprintf(w->address, sizeof w->address, "%.*s", (int)n, line);
        break;
    }
    if (f)
        (void)fclose(f);
}

static void learn_usual(struct witness *w)
{
    w->usual = (struct witness_usual){
        .score = read_number("/proc/self/oom_score_adj"),
        .nice = getpriority(PRIO_PROCESS, 0),
        .policy = sched_getscheduler(0),
    };
    char *end;

    if (readlink("/proc/self/exe", w->usual.programs, sizeof w->usual.programs - 1) < 0)
        w->usual.programs[0] = '\0';
    end = strrchr(w->usual.programs, '/'); /* they lie beside us */
    if (end)
        *end = '\0';
}

/* One of the host that everybody may write to; what is written comes out at our end as it is. */
static void plant_terminal(struct witness *w)
{
    struct termios raw;
    int fd = posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);

    w->terminal.master = fd;
    if (fd < 0 || grantpt(fd) < 0 || unlockpt(fd) < 0 ||
        ptsname_r(fd, w->terminal.name, sizeof w->terminal.name) != 0)
        return;
    w->terminal.slave = open(w->terminal.name, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (w->terminal.slave < 0 || tcgetattr(w->terminal.slave, &raw) < 0)
        return;
    cfmakeraw(&raw);
    (void)tcsetattr(w->terminal.slave, TCSANOW, &raw);
    (void)fchmod(w->terminal.slave, 0666);
}

int witness_open(const char *secret, struct witness **ret, struct err *e)
{
    cleanup_with(witness_closep) struct witness *w = calloc(1, sizeof *w);

    if (!w)
        return err_set(e, ERR_HOST, "out of memory");
    w->shm = w->terminal.master = w->terminal.slave = -1;
    for (int i = 0; i < LISTENERS; i++)
        w->listeners[i] = -1;
    (void)snprintf(w->mark, sizeof w->mark, "m");
    random_base36(w->mark + 1, 12); /* a process's name has 15 characters */
    (void)snprintf(w->secret, sizeof w->secret, "%s", secret);
    random_base36(w->name, 20);
    learn_names(w);
    learn_address(w);
    learn_usual(w);
    if (plant_files(w, e) < 0)
        return -1;
    plant_listeners(w);
    plant_memory(w);
    plant_terminal(w);
    if (witness_plant_victim(w, e) < 0)
        return -1;
    *ret = take_ptr(&w);
    return 0;
}

static void remove_dir(const char *dir)
{
    char path[PATH_MAX];
    DIR *d = opendir(dir);

    for (struct dirent *at; d && (at = readdir(d));) {
        (void)snprintf(path, sizeof path, "%s/%s", dir, at->d_name);
        (void)unlink(path);
    }
    if (d)
        (void)closedir(d);
    (void)rmdir(dir);
}

void witness_close(struct witness *w)
{
    if (!w)
        return;
    fd_close_all(w->listeners, LISTENERS);
    fd_close_all(&w->terminal.master, 1);
    fd_close_all(&w->terminal.slave, 1);
    reapp(&w->victim);
    if (w->shm >= 0)
        (void)shmctl(w->shm, IPC_RMID, NULL);
    if (w->queue[0])
        (void)mq_unlink(w->queue);
    if (w->dir[0])
        remove_dir(w->dir);
    if (w->shm_file[0])
        (void)unlink(w->shm_file);
    free(w);
}

/* ---- telling ---- */

void witness_tell(const struct witness *w, struct jw *j)
{
    jw_kv_string(j, "mark", w->mark);
    jw_kv_string(j, "abstract", w->mark);
    jw_kv_string(j, "dir", w->dir);
    jw_kv_int(j, "victim", w->victim);
    jw_kv_int(j, "tcp", w->tcp);
    jw_kv_int(j, "tcp6", w->tcp6);
    jw_kv_int(j, "udp", w->udp);
    jw_kv_int(j, "shm", w->shm_key);
    jw_kv_int(j, "score", w->usual.score);
    jw_kv_string(j, "programs", w->usual.programs);
    jw_kv_string(j, "terminal", w->terminal.name);
}

const char *witness_mark(const struct witness *w)
{
    return w->mark;
}

const char *witness_dir(const struct witness *w)
{
    return w->dir;
}

pid_t witness_victim(const struct witness *w)
{
    return w->victim;
}

const struct witness_usual *witness_usual(const struct witness *w)
{
    return &w->usual;
}
