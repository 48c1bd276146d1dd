/* SPDX-License-Identifier: MIT */
#include "selftest/carry.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/clock.h"
#include "base/random.h"
#include "selftest/hold.h"

enum {
    MIB = 1 << 20,
    WALL_MS = 20000,
    SHORT_MS = 1500,
    PATIENCE_S = 6, /* of an attack that tries to outlive its time: much more than SHORT_MS */
    CPU_MS = 700,
    TIGHT_MEMORY = 96 * MIB,
    TIGHT_DISK = 16 * MIB,
    TIGHT_TMP = 8 * MIB,
    TIGHT_FILES = 400,
    TIGHT_PIDS = 40,
    TIGHT_OPEN = 256,
    TIGHT_OUTPUT = 64 << 10,
    PROGRAM_MAX_BYTES = 1 << 20,
    EVENT_MAX = 8192,
    LOOK_AGAIN_MS = 50,
    LOOK_TRIES = 40,
    FILE_LOOK = 8192, /* bytes of a result that are searched for the secret */
};

/* ---- errands ---- */

static struct limits limits_of(const struct config *c, unsigned flags, unsigned slow)
{
    struct limits l = {
        .wall_ms = WALL_MS * slow,
        .memory_max = c->memory_mb * MIB,
        .workspace_max = c->workspace_mb * MIB,
        .workspace_files = c->workspace_files,
        .tmp_max = c->tmp_mb * MIB,
        .output_max = c->output_max,
        .result_max = c->result_max,
        .pids_max = (uint32_t)c->pids_max,
        .files_max = (uint32_t)c->files_max,
    };

    if (flags & FLAG_TIGHT) {
        l.memory_max = TIGHT_MEMORY;
        l.workspace_max = TIGHT_DISK;
        l.workspace_files = TIGHT_FILES;
        l.tmp_max = TIGHT_TMP;
        l.output_max = TIGHT_OUTPUT;
        l.pids_max = TIGHT_PIDS;
        l.files_max = TIGHT_OPEN;
    }
    if (flags & FLAG_SHORT)
        l.wall_ms = SHORT_MS;
    if (flags & FLAG_CPU)
        l.cpu_ms = CPU_MS;
    return l;
}

static void write_event(struct errand *e, const char *phase, const char *previous,
                        const char *secret)
{
    struct jw w = JW(&e->event);

    jw_object(&w);
    jw_kv_string(&w, "attack", e->attack->id);
    jw_kv_string(&w, "phase", phase);
    jw_kv_string(&w, "previous", previous);
    if (e->plants)
        jw_kv_string(&w, "secret", secret);
    witness_tell(e->witness, &w);
    jw_kv_int(&w, "memory", (int64_t)e->limits.memory_max);
    jw_kv_int(&w, "disk", (int64_t)e->limits.workspace_max);
    jw_kv_int(&w, "files", (int64_t)e->limits.workspace_files);
    jw_kv_int(&w, "tmp", (int64_t)e->limits.tmp_max);
    jw_kv_int(&w, "pids", e->limits.pids_max);
    jw_kv_int(&w, "open_files", e->limits.files_max);
    jw_kv_int(&w, "output", (int64_t)e->limits.output_max);
    jw_kv_int(&w, "patience", PATIENCE_S);
    jw_kv_bool(&w, "fake", e->fake);
    jw_kv_bool(&w, "hold", attack_is_held(e->attack) && strcmp(phase, "look") == 0);
    jw_kv_double(&w, "cpu", (double)e->limits.cpu_ms / 1000, 3);
    jw_object_end(&w);
}

static void job_init(struct job *j, const struct carrier *c, const struct attack *a, bool fake,
                     const char *phase, const char *previous)
{
    *j = (struct job){
        .errand = {.attack = a,
                   .witness = c->witness,
                   .limits = limits_of(c->config, a->flags, c->slow),
                   .event = BUF_INIT(EVENT_MAX),
                   .code = BUF_INIT(PROGRAM_MAX_BYTES),
                   .plants = strcmp(phase, "plant") == 0,
                   .fake = fake},
        .began_us = clock_us(),
    };
    write_event(&j->errand, phase, previous, c->secret);
    errand_write_code(&j->errand);
    run_result_init(&j->result, &j->errand.limits);
}

