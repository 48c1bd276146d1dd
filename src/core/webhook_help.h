/* SPDX-License-Identifier: MIT */
/* The member `webhook` of a request, for the documentation of every body that has it. */
#pragma once

#define WEBHOOK_HELP                                                                               \
    "where the result is sent as well, if the operator's WEBHOOK_HOSTS allows it: an http(s) "     \
    "address, or {\"url\", \"secret\"}"
#define WEBHOOK_SCHEMA                                                                             \
    "{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"object\",\"required\":[\"url\"],"               \
    "\"properties\":{\"url\":{\"type\":\"string\"},\"secret\":{\"type\":\"string\"}},"             \
    "\"additionalProperties\":false}]}"
