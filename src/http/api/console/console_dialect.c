/* SPDX-License-Identifier: MIT */
/* The console: the rows of the family. */
#include "http/api/api.h"
#include "http/api/console/console.h"
#include "http/api/problem.h"

/* clang-format off */
static const struct route console_rows[] = {
    {"GET",  "/console",          console_page,    ROUTE_HEAD, "console", "the console, a page for people",
     .answer = {{200, NULL, "text/html"}}, .header = "Accept-Encoding: gzip"},
    {"POST", "/console/login",    console_login,   ROUTE_BODY, "console",
     "exchange the ticket of a printed address for the key of a session; a ticket works once", NULL, &console_login_shape,
     .example = "{\"ticket\": \"...\"}",
     .answer = {{200, "ConsoleSession"}}},
    {"POST", "/console/sessions", console_session, ROUTE_AUTH, "console",
     "a key that opens what the secret opens, until its time is up",
     .answer = {{201, "ConsoleSession"}}},
    {"POST", "/console/tickets",  console_ticket,  ROUTE_AUTH, "console",
     "a new address that opens the console once",
     .answer = {{201, "ConsoleTicket"}}},
    {"GET",  "/console/**",       console_file,    ROUTE_HEAD, "console", "what the page is made of",
     .answer = {{200, NULL, "application/octet-stream"}}, .example_path = "frame", .header = "Accept-Encoding: gzip"},
};
/* clang-format on */

const struct dialect console_dialect = {
    .name = "console",
    .title = "Console",
    .about = "A page for people, and how a browser gets the key for it.",
    API_OURS(console_rows),
};
