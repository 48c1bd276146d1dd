/* SPDX-License-Identifier: MIT */
#include "zygote/python_program.h"

#include <limits.h>
#include <marshal.h>
#include <speedups.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "core/frame.h"

/* As in the wrapper: no number in a text of this length has too many digits; and no value whose
 * text has fewer brackets is too deep. */
enum { DIGITS_SURE = 4096, DEPTH_SURE = 512 };

static void unref(PyObject **o)
{
    Py_CLEAR(*o);
}

#define cleanup_unref cleanup_with(unref)

/* ---- what is bound before the fork ---- */

static int bind_all(struct python_program *p, PyObject *wrapper)
{
#define WRAPPED(n) {&p->w.n, #n},
#define NAME(n)    {&p->name.n, #n},
    const struct python_binding wrapped[] = {PYTHON_WRAPPED(WRAPPED)};
    const struct python_binding names[] = {PYTHON_NAMES(NAME)};
#undef WRAPPED
#undef NAME

    return python_bind(wrapper, wrapped, ARRAY_LEN(wrapped)) == 0
               ? python_bind(NULL, names, ARRAY_LEN(names))
               : -1;
}

static int bind_files(struct python_program *p, PyObject *wrapper)
{
    cleanup_unref PyObject *types = PyObject_GetAttrString(wrapper, "FILES");

    if (!types || !PyTuple_Check(types) || PyTuple_GET_SIZE(types) != ARRAY_LEN(p->files))
        return -1;
    for (size_t i = 0; i < ARRAY_LEN(p->files); i++)
        p->files[i] = (PyTypeObject *)Py_NewRef(PyTuple_GET_ITEM(types, (Py_ssize_t)i));
    return 0;
}

static int bind_streams(struct python_program *p)
{
    static const char *const names[] = {"stdout", "stderr"};

    for (size_t i = 0; i < ARRAY_LEN(p->streams); i++) {
        struct python_stream *s = &p->streams[i];

        s->name = PyUnicode_InternFromString(names[i]);
        s->original = s->name ? PyDict_GetItemWithError(p->sys, s->name) : NULL;
        s->flush = s->original ? PyObject_GetAttrString(s->original, "flush") : NULL;
        if (!s->flush)
            return -1;
        Py_INCREF(s->original);
    }
    return 0;
}

static int bind_place(struct python_program *p)
{
    PyObject *argv = PyDict_GetItemWithError(p->sys, p->name.argv);

    if (!argv || !PyList_Check(argv) || PyList_GET_SIZE(argv) != 1)
        return -1;
    p->path = Py_NewRef(PyList_GET_ITEM(argv, 0));
    return 0;
}

static int make_own(struct python_program *p)
{
    p->before = PySet_New(NULL);
    p->empty = PyUnicode_FromString("");
    p->zero = PyLong_FromLong(0);
    p->flush = PyUnicode_InternFromString("flush");
    return p->before && p->empty && p->zero && p->flush ? 0 : -1;
}

static PyObject *serve(PyObject *self, PyObject *frames);
static PyObject *end(PyObject *self, PyObject *none);

static int give(struct python_program *p, PyObject *wrapper)
{
    static PyMethodDef defs[] = {
        {"serve", serve, METH_O,      NULL},
        {"end",   end,   METH_NOARGS, NULL}
    };

    for (size_t i = 0; i < ARRAY_LEN(defs); i++) {
        cleanup_unref PyObject *f = python_function(p, &defs[i]);

        if (!f || PyObject_SetAttrString(wrapper, defs[i].ml_name, f) < 0)
            return -1;
    }
    return PyObject_SetAttrString(wrapper, "before", p->before);
}

int python_program_bind(struct python_program *p, PyObject *wrapper, struct python_channel *to,
                        const struct python_ends *ends)
{
    cleanup_unref PyObject *sys = PyImport_ImportModule("sys");

    *p = (struct python_program){.to = to, .ends = ends};
    if (!sys)
        return -1;
    p->sys = Py_NewRef(PyModule_GetDict(sys));
    if (bind_all(p, wrapper) < 0 || bind_files(p, wrapper) < 0)
        return -1;
    return bind_streams(p) == 0 && bind_place(p) == 0 && make_own(p) == 0 ? give(p, wrapper) : -1;
}

/* ---- before the program runs ---- */

/* What one job knows. Everything is owned. */
struct job_state {
    PyObject *source, *path, *told, *event, *main, *value;
    uint64_t begun_us;
};

