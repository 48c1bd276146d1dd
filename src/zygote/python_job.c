/* SPDX-License-Identifier: MIT */
#include "zygote/python_job.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/fd.h"
#include "core/frame.h"

/* ---- what is bound ---- */

PyObject *python_function(void *context, PyMethodDef *def)
{
    PyObject *self = PyCapsule_New(context, NULL, NULL);
    PyObject *f = self ? PyCFunction_New(def, self) : NULL;

    Py_XDECREF(self);
    return f;
}

int python_bind(PyObject *module, const struct python_binding *of, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        *of[i].to = module ? PyObject_GetAttrString(module, of[i].name)
                           : PyUnicode_InternFromString(of[i].name);
        if (!*of[i].to)
            return -1;
    }
    return 0;
}

/* ---- the channel ---- */

int python_channel_open(struct python_channel *c, int fd)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return -errno;
    c->fd = fd;
    c->ended = false;
    c->pid = getpid();
    c->dev = st.st_dev;
    c->ino = st.st_ino;
    c->held_n = 0;
    return 0;
}

static bool is_still_ours(const struct python_channel *c)
{
    struct stat st;

    return fstat(c->fd, &st) == 0 && st.st_dev == c->dev && st.st_ino == c->ino;
}

/* The lock of the interpreter is held: frames of two threads must not mix, and the daemon always
 * reads. */
static int write_parts(int fd, struct iovec *v, int n)
{
    while (n > 0) {
        struct pollfd p = {.fd = fd, .events = POLLOUT};
        ssize_t put = writev(fd, v, n);

        if (put < 0 && errno == EAGAIN && poll(&p, 1, -1) >= 0)
            continue;
        if (put < 0 && errno != EINTR)
            return -errno;
        for (; put > 0 && n > 0; v++, n--) {
            size_t part = (size_t)put < v->iov_len ? (size_t)put : v->iov_len;

            v->iov_base = (char *)v->iov_base + part;
            v->iov_len -= part;
            put -= (ssize_t)part;
            if (v->iov_len > 0)
                break;
        }
        for (; n > 0 && v->iov_len == 0; v++, n--)
            ;
    }
    return 0;
}

/* 1: it takes frames; 0: it has ended, or is another process's; -1: an exception. */
static int is_open(struct python_channel *c)
{
    if (c->ended || c->pid != getpid())
        return 0;
    if (is_still_ours(c))
        return 1;
    c->ended = true;
    (void)PyErr_Format(PyExc_OSError,
                       "the program closed the descriptor its result is returned through");
    return -1;
}

int python_channel_put(struct python_channel *c, char kind, const char *payload, size_t n)
{
    char head[FRAME_HEAD];
    struct iovec v[] = {
        {.iov_base = head,            .iov_len = sizeof head},
        {.iov_base = (char *)payload, .iov_len = n          },
    };
    int r = is_open(c);

    if (r <= 0)
        return r;
    python_channel_release(c);
    frame_head(head, kind, (uint32_t)n);
    r = write_parts(c->fd, v, 2);
    if (r == 0)
        return 0;
    errno = -r;
    (void)PyErr_SetFromErrno(PyExc_OSError);
    return -1;
}

int python_channel_hold(struct python_channel *c, char kind, const char *payload, size_t n)
{
    int r;

    if (n > sizeof c->held - FRAME_HEAD || c->held_n > 0)
        return python_channel_put(c, kind, payload, n);
    r = is_open(c);
    if (r <= 0)
        return r;
    frame_head(c->held, kind, (uint32_t)n);
    memcpy(c->held + FRAME_HEAD, payload, n);
    c->held_n = FRAME_HEAD + n;
    return 0;
}

void python_channel_release(struct python_channel *c)
{
    struct iovec v = {.iov_base = c->held, .iov_len = c->held_n};

    if (c->held_n > 0)
        (void)write_parts(c->fd, &v, 1); /* the exit status tells */
    c->held_n = 0;
}

