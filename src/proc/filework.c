/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/os.h"
#include "core/admission.h"
#include "core/port_files.h"
#include "core/port_jail.h"
#include "wire/wire.h"

enum {
    PIPE_SIZE = 1 << 20,
    SCRATCH = 64 * 1024,   /* read at once */
    TURN_MAX = 512 * 1024, /* of an archive, before others get their turn */
    TRIES_MAX = 4,
    TREE_TIMES = 20, /* removing a tree may take so many times as long as another answer */
};
#define PENDING_MAX ((size_t)1 << 30) /* of content handed over at once */

struct filework {
    struct file_home home;
    struct ticket ticket;
    struct file_order order; /* the path is borrowed */
    struct sandbox helper;   /* owned; ctl -1: it waits for its turn, or the helper is through */
    struct event answer;     /* of the helper */
    unsigned tries;          /* helpers that were killed before they had read it */
    int theirs;              /* owned: the helper's end of the pipe, until it has it */
    bool limited;            /* the helper has to answer or take something within answer_ms */
    struct {
        filework_fn *done;
        filework_drain_fn *drain; /* WRITE, UNPACK */
        filework_data_fn *data;   /* PACK */
        filework_entry_fn *entry;
        filework_event_fn *event;
        void *user;
    } tell;
    bool too_large;
    struct buf bytes; /* READ, LIST: what came */
    /* WRITE, UNPACK, PACK */
    int pipe; /* owned; -1: closed */
    struct event ready, late;
    /* WRITE, UNPACK */
    struct buf pending;
    size_t pending_at;
    bool ending;
    /* PACK */
    bool paused, through;   /* through: the helper is, and everything it wrote is in the pipe */
    uint64_t got, expected; /* bytes of the archive */
    uint64_t entries;
};

static const uint32_t verbs[] = {
    [FILE_READ] = HELP_READ,
    [FILE_WRITE] = HELP_WRITE,
    [FILE_MKDIR] = HELP_MKDIR,
    [FILE_REMOVE] = HELP_REMOVE,
    [FILE_REMOVE_ALL] = HELP_REMOVE_ALL,
    [FILE_LIST] = HELP_LIST,
    [FILE_STAT] = HELP_STAT,
    [FILE_CONNECT] = HELP_CONNECT,
    [FILE_UNPACK] = HELP_UNPACK,
    [FILE_PACK] = HELP_PACK,
    [FILE_USAGE] = HELP_USAGE,
    [FILE_LOOK] = HELP_LOOK,
    [FILE_WALK] = HELP_WALK,
    [FILE_MOVE] = HELP_MOVE,
    [FILE_COPY] = HELP_COPY,
    [FILE_WATCH] = HELP_WATCH,
};
_Static_assert(ARRAY_LEN(verbs) == FILE_VERB_COUNT, "every verb has its message");

static const char *const ops[] = {
    [HELP_OP_OPEN] = "open",       [HELP_OP_READ] = "read",     [HELP_OP_WRITE] = "write",
    [HELP_OP_MKDIR] = "mkdir",     [HELP_OP_REMOVE] = "remove", [HELP_OP_REMOVE_ALL] = "RemoveAll",
    [HELP_OP_UNLINK] = "unlinkat", [HELP_OP_STAT] = "stat",     [HELP_OP_CONNECT] = "connect",
    [HELP_OP_DIRECTORY] = "chdir", [HELP_OP_START] = "exec",    [HELP_OP_LINK] = "link",
    [HELP_OP_PACK] = "pack",       [HELP_OP_UNPACK] = "unpack", [HELP_OP_TERMINAL] = "terminal",
    [HELP_OP_RENAME] = "rename",   [HELP_OP_COPY] = "copy",     [HELP_OP_WATCH] = "watch",
};
_Static_assert(ARRAY_LEN(ops) == HELP_OP_COUNT, "every operation has a name");

static struct timeval time_of(uint64_t ms)
{
    return (struct timeval){.tv_sec = (time_t)(ms / 1000), .tv_usec = (long)(ms % 1000) * 1000};
}

/* The sandbox has ended, or the helper has, which a tenant can kill. */
static int fault_of(const struct filework *w)
{
    struct jail *j = w->home.inside;

    return j->ops->failure(j, &w->helper)[0] ? FILE_ENDED : FILE_BUSY;
}