static void job_done(struct job *j)
{
    buf_done(&j->errand.event);
    buf_done(&j->errand.code);
    run_result_done(&j->result);
}

/* ---- what it says ---- */

static const char *line_of(const struct buf *b, const char *word, size_t *ret_n)
{
    const char *p = b->p, *end = b->p + b->n;
    size_t n = strlen(word);

    while (p && p < end) {
        const char *eol = memchr(p, '\n', (size_t)(end - p));
        size_t left = (size_t)((eol ? eol : end) - p);

        if (left >= n && memcmp(p, word, n) == 0) {
            *ret_n = left - n;
            return p + n;
        }
        p = eol ? eol + 1 : NULL;
    }
    return NULL;
}

/* Printable ASCII, bounded: a table must stay one. */
static void copy_words(char out[SIGHT_WORDS], const char *p, size_t n)
{
    size_t at = 0;

    while (n > 0 && *p == ' ')
        p++, n--;
    for (size_t i = 0; i < n && at < SIGHT_WORDS - 1; i++)
        out[at++] = p[i] >= ' ' && p[i] <= '~' ? p[i] : '.';
    out[at] = '\0';
}

bool job_is_through(const struct job *j)
{
    size_t n;

    return j->result.out.p && line_of(&j->result.out, "BREACH", &n);
}

/* It may know better than the table what it holds; "look" leaves that to the table. */
static enum attack_eye eye_of(const struct attack *a, const char *what)
{
    static const struct {
        const char *what;
        enum attack_eye eye;
    } eyes[] = {
        {"fd",        EYE_FD    },
        {"namespace", EYE_SPACES},
        {"mount",     EYE_MOUNTS},
        {"root",      EYE_ROOT  },
        {"process",   EYE_NONE  },
        {"call",      EYE_CALL  },
    };

    for (size_t i = 0; i < ARRAY_LEN(eyes); i++)
        if (strcmp(eyes[i].what, what) == 0)
            return eyes[i].eye;
    return a->eye;
}

void job_look(struct job *j)
{
    const struct errand *e = &j->errand;
    struct hold h = {.mark = witness_mark(e->witness),
                     .victim = witness_victim(e->witness),
                     .limits = &e->limits,
                     .usual = witness_usual(e->witness),
                     .ret_weak = &j->weak,
                     .n = -1};
    size_t n;
    const char *line = j->result.out.p ? line_of(&j->result.out, "HOLD ", &n) : NULL;
    char what[SIGHT_WORDS], *space;

    if (!line || j->holding)
        return;
    copy_words(what, line, n);
    space = strchr(what, ' ');
    if (!space)
        return; /* not all of it yet */
    *space = '\0';
    j->holding = true;
    h.eye = eye_of(e->attack, what);
    if (strcmp(what, "fd") == 0 || strcmp(what, "call") == 0)
        h.n = strtol(space + 1, NULL, 10);
    h.age_ms = (clock_us() - j->began_us) / 1000;
    (void)hold_look(&h, j->outside, sizeof j->outside);
}

void job_take_file(struct job *j, const char *name, int fd)
{
    char text[FILE_LOOK];
    struct stat st;
    const char *what;
    ssize_t n;

    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
        (void)snprintf(j->leak, sizeof j->leak, "'%.40s' was opened and is no file", name);
        return;
    }
    n = pread(fd, text, sizeof text, 0);
    what = n > 0 ? witness_reads(j->errand.witness, text, (size_t)n) : NULL;
    if (what)
        (void)snprintf(j->leak, sizeof j->leak, "%s, as a result", what);
}

static void read_words(const struct job *j, struct sight *s)
{
    static const char *const words[] = {"HELD", "BREACH", "OK", "ABSENT", "FAILED", "NUMBERS"};
    bool *const flags[] = {&s->held, &s->breach, &s->ok, &s->absent, NULL, NULL};
    size_t n;

    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        const char *line = j->result.out.p ? line_of(&j->result.out, words[i], &n) : NULL;

        if (!line)
            continue;
        if (flags[i])
            *flags[i] = true;
        copy_words(i == ARRAY_LEN(words) - 1 ? s->numbers : s->words, line, n);
    }
}

static void notice(struct sight *s, const char *what)
{
    s->noticed = true;
    (void)snprintf(s->witness, sizeof s->witness, "%s", what);
}

