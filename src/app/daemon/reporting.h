/* SPDX-License-Identifier: MIT */
/* The control plane and the webhooks as configured. */
#pragma once

#include "base/cleanup.h"
#include "base/err.h"

struct app;
struct config;
struct boot_identity;

/* Is what is configured a control plane that can be told, and hosts for webhooks? Nothing is
 * touched. */
must_check int report_check(const struct config *c, struct err *e);
/* Before privileges are given up: the directories for results and webhooks, where there are any. */
must_check int report_prepare(const struct app *a, const struct boot_identity *who, struct err *e);
/* Opens the control plane of the configuration as a->report, and a->webhooks; they stay NULL where
 * there is none. */
must_check int report_open(struct app *a, struct err *e);
void report_close(struct app *a);          /* close the workers first */
void report_count_webhooks(struct app *a); /* in its metrics */
