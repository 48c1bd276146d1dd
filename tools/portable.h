/* SPDX-License-Identifier: MIT */
/*
 * A system that is not Linux, as far as a compiler can be made to believe it: what only Linux has
 * is unknown, and naming it is an error. tools/check-portable includes this before everything else.
 * Headers that every system has come first, because they may name what is forbidden below.
 */
#pragma once
#pragma GCC system_header /* what it does to macros is no reason for a warning */

#include <arpa/inet.h>
#include <ctype.h>
#include <curl/curl.h>
#include <dirent.h>
#include <errno.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <event2/thread.h>
#include <event2/util.h>
#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/evp.h>
#include <poll.h>
#include <pthread.h>
#include <pwd.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/param.h>
#include <sys/queue.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* What is asked for by #ifdef is simply not there. */
#undef MSG_CMSG_CLOEXEC
#undef MSG_NOSIGNAL
#undef O_PATH
#undef SOCK_CLOEXEC
#undef SOCK_NONBLOCK

#pragma GCC poison SOCK_NONBLOCK O_TMPFILE __O_TMPFILE POLLRDHUP EBADFD ENONET EREMOTEIO
#pragma GCC poison accept4 pipe2 dup3 close_range execveat fexecve renameat2 copy_file_range
#pragma GCC poison sendfile splice tee vmsplice memfd_create eventfd signalfd timerfd_create
#pragma GCC poison epoll_create epoll_create1 epoll_ctl epoll_wait inotify_init1 fanotify_init
#pragma GCC poison ppoll sigtimedwait sigwaitinfo sigqueue clock_nanosleep gettid tgkill
#pragma GCC poison prctl syscall unshare setns clone prlimit setresuid setresgid setfsuid
#pragma GCC poison sched_setaffinity sched_getaffinity cpu_set_t getauxval sysinfo get_nprocs
#pragma GCC poison pthread_setaffinity_np pthread_setname_np pthread_tryjoin_np
#pragma GCC poison memrchr strchrnul rawmemchr mempcpy explicit_bzero secure_getenv getrandom
#pragma GCC poison qsort_r fallocate fdatasync sync_file_range posix_fadvise readahead
#pragma GCC poison program_invocation_name program_invocation_short_name
#pragma GCC poison CLOCK_BOOTTIME CLOCK_MONOTONIC_COARSE CLOCK_REALTIME_COARSE
#pragma GCC poison SO_PEERCRED SCM_CREDENTIALS TCP_USER_TIMEOUT TCP_DEFER_ACCEPT TCP_QUICKACK
#pragma GCC poison TCP_CORK F_SETPIPE_SZ F_GETPIPE_SZ F_ADD_SEALS MAP_POPULATE MAP_HUGETLB
#pragma GCC poison MADV_HUGEPAGE MADV_DONTFORK st_mtim st_atim st_ctim
#pragma GCC poison RLIMIT_NICE RLIMIT_RTPRIO RLIMIT_SIGPENDING RLIMIT_MSGQUEUE