static PyObject *channel_send(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    struct python_channel *c = PyCapsule_GetPointer(self, NULL);
    Py_ssize_t size;
    char *payload;

    if (n != 2 || PyBytes_AsStringAndSize(args[1], &payload, &size) < 0)
        return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_TypeError, "send(kind, payload)");
    if (python_channel_put(c, (char)PyLong_AsLong(args[0]), payload, (size_t)size) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *channel_end(PyObject *self, PyObject *none)
{
    struct python_channel *c = PyCapsule_GetPointer(self, NULL);

    (void)none;
    c->ended = true;
    Py_RETURN_NONE;
}

PyObject *python_channel_send(struct python_channel *c)
{
    static PyMethodDef def = {"send", (PyCFunction)(void (*)(void))channel_send, METH_FASTCALL,
                              NULL};

    return python_function(c, &def);
}

PyObject *python_channel_end(struct python_channel *c)
{
    static PyMethodDef def = {"end", channel_end, METH_NOARGS, NULL};

    return python_function(c, &def);
}

/* ---- what is left to be done ---- */

/* Without a look that would count as a reference. */
static Py_ssize_t size_of(PyObject *o)
{
    if (PyList_CheckExact(o))
        return PyList_GET_SIZE(o);
    if (PyDict_CheckExact(o))
        return PyDict_GET_SIZE(o);
    return PyAnySet_CheckExact(o) ? PySet_GET_SIZE(o) : -1;
}

static long exits_now(const struct python_ends *e)
{
    PyObject *n = PyObject_CallNoArgs(e->exits_count);
    long v = n ? PyLong_AsLong(n) : -1;

    Py_XDECREF(n);
    return v;
}

static PyObject *remember(struct python_ends *e, PyObject *const *args, Py_ssize_t n)
{
    PyObject *module = PyImport_ImportModule("atexit");

    e->exits_count = module ? PyObject_GetAttrString(module, "_ncallbacks") : NULL;
    Py_XDECREF(module);
    if (!e->exits_count)
        return NULL;
    for (Py_ssize_t i = 0; i < n; i++) {
        if (i == PYTHON_ENDS_MAX || size_of(args[i]) < 0)
            return PyErr_Format(PyExc_TypeError, "settled(): argument %zd", i);
        e->of[i] = Py_NewRef(args[i]);
        e->sizes[i] = size_of(args[i]);
        e->n++;
    }
    e->exits = exits_now(e);
    Py_RETURN_TRUE;
}

bool python_is_settled(const struct python_ends *e)
{
    for (size_t i = 0; i < e->n; i++)
        if (size_of(e->of[i]) != e->sizes[i])
            return false;
    return e->n > 0 && exits_now(e) == e->exits;
}

static PyObject *settled(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    struct python_ends *e = PyCapsule_GetPointer(self, NULL);

    if (n > 0)
        return remember(e, args, n);
    return PyBool_FromLong(python_is_settled(e));
}

PyObject *python_settled(struct python_ends *e)
{
    static PyMethodDef def = {"settled", (PyCFunction)(void (*)(void))settled, METH_FASTCALL, NULL};

    return python_function(e, &def);
}

/* ---- frames ---- */

/* A small job is there with one look: nothing comes behind GO before that is answered. */
struct reader {
    int fd;
    size_t n, at;
    char bytes[4096];
};

static bool refill(struct reader *r)
{
    ssize_t got;

    do
        got = read(r->fd, r->bytes, sizeof r->bytes);
    while (got < 0 && errno == EINTR);
    r->at = 0;
    r->n = got > 0 ? (size_t)got : 0;
    return got > 0;
}

static bool take(struct reader *r, char *p, size_t n)
{
    while (n > 0) {
        size_t part = r->n - r->at < n ? r->n - r->at : n;

        memcpy(p, r->bytes + r->at, part);
        r->at += part;
        p += part;
        n -= part;
        if (n >= sizeof r->bytes)
            return fd_read_full(r->fd, p, n) == (ssize_t)n;
        if (n > 0 && !refill(r))
            return false;
    }
    return true;
}

static PyObject *read_frame(struct reader *r, char *ret_kind)
{
    char head[FRAME_HEAD];
    PyObject *payload;
    uint32_t n;

    if (!take(r, head, FRAME_HEAD) || frame_length(head, FRAME_HEAD, &n) < 0)
        return NULL;
    payload = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)n);
    if (payload && !take(r, PyBytes_AS_STRING(payload), n))
        Py_CLEAR(payload);
    *ret_kind = head[0];
    return payload;
}

