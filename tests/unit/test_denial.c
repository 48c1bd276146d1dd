/* SPDX-License-Identifier: MIT */
#include <cmocka.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "core/denial.h"

static unsigned find(const char *text)
{
    struct buf b = BUF_INIT(1 << 20);
    unsigned set;

    assert_int_equal(buf_puts(&b, text), 0);
    set = denials_find(&(struct denial_facts){.said = {&b}});
    buf_done(&b);
    return set;
}

static void test_words_are_found(void **state)
{
    static const struct {
        const char *text;
        unsigned set;
    } rows[] = {
        {"OSError: [Errno 101] Network is unreachable\n",       BIT(DENIAL_NETWORK)                      },
        {"curl: (6) Could not resolve host: example.com",       BIT(DENIAL_NETWORK)                      },
        {"npm ERR! code EAI_AGAIN",                             BIT(DENIAL_NETWORK) | BIT(DENIAL_INSTALL)},
        {"error: externally-managed-environment",               BIT(DENIAL_INSTALL)                      },
        {"ModuleNotFoundError: No module named 'x'",            BIT(DENIAL_MODULE)                       },
        {"code: 'MODULE_NOT_FOUND'",                            BIT(DENIAL_MODULE)                       },
        {"touch: cannot touch '/x': Read-only file system",     BIT(DENIAL_READ_ONLY)                    },
        {"Error: EROFS: read-only file system, open '/x'",      BIT(DENIAL_READ_ONLY)                    },
        {"mount: /mnt: Operation not permitted.",               BIT(DENIAL_CALL)                         },
        {"bash: fork: retry: Resource temporarily unavailable", BIT(DENIAL_PIDS)                         },
        {"RuntimeError: can't start new thread",                BIT(DENIAL_PIDS)                         },
        {"MemoryError",                                         BIT(DENIAL_MEMORY)                       },
        {"FATAL ERROR: JavaScript heap out of memory",          BIT(DENIAL_MEMORY)                       },
        {"cp: error writing 'x': No space left on device",      BIT(DENIAL_DISK)                         },
        {"OSError: [Errno 24] Too many open files: 'x'",        BIT(DENIAL_DESCRIPTORS)                  },
        {"ZeroDivisionError: division by zero",                 0                                        },
        {"",                                                    0                                        },
        {"EROFS and then No space left on device",              BIT(DENIAL_READ_ONLY) | BIT(DENIAL_DISK) },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        assert_int_equal(find(rows[i].text), rows[i].set);
}

/* Bounded: what stands before the last few kilobytes is not looked at. */
static void test_only_the_end_is_read(void **state)
{
    struct buf b = BUF_INIT(1 << 20);
    struct denial_facts f = {
        .said = {NULL, &b}
    };

    (void)state;
    assert_int_equal(buf_puts(&b, "EROFS "), 0);
    assert_int_equal(denials_find(&f), BIT(DENIAL_READ_ONLY));
    for (int i = 0; i < 20000; i++)
        assert_int_equal(buf_putc(&b, 'x'), 0);
    assert_int_equal(denials_find(&f), 0);
    assert_int_equal(buf_puts(&b, " ENOSPC"), 0);
    assert_int_equal(denials_find(&f), BIT(DENIAL_DISK));
    buf_done(&b);
}

static void test_counters_and_signals(void **state)
{
    struct usage u = USAGE_UNKNOWN;
    struct denial_facts f = {.usage = &u};

    (void)state;
    assert_int_equal(denials_find(&f), 0);
    u.oom_kills = 1;
    assert_int_equal(denials_find(&f), BIT(DENIAL_MEMORY));
    u.pids_denied = 2;
    f.signal = SIGSYS;
    assert_int_equal(denials_find(&f), BIT(DENIAL_MEMORY) | BIT(DENIAL_PIDS) | BIT(DENIAL_CALL));
}

static void test_json(void **state)
{
    struct buf b = BUF_INIT(1 << 16);
    struct jw w = JW(&b);

    (void)state;
    denials_json(&w, 0, DENIAL_EPHEMERAL);
    assert_int_equal(b.n, 0);
    assert_null(denials_hint(0, DENIAL_PERSISTENT));
    denials_json(&w, BIT(DENIAL_MODULE), DENIAL_EPHEMERAL);
    assert_int_equal(b.n, 0); /* nothing was refused */
    jw_object(&w);
    denials_json(&w, BIT(DENIAL_PIDS), DENIAL_PERSISTENT);
    jw_object_end(&w);
    assert_non_null(
        strstr(b.p, "{\"denied\":[{\"what\":\"processes\",\"setting\":\"SANDBOX_PIDS\""));
    assert_non_null(strstr(denials_hint(BIT(DENIAL_PIDS), DENIAL_EPHEMERAL), "PIDS_MAX"));
    for (unsigned i = 0; i < DENIAL_COUNT; i++)
        for (int place = DENIAL_EPHEMERAL; place <= DENIAL_PERSISTENT; place++)
            assert_non_null(denials_hint(BIT(i), (enum denial_place)place));
    buf_done(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words_are_found),
        cmocka_unit_test(test_only_the_end_is_read),
        cmocka_unit_test(test_counters_and_signals),
        cmocka_unit_test(test_json),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