static void read_job(const struct job *j, const struct witness *w, struct sight *s)
{
    const struct run_result *r = &j->result;
    const struct buf *texts[] = {&r->out, &r->err, &r->result, &r->error};

    s->reason = r->reason;
    s->exit_code = r->exit_code;
    s->weak = j->weak;
    read_words(j, s);
    for (size_t i = 0; i < ARRAY_LEN(texts) && !j->errand.plants; i++) {
        const char *what = witness_reads(w, texts[i]->p, texts[i]->n);

        if (what)
            notice(s, what);
    }
    if (j->leak[0])
        notice(s, j->leak);
    if (j->outside[0])
        notice(s, j->outside);
    if (r->out.n > j->errand.limits.output_max + RUN_NOTE_MAX ||
        r->err.n > j->errand.limits.output_max + RUN_NOTE_MAX)
        notice(s, "more output was kept than the limit");
    if (r->reason == END_FAILED)
        (void)snprintf(s->words, sizeof s->words, "%.150s", r->fault);
}

/* ---- rows ---- */

static bool start(struct carrier *c, struct job *j, struct sight *s)
{
    struct err e = {0};

    if (!j->errand.event.failed && !j->errand.code.failed && c->start(c, j, &e) == 0)
        return true;
    s->failed = true;
    (void)snprintf(s->words, sizeof s->words, "%.150s", e.text);
    return false;
}

static void finish(struct carrier *c, struct job *j, struct sight *s)
{
    c->wait(c, j);
    c->end(c, j);
    read_job(j, c->witness, s);
}

static void carry_one(struct carrier *c, const struct attack *a, const char *previous, bool fake,
                      struct sight *s)
{
    struct job j;

    job_init(&j, c, a, fake, "look", previous);
    if (start(c, &j, s))
        finish(c, &j, s);
    job_done(&j);
}

/* Is a word of the one in the other? */
static bool have_in_common(const char *a, const char *b)
{
    char words[SIGHT_WORDS], *save = NULL;

    (void)snprintf(words, sizeof words, "%s", a);
    for (char *one = strtok_r(words, " ", &save); one; one = strtok_r(NULL, " ", &save))
        if (strstr(b, one))
            return true;
    return false;
}

static void carry_pair(struct carrier *c, const struct attack *a, bool fake, struct sight *s)
{
    struct sight first = {0};
    struct job j;
    size_t n;

    job_init(&j, c, a, fake, "plant", "");
    if (start(c, &j, s)) {
        c->wait(c, &j);
        if (a->flags & FLAG_AFTER)
            c->end(c, &j);
        read_job(&j, c->witness, &first);
        if (first.held)
            carry_one(c, a, first.numbers, fake, s);
        else
            s->failed = true, (void)snprintf(s->words, sizeof s->words, "could not be prepared");
        if (!(a->flags & FLAG_AFTER))
            c->end(c, &j);
        if (line_of(&j.result.out, "TOUCHED", &n))
            notice(s, "the neighbour noticed");
        if (have_in_common(first.numbers, s->numbers))
            notice(s, "the same random number twice");
    }
    job_done(&j);
}

/* An attack that reports success is looked for again for a moment: a process does not die at once.
 */
static bool look_closely(struct witness *w, const struct sight *s, char seen[SIGHT_WORDS])
{
    const struct timespec moment = {.tv_nsec = LOOK_AGAIN_MS * 1000000l};
    int tries = s->breach && !s->noticed ? LOOK_TRIES : 1;

    while (!witness_look(w, seen, SIGHT_WORDS)) {
        if (--tries == 0)
            return false;
        (void)nanosleep(&moment, NULL);
    }
    return true;
}

void carry_attack(struct carrier *c, const struct attack *a, bool fake, struct sight *ret)
{
    struct sight s = {0};
    char seen[SIGHT_WORDS] = "";
    uint64_t began = clock_us();

    if (a->flags & (FLAG_AFTER | FLAG_BESIDE))
        carry_pair(c, a, fake, &s);
    else
        carry_one(c, a, "", fake, &s);
    if (look_closely(c->witness, &s, seen))
        notice(&s, seen);
    s.us = clock_us() - began;
    *ret = s;
}