static bool is_kind(char c)
{
    return c >= 'A' && c <= 'Z';
}

bool python_frames_read(struct python_frames *f, int fd)
{
    struct reader r;
    char kind = 0;

    r.fd = fd;
    r.n = r.at = 0;
    memset(f, 0, sizeof *f);
    while (kind != FRAME_GO) {
        PyObject *payload = read_frame(&r, &kind);

        if (!payload)
            return false;
        if (is_kind(kind))
            Py_XSETREF(f->of[kind - 'A'], payload);
        else
            Py_DECREF(payload);
    }
    return true;
}

PyObject *python_frame(const struct python_frames *f, char kind)
{
    return f->of[kind - 'A'];
}

PyObject *python_frames_dict(const struct python_frames *f)
{
    PyObject *d = PyDict_New();

    for (char kind[2] = "A"; d && is_kind(kind[0]); kind[0]++) {
        PyObject *payload = python_frame(f, kind[0]);

        if (payload && PyDict_SetItemString(d, kind, payload) < 0)
            Py_CLEAR(d);
    }
    return d;
}

void python_frames_free(struct python_frames *f)
{
    for (size_t i = 0; i < PYTHON_KINDS; i++)
        Py_CLEAR(f->of[i]);
}

/* ---- the environment ---- */

static bool has(PyObject *value, const char *text)
{
    return value && PyBytes_CheckExact(value) && strcmp(PyBytes_AS_STRING(value), text) == 0;
}

/* Leaves alone what is right already: that would be a copy of a page. */
static int set(PyObject *known, PyObject *name, PyObject *now, const char *text)
{
    PyObject *value = has(now, text) ? NULL : PyBytes_FromString(text);
    int r = value ? PyDict_SetItem(known, name, value) : PyErr_Occurred() ? -1 : 0;

    Py_XDECREF(value);
    return r;
}

/* "NAME=value" */
static int learn(PyObject *known, const char *pair)
{
    const char *equals = strchr(pair, '=');
    PyObject *name;
    int r;

    if (!equals)
        return 0;
    name = PyBytes_FromStringAndSize(pair, equals - pair);
    r = name ? set(known, name, PyDict_GetItemWithError(known, name), equals + 1) : -1;
    Py_XDECREF(name);
    return r;
}

static bool is_of(const char *pair, PyObject *name)
{
    size_t n = (size_t)PyBytes_GET_SIZE(name);

    return strncmp(pair, PyBytes_AS_STRING(name), n) == 0 && pair[n] == '=';
}

/* The usual names in the usual order: walking along them counts no references, as looking them up
 * would. 1: that was all; 0: there is more to it. */
static int follow(PyObject *known, char **envp)
{
    PyObject *name, *value;
    Py_ssize_t at = 0;

    for (; PyDict_Next(known, &at, &name, &value); envp++) {
        if (!*envp || !is_of(*envp, name))
            return 0;
        if (set(known, name, value, *envp + PyBytes_GET_SIZE(name) + 1) < 0)
            return -1;
    }
    return !*envp;
}

static bool is_named(char **envp, PyObject *name)
{
    for (; *envp; envp++)
        if (is_of(*envp, name))
            return true;
    return false;
}

static int forget_others(PyObject *known, char **envp)
{
    PyObject *names = PyDict_Keys(known);
    int r = names ? 0 : -1;

    for (Py_ssize_t i = 0; r == 0 && i < PyList_GET_SIZE(names); i++)
        if (!is_named(envp, PyList_GET_ITEM(names, i)))
            r = PyDict_DelItem(known, PyList_GET_ITEM(names, i));
    Py_XDECREF(names);
    return r;
}

int python_environment(PyObject *known, char **envp)
{
    int r = follow(known, envp);
    Py_ssize_t n = 0;

    environ = envp;
    if (r != 0)
        return r < 0 ? -1 : 0;
    for (; envp[n] && r == 0; n++)
        r = learn(known, envp[n]);
    return r < 0 || PyDict_GET_SIZE(known) == n ? r : forget_others(known, envp);
}