static void helper_end(struct filework *w)
{
    if (w->helper.ctl < 0)
        return;
    (void)event_del(&w->answer);
    w->home.inside->ops->release(w->home.inside, &w->helper);
}

/* The limit of its waiting, or of the helper's silence. A killed helper's socket ends. */
static void on_late(evutil_socket_t fd, short what, void *user)
{
    struct filework *w = user;
    struct file_result r = {
        .sys = fault_of(w), .op = "open", .path = "", .fd = -1, .bytes = &w->bytes};

    (void)fd, (void)what;
    if (w->helper.ctl >= 0) {
        w->home.inside->ops->kill(w->home.inside, &w->helper);
        return;
    }
    w->tell.done(w->tell.user, &r);
    filework_free(w);
}

/* While it waits for its turn the same timer limits that. */
static void arm(struct filework *w, unsigned times)
{
    const struct timeval tv = time_of((uint64_t)w->home.answer_ms * times);

    w->limited = true;
    if (w->helper.ctl >= 0)
        (void)event_add(&w->late, &tv);
}

static void disarm(struct filework *w)
{
    w->limited = false;
    if (w->helper.ctl >= 0)
        (void)event_del(&w->late);
}

/* ---- content on its way in ---- */

static void pipe_close(struct filework *w)
{
    if (w->pipe < 0)
        return;
    (void)event_del(&w->ready);
    (void)close(take_fd(&w->pipe));
    buf_done(&w->pending);
    if (w->ending)
        arm(w, 1);
}

/* How many of n bytes were taken; all of them once the helper has closed its end. */
static size_t pipe_write(struct filework *w, const char *p, size_t n)
{
    size_t at = 0;

    while (at < n && w->pipe >= 0) {
        ssize_t k = write(w->pipe, p + at, n - at);

        if (k > 0)
            at += (size_t)k;
        else if (k < 0 && errno == EAGAIN)
            break;
        else if (k >= 0 || errno != EINTR)
            return n; /* the helper gave up: it says why */
    }
    return at;
}

/* The helper has to take some within answer_ms. */
static void wait_ready(struct filework *w)
{
    (void)event_add(&w->ready, NULL);
    arm(w, 1);
}

static void on_writable(evutil_socket_t fd, short what, void *user)
{
    struct filework *w = user;

    (void)fd, (void)what;
    w->pending_at += pipe_write(w, w->pending.p + w->pending_at, w->pending.n - w->pending_at);
    if (w->pending_at < w->pending.n) {
        wait_ready(w);
        return;
    }
    disarm(w);
    buf_done(&w->pending);
    w->pending_at = 0;
    if (w->ending)
        pipe_close(w);
    else if (w->tell.drain)
        w->tell.drain(w->tell.user);
}

bool filework_feed(struct filework *w, const char *p, size_t n)
{
    size_t took = w->pending.n > w->pending_at ? 0 : pipe_write(w, p, n);

    if (took == n)
        return true;
    (void)buf_put(&w->pending, p + took, n - took);
    if (w->pipe >= 0)
        wait_ready(w);
    return false;
}

bool filework_feed_take(struct filework *w, struct buf *b)
{
    w->pending = *b;
    *b = BUF_INIT(b->max);
    w->pending_at = pipe_write(w, w->pending.p, w->pending.n);
    if (w->pending_at == w->pending.n)
        return true;
    wait_ready(w);
    return false;
}

void filework_feed_end(struct filework *w)
{
    w->ending = true;
    if (w->pending_at >= w->pending.n)
        pipe_close(w);
}

void filework_on_drain(struct filework *w, filework_drain_fn *fn)
{
    w->tell.drain = fn;
}

/* ---- an archive on its way out ---- */

/* Both the helper's answer and the archive are here: the work is freed. */
static void finish_pack(struct filework *w)
{
    struct file_result r = {
        .sys = w->got == w->expected ? 0 : EPROTO,
        .op = ops[HELP_OP_PACK],
        .path = "",
        .fd = -1,
        .size = w->got,
        .entries = w->entries,
        .bytes = &w->bytes,
    };

    w->tell.done(w->tell.user, &r);
    filework_free(w);
}