static void let_go(struct job_state *s)
{
    Py_CLEAR(s->source);
    Py_CLEAR(s->path);
    Py_CLEAR(s->told);
    Py_CLEAR(s->event);
    Py_CLEAR(s->main);
    Py_CLEAR(s->value);
}

/* A value of JSON that the daemon has checked. */
static PyObject *decode(const struct python_program *p, PyObject *json)
{
    bool given = json && PyBytes_GET_SIZE(json) > 0;
    const char *text = given ? PyBytes_AS_STRING(json) : "{}";
    Py_ssize_t n = given ? PyBytes_GET_SIZE(json) : 2, skip = 0;
    cleanup_unref PyObject *s = NULL, *pair = NULL;

    if (n > DIGITS_SURE)
        return PyObject_CallOneArg(p->w.decode, json);
    skip = (Py_ssize_t)strspn(text, " \t\r\n");
    s = PyUnicode_DecodeUTF8(text + skip, n - skip, NULL);
    pair = s ? PyObject_CallFunctionObjArgs(p->w.scan, s, p->zero, NULL) : NULL;
    return pair ? Py_NewRef(PyTuple_GET_ITEM(pair, 0)) : NULL;
}

/* Without a mark of the order of bytes. */
static PyObject *decode_source(PyObject *code)
{
    static const char mark[] = "\xef\xbb\xbf";
    const char *text = PyBytes_AS_STRING(code);
    Py_ssize_t n = PyBytes_GET_SIZE(code), skip = strncmp(text, mark, 3) == 0 ? 3 : 0;

    return PyUnicode_DecodeUTF8(text + skip, n - skip, NULL);
}

/* Nearly always where it was at the last rehearsal. */
static PyObject *place(const struct python_program *p)
{
    char path[PATH_MAX + sizeof "/handler.py"];
    size_t n;

    if (!getcwd(path, PATH_MAX))
        return PyErr_SetFromErrno(PyExc_OSError);
    n = strlen(path);
    while (n > 0 && path[n - 1] == '/')
        n--;
    memcpy(path + n, "/handler.py", sizeof "/handler.py");
    return PyUnicode_CompareWithASCIIString(p->path, path) == 0 ? Py_NewRef(p->path)
                                                                : PyUnicode_DecodeFSDefault(path);
}

