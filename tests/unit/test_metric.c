/* SPDX-License-Identifier: MIT */
#include <cmocka.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/metric.h"

static void values_are_exposed(void **state)
{
    cleanup_with(buf_done) struct buf b = BUF_INIT(4096);

    (void)state;
    metric_head(&b, "x_total", "counter", "things");
    metric_value(&b, "x_total", "", 12345678901.0);
    metric_value(&b, "x_total", "a=\"b\"", 0.25);
    metric_value(&b, "x", "", -3);
    metric_value(&b, "x", "", (double)NAN);
    metric_value(&b, "x", "", (double)-INFINITY);
    metric_value(&b, "x", "", 1e300);
    assert_string_equal(b.p, "# HELP x_total things\n# TYPE x_total counter\n"
                             "x_total 12345678901\nx_total{a=\"b\"} 0.25\nx -3\nx NaN\nx -Inf\n"
                             "x 1e+300\n");
}

static void histograms_are_cumulative(void **state)
{
    cleanup_with(buf_done) struct buf b = BUF_INIT(1 << 16);
    struct histogram h = {0};

    (void)state;
    histogram_add(&h, 0);
    histogram_add(&h, 250); /* a bound belongs to its bucket */
    histogram_add(&h, 251);
    histogram_add(&h, 30000000);
    histogram_add(&h, 30000001);
    assert_int_equal(h.bucket[0], 2);
    assert_int_equal(h.bucket[1], 1);
    assert_int_equal(h.bucket[METRIC_BUCKETS - 1], 1);
    assert_int_equal(h.bucket[METRIC_BUCKETS], 1);
    metric_histogram(&b, "t_seconds", "s=\"run\"", &h);
    assert_non_null(strstr(b.p, "t_seconds_bucket{s=\"run\",le=\"0.00025\"} 2\n"));
    assert_non_null(strstr(b.p, "t_seconds_bucket{s=\"run\",le=\"0.0005\"} 3\n"));
    assert_non_null(strstr(b.p, "t_seconds_bucket{s=\"run\",le=\"1\"} 3\n"));
    assert_non_null(strstr(b.p, "t_seconds_bucket{s=\"run\",le=\"30\"} 4\n"));
    assert_non_null(strstr(b.p, "t_seconds_bucket{s=\"run\",le=\"+Inf\"} 5\n"));
    assert_non_null(strstr(b.p, "t_seconds_sum{s=\"run\"} 60.000502\n"));
    assert_non_null(strstr(b.p, "t_seconds_count{s=\"run\"} 5\n"));
    buf_clear(&b);
    metric_histogram(&b, "t_seconds", "", &h);
    assert_non_null(strstr(b.p, "t_seconds_bucket{le=\"0.00025\"} 2\n"));
    assert_non_null(strstr(b.p, "t_seconds_count 5\n"));
    assert_false(b.failed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_exposed),
        cmocka_unit_test(histograms_are_cumulative),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