static void on_readable(evutil_socket_t fd, short what, void *user)
{
    struct filework *w = user;
    char room[SCRATCH];
    ssize_t n = 1;

    (void)what;
    for (size_t turn = 0; turn < TURN_MAX && !w->paused && n > 0;) {
        n = read(fd, room, sizeof room);
        if (n <= 0)
            break;
        turn += (size_t)n;
        w->got += (uint64_t)n;
        w->paused = !w->tell.data(w->tell.user, room, (size_t)n);
    }
    if (w->paused || n == 0)
        (void)event_del(&w->ready);
    if (w->through && (n <= 0 || w->got >= w->expected))
        finish_pack(w);
    else if (w->paused)
        disarm(w);
    else if (w->helper.ctl >= 0)
        arm(w, 1);
}

void filework_on_data(struct filework *w, filework_data_fn *fn)
{
    w->tell.data = fn;
    (void)event_add(&w->ready, NULL);
}

void filework_on_entry(struct filework *w, filework_entry_fn *fn)
{
    w->tell.entry = fn;
}

void filework_on_event(struct filework *w, filework_event_fn *fn)
{
    w->tell.event = fn;
}

void filework_resume(struct filework *w)
{
    if (!w->paused)
        return;
    w->paused = false;
    if (w->order.verb != FILE_PACK) { /* the helper's messages waited */
        if (w->helper.ctl >= 0)
            (void)event_add(&w->answer, NULL);
        if (w->order.verb == FILE_WATCH)
            return; /* it may be silent */
    } else {
        (void)event_add(&w->ready, NULL);
    }
    if (w->helper.ctl >= 0)
        arm(w, 1);
}

/* True: the end of the archive is still to be read. */
static bool pack_goes_on(struct filework *w, const struct file_result *r)
{
    if (w->order.verb != FILE_PACK || r->sys)
        return false;
    w->through = true;
    w->expected = r->size;
    w->entries = r->entries;
    return w->got < w->expected;
}

/* ---- the helper's answers ---- */

static void take_bytes(struct filework *w, const char *p, size_t n)
{
    if (w->bytes.n + n > w->order.bytes_max || buf_put(&w->bytes, p, n) < 0)
        w->too_large = true;
}

/* ---- entries and events ---- */

static struct bytes take_view(const char **at, size_t n)
{
    struct bytes view = {*at, n};

    *at += n;
    return view;
}

/* The record at the front of n bytes. Its size, 0: it is none. */
static size_t read_entry(const char *p, size_t n, struct file_entry *ret)
{
    const char *at = p + sizeof(struct help_entry);
    struct help_entry t;

    if (n < sizeof t)
        return 0;
    memcpy(&t, p, sizeof t);
    if (t.n > n || t.n != sizeof t + (uint64_t)t.path_n + t.link_n + t.target_n + t.metadata_n)
        return 0;
    *ret = (struct file_entry){
        .mode = t.mode,
        .target_mode = t.target_mode,
        .uid = t.uid,
        .gid = t.gid,
        .modified = {t.mtime_s, t.mtime_ns},
        .accessed = {t.atime_s, t.atime_ns},
        .changed = {t.ctime_s, t.ctime_ns},
        .size = t.size > 0 ? (uint64_t)t.size : 0,
        .inode = (uint64_t)t.inode,
        .path = take_view(&at, t.path_n),
        .link = take_view(&at, t.link_n),
        .target = take_view(&at, t.target_n),
        .metadata = take_view(&at, t.metadata_n),
    };
    memcpy(ret->owner, t.owner, sizeof t.owner);
    memcpy(ret->group, t.group, sizeof t.group);
    /* Both are read as text: there is a NUL at their end, and at that of the last value. */
    if (t.metadata_n > 0 && ret->metadata.p[t.metadata_n - 1])
        ret->metadata.n = 0;
    return t.n;
}

static size_t read_event(const char *p, size_t n, struct file_event *ret,
                         struct file_entry *ret_entry)
{
    static const enum file_event_kind kinds[] = {
        [HELP_EVENT_CREATE] = FILE_EVENT_CREATE, [HELP_EVENT_WRITE] = FILE_EVENT_WRITE,
        [HELP_EVENT_REMOVE] = FILE_EVENT_REMOVE, [HELP_EVENT_RENAME] = FILE_EVENT_RENAME,
        [HELP_EVENT_CHMOD] = FILE_EVENT_CHMOD,   [HELP_EVENT_OVERFLOW] = FILE_EVENT_OVERFLOW,
    };
    struct help_event v;