static int take_place(const struct python_program *p, PyObject *path)
{
    PyObject *argv = PyDict_GetItemWithError(p->sys, p->name.argv), *done;

    if (argv && PyList_CheckExact(argv) && PyList_GET_SIZE(argv) == 1 &&
        PyList_GET_ITEM(argv, 0) == path)
        return 0;
    done = PyObject_CallOneArg(p->w.take_place, path);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

/* Without its function: what that does is all there is to it. */
static PyObject *make_loader(const struct python_program *p, PyObject *source)
{
    PyTypeObject *t = (PyTypeObject *)p->w.Loader;
    PyObject *loader = t->tp_alloc(t, 0);

    if (loader && PyObject_SetAttr(loader, p->name.source, source) < 0)
        Py_CLEAR(loader);
    return loader;
}

static PyObject *make_main(const struct python_program *p, const struct job_state *s)
{
    PyObject *main = PyObject_CallOneArg(p->w.Main, p->name.__main__);
    PyObject *names = main ? PyModule_GetDict(main) : NULL;
    cleanup_unref PyObject *loader = names ? make_loader(p, s->source) : NULL;

    if (!loader || PyDict_SetItem(names, p->name.__file__, s->path) < 0 ||
        PyDict_SetItem(names, p->name.__builtins__, p->w.builtins) < 0 ||
        PyDict_SetItem(names, p->name.__loader__, loader) < 0 ||
        PyDict_SetItem(PyImport_GetModuleDict(), p->name.__main__, main) < 0)
        Py_CLEAR(main);
    return main;
}

/* Of the frames: all that is needed before a line of the program runs. */
static int take_up(const struct python_program *p, struct job_state *s,
                   const struct python_frames *f)
{
    PyObject *code = python_frame(f, FRAME_CODE);

    s->begun_us = clock_us();
    s->path = place(p);
    s->source = code ? decode_source(code) : PyUnicode_FromString("");
    s->told = s->source ? decode(p, python_frame(f, FRAME_CONTEXT)) : NULL;
    s->event = s->told ? decode(p, python_frame(f, FRAME_EVENT)) : NULL;
    if (!s->event || !s->path || take_place(p, s->path) < 0)
        return -1;
    s->main = make_main(p, s);
    return s->main ? 0 : -1;
}

/* The code that the daemon kept of this very text, if it is this interpreter's and of this place.
 * NULL without an exception: there is none. */
static PyObject *compiled_before(const struct python_program *p, PyObject *known, PyObject *path)
{
    Py_ssize_t magic = PyBytes_GET_SIZE(p->w.MAGIC_NUMBER);
    PyObject *code;

    if (!known || PyBytes_GET_SIZE(known) <= magic ||
        memcmp(PyBytes_AS_STRING(known), PyBytes_AS_STRING(p->w.MAGIC_NUMBER), (size_t)magic) != 0)
        return NULL;
    code = PyMarshal_ReadObjectFromString(PyBytes_AS_STRING(known) + magic,
                                          PyBytes_GET_SIZE(known) - magic);
    if (code && (!PyCode_Check(code) ||
                 PyUnicode_Compare(((const PyCodeObject *)code)->co_filename, path) != 0))
        Py_CLEAR(code);
    return code;
}

static PyObject *compiled(const struct python_program *p, const struct job_state *s,
                          const struct python_frames *f)
{
    PyObject *code = PyDict_GetItemWithError(s->told, p->name.compiled_max)
                         ? NULL
                         : compiled_before(p, python_frame(f, FRAME_COMPILED), s->path);
    cleanup_unref PyObject *frames = NULL;

    if (code || PyErr_Occurred())
        return code;
    frames = python_frames_dict(f);
    return frames ? PyObject_CallFunctionObjArgs(p->w.compiled, p->w.channel, frames, s->told,
                                                 s->source, s->path, NULL)
                  : NULL;
}

/* ---- the program ---- */

static bool takes_one_argument(PyObject *handler)
{
    const PyCodeObject *code =
        PyFunction_Check(handler) ? (const PyCodeObject *)PyFunction_GET_CODE(handler) : NULL;

    return code && code->co_argcount < 2 && !(code->co_flags & CO_VARARGS);
}

static PyObject *call_with_context(const struct python_program *p, const struct job_state *s,
                                   PyObject *handler)
{
    PyObject *left = PyDict_GetItemWithError(s->told, p->name.remaining_ms);
    double deadline = (double)s->begun_us / 1e6 + (left ? PyFloat_AsDouble(left) : 0) / 1000;
    cleanup_unref PyObject *context =
        PyErr_Occurred()
            ? NULL
            : PyObject_CallFunction(p->w.Context, "OOd", p->w.channel, s->told, deadline);

    return context ? PyObject_CallFunctionObjArgs(handler, s->event, context, NULL) : NULL;
}

static PyObject *call(const struct python_program *p, const struct job_state *s, PyObject *handler)
{
    cleanup_unref PyObject *wants = NULL;

    if (takes_one_argument(handler))
        return PyObject_CallOneArg(handler, s->event);
    wants = PyObject_CallOneArg(p->w.wants_context, handler);
    if (!wants)
        return NULL;
    return wants == Py_True ? call_with_context(p, s, handler)
                            : PyObject_CallOneArg(handler, s->event);
}

/* What the request said of the handler (core/exec_spec.h); absent: it is called if there is one. */
static bool mode_is(const struct python_program *p, const struct job_state *s, const char *word)
{
    PyObject *mode = PyDict_GetItemWithError(s->told, p->name.mode);

    return mode && PyUnicode_Check(mode) && PyUnicode_CompareWithASCIIString(mode, word) == 0;
}

/* The exit status, if that is clear already; NULL without an exception: see s->value. */
static PyObject *run(const struct python_program *p, struct job_state *s,
                     const struct python_frames *f)
{
    PyObject *names = PyModule_GetDict(s->main);
    cleanup_unref PyObject *code = compiled(p, s, f), *done = NULL, *handler = NULL;

    done = code ? PyEval_EvalCode(code, names, names) : NULL;
    if (!done)
        return NULL;
    handler = Py_XNewRef(PyDict_GetItemWithError(names, p->name.handler));
    if (!handler && PyErr_Occurred())
        return NULL;
    if (handler && PyCallable_Check(handler) && !mode_is(p, s, "script"))
        s->value = call(p, s, handler);
    else if (mode_is(p, s, "handler"))
        return PyObject_CallFunctionObjArgs(p->w.missing, p->w.channel, handler ? handler : Py_None,
                                            NULL);
    else
        s->value = Py_NewRef(Py_None);
    return NULL;
}

/* ---- what it returned ---- */

static bool is_plain(PyObject *v)
{
    return v == Py_None || PyBool_Check(v) || PyLong_CheckExact(v) || PyUnicode_CheckExact(v) ||
           PyFloat_CheckExact(v) || PyDict_CheckExact(v) || PyList_CheckExact(v) ||
           PyTuple_CheckExact(v);
}

static bool is_flat(const char *json, Py_ssize_t n)
{
    int brackets = 0;

    for (Py_ssize_t i = 0; i < n; i++)
        brackets += json[i] == '[' || json[i] == '{';
    return brackets <= DEPTH_SURE;
}

static PyObject *encode(const struct python_program *p, PyObject *value)
{
    cleanup_unref PyObject *parts =
        PyObject_CallFunctionObjArgs(p->w.encode_plain, value, p->zero, NULL);

    return parts ? PyUnicode_Join(p->empty, parts) : NULL;
}

/* At most so many bytes may be returned; 0: any number of. */
static Py_ssize_t result_max(const struct python_program *p, const struct job_state *s)
{
    PyObject *most = PyDict_GetItemWithError(s->told, p->name.result_max);

    return most && PyLong_CheckExact(most) ? PyLong_AsSsize_t(most) : 0;
}

static bool are_original(const struct python_program *p)
{
    for (size_t i = 0; i < ARRAY_LEN(p->streams); i++)
        if (PyDict_GetItemWithError(p->sys, p->streams[i].name) != p->streams[i].original)
            return false;
    return true;
}

/* What cannot be written is lost: closed by the program, or its disk is full. */
static void ignore(PyObject *done)
{
    if (!done)
        PyErr_Clear();
    Py_XDECREF(done);
}

static void flush(const struct python_program *p)
{
    if (!are_original(p)) {
        ignore(PyObject_CallNoArgs(p->w.flush));
        return;
    }
    for (size_t i = 0; i < ARRAY_LEN(p->streams); i++)
        ignore(PyObject_CallNoArgs(p->streams[i].flush));
}

/* 1: sent; 0: it is not as plain as it looked; -1: an exception. */
static int send_plain(const struct python_program *p, const struct job_state *s)
{
    cleanup_unref PyObject *text = is_plain(s->value) ? encode(p, s->value) : NULL;
    Py_ssize_t n = 0, most = result_max(p, s);
    const char *json = text ? PyUnicode_AsUTF8AndSize(text, &n) : NULL;

    if (!json && PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_Exception))
        return -1;
    PyErr_Clear(); /* the wrapper will meet it again, and tell */
    if (!json || !is_flat(json, n) || (most > 0 && n > most))
        return 0;
    flush(p);
    return python_channel_hold(p->to, FRAME_RESULT, json, (size_t)n) < 0 ? -1 : 1;
}

