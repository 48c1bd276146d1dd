/* SPDX-License-Identifier: MIT */
/*
 * Which versions the languages have: asked once after start, inside a sandbox, because what counts
 * is what a program will find there.
 */
#pragma once

#include "app/daemon/app.h"

/* Asks; answers appear in app->lang_versions when they are known. Failing is not an error. */
void survey_start(struct app *a);
void survey_stop(struct app *a); /* forgets about it */