    _Static_assert(ARRAY_LEN(kinds) == HELP_EVENT_COUNT, "every kind has its own");
    if (n < sizeof v)
        return 0;
    memcpy(&v, p, sizeof v);
    if (v.n > n || v.n != sizeof v + (uint64_t)v.name_n + v.entry_n || v.kind >= ARRAY_LEN(kinds))
        return 0;
    p += sizeof v;
    *ret = (struct file_event){
        kinds[v.kind], {p, v.name_n},
         NULL
    };
    if (v.entry_n > 0) {
        if (read_entry(p + v.name_n, v.entry_n, ret_entry) != v.entry_n)
            return 0;
        ret->entry = ret_entry;
    }
    return v.n;
}

/* The helper sent what no helper sends: it belongs to the tenant now. */
static void distrust(struct filework *w)
{
    w->home.inside->ops->kill(w->home.inside, &w->helper);
}

static void pause_answers(struct filework *w)
{
    w->paused = true;
    (void)event_del(&w->answer);
    disarm(w);
}

/* One message of records. What is told may not free the work. */
static void take_entries(struct filework *w, const char *p, size_t n)
{
    struct file_entry entry;
    bool more = true;

    while (n > 0 && w->tell.entry) {
        size_t k = read_entry(p, n, &entry);

        if (k == 0) {
            distrust(w);
            return;
        }
        more &= w->tell.entry(w->tell.user, &entry);
        p += k;
        n -= k;
    }
    if (more)
        arm(w, 1);
    else
        pause_answers(w);
}

static void take_events(struct filework *w, const char *p, size_t n)
{
    const struct file_event stands = {.kind = FILE_EVENT_STANDS};
    struct file_entry entry;
    struct file_event event;
    bool more = true;

    if (n == 0 && w->tell.event && w->limited)
        more = w->tell.event(w->tell.user, &stands);
    disarm(w); /* from now on it may be silent */
    while (n > 0 && w->tell.event) {
        size_t k = read_event(p, n, &event, &entry);

        if (k == 0) {
            distrust(w);
            return;
        }
        more &= w->tell.event(w->tell.user, &event);
        p += k;
        n -= k;
    }
    if (!more)
        pause_answers(w);
}

/* The descriptor came out of a sandbox: it is what it claims to be, or nothing. */
static bool fd_is_right(enum file_verb verb, int fd)
{
    struct stat st;

    if (fd < 0)
        return verb != FILE_CONNECT;
    if (fstat(fd, &st) < 0)
        return false;
    if (verb == FILE_CONNECT) /* it must not make the loop wait */
        return S_ISSOCK(st.st_mode) && fd_nonblock(fd, true) == 0;
    return verb == FILE_READ && S_ISREG(st.st_mode);
}

static void fill_result(struct filework *w, const struct init_msg *m, const char *path, int fd,
                        struct file_result *r)
{
    r->sys = m->arg < 0 || m->arg > INT_MAX ? EPROTO : (int)m->arg;
    r->op = (unsigned)m->status < ARRAY_LEN(ops) ? ops[m->status] : "open";
    r->path = path;
    r->fd = fd;
    r->is_file = fd >= 0;
    r->size = m->size > 0 ? (uint64_t)m->size : 0;
    r->mode = m->mode;
    r->mtime_s = m->mtime_s;
    r->mtime_ns = m->mtime_ns;
    r->inode = (uint64_t)m->cpu_us;
    r->entries = m->io_read > 0 ? (uint64_t)m->io_read : 0;
    r->fault =
        m->arg && (w->order.verb == FILE_UNPACK || w->order.verb == FILE_PACK) ? m->token : 0;
    r->processes = m->pid;
    if (w->order.verb == FILE_WALK) {
        r->entries = m->token;
        r->more = m->size > 0;
    }
    r->memory = r->size;
    r->disk = m->io_write > 0 ? (uint64_t)m->io_write : 0;
    if (r->sys == 0 && !fd_is_right(w->order.verb, fd))
        r->sys = EPROTO;
    if (r->sys == 0 && w->too_large)
        r->sys = EFBIG;
}