static PyObject *answer(const struct python_program *p, const struct job_state *s)
{
    int r = send_plain(p, s);

    if (r > 0)
        return Py_NewRef(p->zero);
    return r < 0 ? NULL
                 : PyObject_CallFunctionObjArgs(p->w.answer, p->w.channel, s->told, s->value, NULL);
}

/* What was raised, as an `except` would see it. */
static PyObject *taken_exception(void)
{
    PyObject *type, *value, *trace;

    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    if (trace)
        (void)PyException_SetTraceback(value, trace);
    Py_XDECREF(type);
    Py_XDECREF(trace);
    return value;
}

static PyObject *failed(const struct python_program *p, const struct job_state *s)
{
    cleanup_unref PyObject *e = taken_exception();
    cleanup_unref PyObject *path = s->path ? NULL : PyUnicode_FromString("handler.py");

    return PyObject_CallFunctionObjArgs(p->w.failed, p->w.channel, e, s->path ? s->path : path,
                                        s->source ? s->source : p->empty, NULL);
}

/* All of it in the wrapper, as in an interpreter that starts cold. */
static PyObject *run_wrapped(const struct python_program *p, const struct python_frames *f)
{
    cleanup_unref PyObject *frames = python_frames_dict(f), *path = frames ? place(p) : NULL;

    return path ? PyObject_CallFunctionObjArgs(p->w.execute, p->w.channel, frames, path, NULL)
                : NULL;
}

static PyObject *run_here(const struct python_program *p, struct job_state *s,
                          const struct python_frames *f)
{
    PyObject *status = take_up(p, s, f) == 0 ? run(p, s, f) : NULL;

    if (!status && s->value)
        status = answer(p, s);
    return status ? status : failed(p, s);
}

