/* SPDX-License-Identifier: MIT */
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "cli/event_lines.h"

enum { ROOM = 4096 };

struct seen {
    char text[ROOM]; /* "name,id,data|" of each */
    size_t n;
    int most; /* so many are wanted; 0: all */
    int count;
};

static int see(void *user, const struct event_seen *ev)
{
    struct seen *s = user;

    assert_int_equal(strlen(ev->data), ev->n);
    s->n += (size_t)snprintf(s->text + s->n, ROOM - s->n, "%s,%s,%s|", ev->name, ev->id, ev->data);
    s->count++;
    return s->most && s->count >= s->most ? -1 : 0;
}

static void feed_in(const char *text, size_t piece, const char *want)
{
    struct event_lines l;
    struct seen s = {0};
    size_t n = strlen(text);

    event_lines_init(&l, ROOM);
    for (size_t i = 0; i < n; i += piece)
        assert_int_equal(event_lines_feed(&l, text + i, n - i < piece ? n - i : piece, see, &s), 0);
    event_lines_done(&l);
    assert_string_equal(s.text, want);
}

static void feed(const char *text, const char *want)
{
    for (size_t piece = 1; piece <= strlen(text); piece++)
        feed_in(text, piece, want);
}

static void events_have_names_ids_and_data(void **state)
{
    (void)state;
    feed("event: end\nid: 3-1\ndata: {\"a\":1}\n\n", "end,3-1,{\"a\":1}|");
    feed("data:x\n\ndata: y\n\n", "message,,x|message,,y|");
    feed("id: 1\ndata\n\ndata: z\n\n", "message,1,|message,1,z|");
}

static void lines_of_data_are_joined_and_comments_dropped(void **state)
{
    (void)state;
    feed(": awake\n\ndata: a\n: no\ndata: b\nretry: 5\nfoo: bar\n\n", "message,,a\nb|");
    feed(":\n\n\n\n", "");
}

static void every_end_of_line_is_one(void **state)
{
    (void)state;
    feed("data: a\r\n\r\ndata: b\r\rdata: c\n\n", "message,,a|message,,b|message,,c|");
}

static void an_event_that_does_not_end_is_none(void **state)
{
    (void)state;
    feed("data: a\n\ndata: b\n", "message,,a|");
    feed("\xef\xbb\xbf"
         "data: a\n\n",
         "message,,a|");
}

static void reading_ends_on_request_and_at_its_limit(void **state)
{
    static const char two[] = "data: a\n\ndata: b\n\n";
    struct event_lines l;
    struct seen s = {.most = 1};
    char much[ROOM * 2];

    (void)state;
    event_lines_init(&l, ROOM);
    assert_int_equal(event_lines_feed(&l, two, sizeof two - 1, see, &s), -1);
    assert_string_equal(s.text, "message,,a|");
    event_lines_done(&l);

    memset(much, 'x', sizeof much);
    event_lines_init(&l, ROOM);
    assert_int_equal(event_lines_feed(&l, much, sizeof much, see, &s), -1);
    event_lines_done(&l);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_have_names_ids_and_data),
        cmocka_unit_test(lines_of_data_are_joined_and_comments_dropped),
        cmocka_unit_test(every_end_of_line_is_one),
        cmocka_unit_test(an_event_that_does_not_end_is_none),
        cmocka_unit_test(reading_ends_on_request_and_at_its_limit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