/* m == NULL: the helper ended without its last answer. */
static void on_last(struct filework *w, const struct init_msg *m, const char *path, int *fd)
{
    struct file_result r = {
        .sys = fault_of(w), .op = "open", .path = "", .fd = -1, .bytes = &w->bytes};

    disarm(w);
    if (!m)
        (void)shutdown(w->helper.ctl, SHUT_RDWR); /* not to be used again */
    helper_end(w);
    if (m)
        fill_result(w, m, path, *fd, &r);
    if (pack_goes_on(w, &r))
        return;
    w->tell.done(w->tell.user, &r);
    if (m)
        *fd = r.fd;
    filework_free(w);
}

static int send_order(struct filework *w, struct err *e);
static bool has_pipe(enum file_verb verb);

/* The helper was killed before it had read the request, which the reset of the connection tells: a
 * tenant can stop and kill helpers. True: another one has the request. */
static bool ask_another(struct filework *w)
{
    struct err ignored;

    if (has_pipe(w->order.verb) || ++w->tries == TRIES_MAX)
        return false;
    helper_end(w);
    return send_order(w, &ignored) == 0;
}

/* One message at a time: what is told may change everything. */
static void on_answer(evutil_socket_t sock, short what, void *user)
{
    struct {
        struct init_msg m;
        char bytes[HELP_DATA_MAX + 1];
    } in;
    struct filework *w = user;
    cleanup_close int fd = -1;
    size_t fds_n = 1;
    ssize_t got = fd_recv(sock, &in, sizeof in.m + HELP_DATA_MAX, &fd, &fds_n);

    (void)what;
    if (got == -EAGAIN || got == -EINTR)
        return;
    if (fds_n == 0)
        fd = -1;
    if (got < (ssize_t)sizeof in.m || in.m.name_n != (size_t)got - sizeof in.m) {
        if (got != -ECONNRESET || !ask_another(w))
            on_last(w, NULL, NULL, NULL);
        return;
    }
    in.bytes[in.m.name_n] = '\0';
    if (in.m.verb == HELP_BYTES || in.m.verb == HELP_NAMES)
        take_bytes(w, in.bytes, in.m.name_n);
    else if (in.m.verb == HELP_ENTRIES)
        take_entries(w, in.bytes, in.m.name_n);
    else if (in.m.verb == HELP_EVENTS)
        take_events(w, in.bytes, in.m.name_n);
    else if (in.m.verb == HELP_DONE)
        on_last(w, &in.m, in.bytes, &fd);
    else /* pid 1 could not start it */
        on_last(w, NULL, NULL, NULL);
}

/* ---- starting ---- */

static bool has_pipe(enum file_verb verb)
{
    return verb == FILE_WRITE || verb == FILE_UNPACK || verb == FILE_PACK;
}

static int open_pipe(struct filework *w, int *ret_theirs)
{
    bool reads = w->order.verb == FILE_PACK;
    int pair[2];
    int r = fd_pipe(pair);

    if (r < 0)
        return r;
    *ret_theirs = pair[reads];
    w->pipe = pair[!reads];
    os_pipe_grow(w->pipe, PIPE_SIZE); /* faster; fine without */
    (void)event_assign(&w->ready, w->home.base, w->pipe, reads ? EV_READ | EV_PERSIST : EV_WRITE,
                       reads ? on_readable : on_writable, w);
    return fd_nonblock(w->pipe, true);
}

static bool brings_content(enum file_verb verb)
{
    return verb == FILE_WRITE || verb == FILE_UNPACK;
}

static int send_message(struct filework *w, const struct init_msg *m, struct err *e)
{
    const struct bytes *path = &w->order.path;
    cleanup_with(buf_done) struct buf out = BUF_INIT(sizeof *m + HELP_DATA_MAX);
    int fd = take_fd(&w->theirs), r;

    (void)buf_put(&out, m, sizeof *m);
    (void)buf_put(&out, path->p, path->n);
    if (w->order.second.n > 0) {
        (void)buf_putc(&out, '\0');
        (void)buf_put(&out, w->order.second.p, w->order.second.n);
    }
    r = out.failed ? -EMSGSIZE : fd_send(w->helper.ctl, out.p, out.n, &fd, fd >= 0 ? 1 : 0);
    closep(&fd);
    return r < 0 ? err_sys(e, r, "send a request to a helper") : 0;
}