long python_program_run(const struct python_program *p, const struct python_frames *f)
{
    struct job_state s = {0};
    PyObject *status = SPEEDUP_PYTHON_IN_C ? run_here(p, &s, f) : run_wrapped(p, f);
    long r;

    p->to->ended = true;
    r = status ? PyLong_AsLong(status) : 1;
    if (PyErr_Occurred())
        PyErr_Print();
    Py_XDECREF(status);
    let_go(&s);
    return r;
}

/* ---- its end ---- */

static bool is_file(const struct python_program *p, PyObject *o)
{
    for (size_t i = 0; i < ARRAY_LEN(p->files); i++)
        if (PyType_IsSubtype(Py_TYPE(o), p->files[i]))
            return true;
    return false;
}

static bool has_last_words(const PyTypeObject *t)
{
    return t->tp_finalize || t->tp_del;
}

/* Would letting go of it run something of the program, or wait for somebody? What no collector
 * knows of is of a type that it knows. */
static bool is_quiet(PyObject *o)
{
    if (PyType_Check(o) && has_last_words((const PyTypeObject *)o))
        return false;
    if (PyWeakref_Check(o) && ((const PyWeakReference *)o)->wr_callback)
        return false;
    return !has_last_words(Py_TYPE(o));
}

static bool all_quiet(const struct python_program *p, PyObject *all)
{
    if (!are_original(p) || PyList_GET_SIZE(p->w.callbacks) > 0)
        return false;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(all); i++)
        if (!is_quiet(PyList_GET_ITEM(all, i)))
            return false;
    return true;
}

/* Collecting garbage closes files in any order; text may then find its file closed. */
static void flush_files(const struct python_program *p)
{
    cleanup_unref PyObject *all = PyObject_CallNoArgs(p->w.get_objects);

    if (!all || !all_quiet(p, all))
        python_channel_release(p->to);
    for (Py_ssize_t i = 0; all && i < PyList_GET_SIZE(all); i++) {
        PyObject *o = PyList_GET_ITEM(all, i);

        if (is_file(p, o))
            ignore(PyObject_CallMethodNoArgs(o, p->flush));
    }
    PyErr_Clear();
}

/* New ones are at the end. Looking at all would copy a page for nearly every name. */
static PyObject *new_modules(const struct python_program *p, PyObject *modules)
{
    cleanup_unref PyObject *names = PyList_New(0), *name = NULL;
    cleanup_unref PyObject *all = PyObject_CallOneArg((PyObject *)&PyReversed_Type, modules);

    while (names && all && (name = PyIter_Next(all)) && PySet_Contains(p->before, name) == 0) {
        if (PyList_Append(names, name) < 0)
            return NULL;
        Py_CLEAR(name);
    }
    return all && !PyErr_Occurred() ? Py_XNewRef(names) : NULL;
}

static void forget_modules(const struct python_program *p)
{
    PyObject *modules = PyImport_GetModuleDict();
    cleanup_unref PyObject *names = new_modules(p, modules);

    for (Py_ssize_t i = 0; names && i < PyList_GET_SIZE(names); i++)
        (void)PyDict_DelItem(modules, PyList_GET_ITEM(names, i));
    /* As at every end of an interpreter. */
    (void)PyDict_SetItem(modules, p->name.__main__, Py_None);
    PyErr_Clear();
}

void python_program_end(const struct python_program *p)
{
    PyObject *done;

    if (!SPEEDUP_PYTHON_IN_C || !python_is_settled(p->ends)) {
        python_channel_release(p->to);
        done = PyObject_CallOneArg(p->w.finish, p->before);
    } else {
        flush_files(p);
        forget_modules(p);
        done = PyObject_CallNoArgs(p->w.collect);
        flush(p);
    }
    if (!done)
        PyErr_Print();
    Py_XDECREF(done);
}

/* ---- for the warmer ---- */

static PyObject *serve(PyObject *self, PyObject *frames)
{
    const struct python_program *p = PyCapsule_GetPointer(self, NULL);
    struct python_frames f = {0};
    PyObject *kind, *payload;
    long status;

    for (Py_ssize_t at = 0; PyDict_Next(frames, &at, &kind, &payload);)
        f.of[PyUnicode_READ_CHAR(kind, 0) - 'A'] = Py_NewRef(payload);
    status = python_program_run(p, &f);
    python_frames_free(&f);
    return PyLong_FromLong(status);
}

static PyObject *end(PyObject *self, PyObject *none)
{
    (void)none;
    python_program_end(PyCapsule_GetPointer(self, NULL));
    Py_RETURN_NONE;
}
