/* SPDX-License-Identifier: MIT */
#include <cmocka.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "base/json.h"
#include "base/log.h"

enum { RECORD_MAX = 64 * 1024 };

/* A SEQPACKET pair shows that every record is exactly one write. */
struct stage {
    struct log log;
    int pair[2];
    char record[RECORD_MAX];
    ssize_t n;
};

static void stage_init(struct stage *s, bool json, enum log_level level)
{
    *s = (struct stage){
        .log = {.level = level, .json = json, .container_id = "box"}
    };
    assert_int_equal(fd_socketpair(SOCK_SEQPACKET, s->pair), 0);
    assert_int_equal(fd_nonblock(s->pair[1], true), 0);
    s->log.fd = s->pair[0];
}

static void stage_done(struct stage *s)
{
    fd_close_all(s->pair, 2);
}

static const char *stage_read(struct stage *s)
{
    s->n = recv(s->pair[1], s->record, sizeof s->record - 1, 0);
    s->record[s->n > 0 ? s->n : 0] = '\0';
    return s->n > 0 ? s->record : NULL;
}

static void assert_field(struct json_value v, const char *key, const char *want)
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(RECORD_MAX);
    struct json_value f;

    assert_true(json_get(v, key, &f));
    assert_int_equal(f.type, JSON_STRING);
    assert_int_equal(json_decode_string(f, 0, &text), 0);
    assert_string_equal(text.p, want);
}

static struct json_value parse_record(struct stage *s)
{
    struct json_value v;
    struct err e;

    assert_non_null(stage_read(s));
    assert_int_equal(s->record[s->n - 1], '\n');
    assert_ptr_equal(strchr(s->record, '\n'), s->record + s->n - 1);
    assert_int_equal(json_parse(s->record, (size_t)s->n, 0, &v, &e), 0);
    return v;
}

static void json_records_are_one_line_each(void **state)
{
    cleanup_with(stage_done) struct stage s;
    struct json_value v, f;
    int64_t number;

    (void)state;
    stage_init(&s, true, LOG_INFO);
    log_event(&s.log, LOG_WARN, "done", LOG_STR("execution_id", "e\"1\n2\xff"),
              LOG_INT("exit_code", -1), LOG_STR("missing", (const char *)NULL));
    v = parse_record(&s);
    assert_field(v, "level", "warn");
    assert_field(v, "event_type", "done");
    assert_field(v, "container_id", "box");
    assert_field(v, "execution_id", "e\"1\n2\xef\xbf\xbd");
    assert_field(v, "missing", "");
    assert_true(json_get(v, "exit_code", &f) && json_to_int(f, &number) && number == -1);
    assert_true(json_get(v, "timestamp", &f) && f.n == 29);
    assert_null(stage_read(&s));
}

static void records_below_the_level_are_dropped(void **state)
{
    cleanup_with(stage_done) struct stage s;

    (void)state;
    stage_init(&s, true, LOG_WARN);
    log_event(&s.log, LOG_INFO, "quiet", LOG_INT("x", 1));
    assert_null(stage_read(&s));
    log_event(&s.log, LOG_WARN, "loud", LOG_INT("x", 1));
    assert_non_null(stage_read(&s));
    log_event(&s.log, LOG_ERROR, "louder", LOG_INT("x", 1));
    assert_non_null(stage_read(&s));
}

static void text_records_quote_what_needs_it(void **state)
{
    cleanup_with(stage_done) struct stage s;

    (void)state;
    stage_init(&s, false, LOG_TRACE);
    log_event(&s.log, LOG_INFO, "start", LOG_STR("a", "plain"), LOG_STR("b", "two words"),
              LOG_STR("c", "x\ny=z"), LOG_INT("d", 7), LOG_STR("e", ""));
    assert_non_null(stage_read(&s));
    assert_string_equal(s.record + 28, "info  start a=plain b=\"two words\" c=\"x\\ny=z\" d=7 "
                                       "e=\"\"\n");
}

/* Six bytes each when escaped. */
static void many_fields(struct log_field *fields, size_t n)
{
    static char huge[200000];

    memset(huge, '\x01', sizeof huge - 1);
    for (size_t i = 0; i < n; i++)
        fields[i] = LOG_STR("field", huge);
}

static void long_json_records_are_cut_and_say_so(void **state)
{
    cleanup_with(stage_done) struct stage s;
    struct log_field many[40];
    struct json_value v, f;
    bool cut;

    (void)state;
    many_fields(many, ARRAY_LEN(many));
    stage_init(&s, true, LOG_TRACE);
    log_write(&s.log, LOG_INFO, "big", many, 1);
    assert_non_null(stage_read(&s));
    assert_in_range(s.n, 6 * 4096, 6 * 4096 + 300);
    log_write(&s.log, LOG_INFO, "bigger", many, ARRAY_LEN(many));
    assert_non_null(stage_read(&s));
    assert_in_range(s.n, 1, 32 * 1024 + 1);
    assert_int_equal(json_parse(s.record, (size_t)s.n, JSON_LENIENT_DUPES, &v, &(struct err){0}),
                     0);
    assert_field(v, "event_type", "bigger");
    assert_true(json_get(v, "truncated", &f) && json_to_bool(f, &cut) && cut);
}

static void long_text_records_are_cut(void **state)
{
    cleanup_with(stage_done) struct stage s;
    struct log_field many[40];

    (void)state;
    many_fields(many, ARRAY_LEN(many));
    stage_init(&s, false, LOG_TRACE);
    log_write(&s.log, LOG_INFO, "bigger", many, ARRAY_LEN(many));
    assert_non_null(stage_read(&s));
    assert_in_range(s.n, 6 * 4096, 32 * 1024 + 1);
    assert_ptr_equal(strchr(s.record, '\n'), s.record + s.n - 1);
    assert_int_equal(s.record[s.n - 2], '"'); /* whole fields only */
}

static void nothing_to_write_to_is_no_reason_to_fail(void **state)
{
    const struct log closed = {.fd = -1, .json = true};

    (void)state;
    log_event(&closed, LOG_ERROR, "void", LOG_INT("x", 1));
}

static void levels_have_names(void **state)
{
    enum log_level level = LOG_ERROR;

    (void)state;
    assert_true(log_level_parse("Debug", &level));
    assert_int_equal(level, LOG_DEBUG);
    assert_true(log_level_parse("TRACE", &level));
    assert_int_equal(level, LOG_TRACE);
    assert_false(log_level_parse("verbose", &level));
    assert_false(log_level_parse("", &level));
    assert_int_equal(level, LOG_TRACE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_records_are_one_line_each),
        cmocka_unit_test(records_below_the_level_are_dropped),
        cmocka_unit_test(text_records_quote_what_needs_it),
        cmocka_unit_test(long_json_records_are_cut_and_say_so),
        cmocka_unit_test(long_text_records_are_cut),
        cmocka_unit_test(nothing_to_write_to_is_no_reason_to_fail),
        cmocka_unit_test(levels_have_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