/* What a verb has to know beside its path. */
static int64_t argument(const struct file_order *o)
{
    if (o->verb == FILE_CONNECT)
        return o->port;
    if (o->verb == FILE_WRITE)
        return (o->parents ? WRITE_PARENTS : 0) | (o->gzip ? WRITE_GZIP : 0) |
               (o->told ? WRITE_TOLD : 0);
    if (o->verb == FILE_MKDIR)
        return o->told;
    if (o->verb == FILE_MOVE || o->verb == FILE_COPY)
        return o->replace;
    if (o->verb == FILE_WATCH)
        return (o->recursive ? WATCH_RECURSIVE : 0) | (o->with_entries ? WATCH_ENTRIES : 0);
    return (int64_t)o->entries_max;
}

static int send_order(struct filework *w, struct err *e)
{
    const struct file_order *o = &w->order;
    const struct sandbox_spec spec = {.control_only = true};
    struct jail *j = w->home.inside;
    struct init_msg m = {.verb = verbs[o->verb],
                         .name_n = (uint32_t)o->path.n,
                         .size = (int64_t)o->bytes_max,
                         .token = o->verb == FILE_WRITE ? (uint32_t)o->second.n : o->depth_max,
                         .arg = argument(o)};

    if (j->ops->take(j, &spec, &w->helper, e) < 0)
        return -1;
    (void)event_assign(&w->answer, w->home.base, w->helper.ctl, EV_READ | EV_PERSIST, on_answer, w);
    (void)event_del(&w->late);
    if (send_message(w, &m, e) < 0 || event_add(&w->answer, NULL) < 0)
        return -1;
    if (w->limited || !brings_content(o->verb)) /* those wait for their content */
        arm(w, o->verb == FILE_REMOVE_ALL ? TREE_TIMES : 1);
    return 0;
}

/* Its turn has come. What fails now is told by the timer, as no callback comes from in here. */
static void on_granted(void *user)
{
    const struct timeval now = {0};
    struct filework *w = user;
    struct err ignored;

    if (send_order(w, &ignored) == 0)
        return;
    helper_end(w);
    (void)event_add(&w->late, &now);
}

static int begin(struct filework *w, struct err *e)
{
    struct admission *a = w->home.admission;
    const struct timeval wait = time_of(w->home.wait_ms);
    int r = has_pipe(w->order.verb) ? open_pipe(w, &w->theirs) : 0;

    if (r == -EMFILE || r == -ENFILE)
        return err_set(e, ERR_BUSY, "no descriptor is left for the content of a file");
    if (r < 0)
        return err_sys(e, r, "pipe for the content of a file");
    if (admission_ask(a, &w->ticket, e) < 0)
        return err_set(e, ERR_BUSY, "%zu requests wait in this sandbox already", a->queued);
    if (w->ticket.state == TICKET_GRANTED)
        return send_order(w, e);
    (void)event_add(&w->late, &wait);
    return 0;
}

int filework_start(const struct file_home *h, const struct file_order *o, filework_fn *done,
                   void *user, struct filework **ret, struct err *e)
{
    struct filework *w = calloc(1, sizeof *w);

    if (!w)
        return err_set(e, ERR_HOST, "no memory for a request");
    *w = (struct filework){
        .home = *h,
        .helper = SANDBOX_NONE,
        .ticket = {.grant = on_granted, .user = w},
        .order = *o,
        .tell.done = done,
        .tell.user = user,
        .bytes = BUF_INIT(o->bytes_max),
        .pending = BUF_INIT(PENDING_MAX),
        .pipe = -1,
        .theirs = -1
    };
    (void)evtimer_assign(&w->late, h->base, on_late, w);
    if (begin(w, e) < 0) {
        filework_free(w);
        return -1;
    }
    *ret = w;
    return 0;
}

void filework_free(struct filework *w)
{
    if (!w)
        return;
    (void)event_del(&w->late);
    if (w->helper.ctl >= 0) {
        /* Before the pipe closes: an upload that broke off must not look complete. A helper that
         * writes is not killed: it may just be giving the new content its place. It ends by itself,
         * or is killed when it has not after a while. */
        (void)shutdown(w->helper.ctl, SHUT_WR);
        w->helper.given_up = true;
        if (!brings_content(w->order.verb))
            w->home.inside->ops->kill(w->home.inside, &w->helper);
    }
    helper_end(w);
    pipe_close(w);
    buf_done(&w->pending);
    buf_done(&w->bytes);
    closep(&w->theirs);
    admission_leave(w->home.admission, &w->ticket);
    free(w);
}
