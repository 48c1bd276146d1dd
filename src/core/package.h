/* SPDX-License-Identifier: MIT */
/*
 * What a caller may say about packages: requirements, an index, hosts; and what a package says of
 * itself. Pure: everything here only looks at text.
 *
 * A requirement becomes an argument of an installer. So only what PEP 508 calls one is let through,
 * never an option, a path or an address that is not http or https:
 *
 *   name [extra, ...] >=1.0, <2 ; marker          name [extra] @ https://host/file.whl ; marker
 *   https://host/file.whl
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"

/* The member `packages` of a request, as JSON Schema: the name of a set, or its lists. */
#define PACKAGES_SCHEMA                                                                            \
    "{\"anyOf\":[{\"type\":\"string\"},{\"$ref\":\"#/components/schemas/PackageLists\"}]}"

enum {
    PACKAGE_SPEC_MAX = 1024,
    PACKAGE_URL_MAX = 2048,
    PACKAGE_HOST_MAX = 253,
    PACKAGE_USER_MAX = 512,      /* "user:password" */
    PACKAGE_NAME_MAX = 128,      /* of a distribution */
    PACKAGE_VERSION_MAX = 128,   /* of one */
    PACKAGE_METADATA_MAX = 65536 /* how much of its description is read */
};

struct package_host {
    char name[PACKAGE_HOST_MAX + 1]; /* lower case; an IPv6 address without its brackets */
    uint16_t port;                   /* 0: none was named */
};

struct package_index {
    char url[PACKAGE_URL_MAX + 1];        /* as given */
    char user_info[PACKAGE_USER_MAX + 1]; /* as written in it; "": none. A secret */
    struct package_host host;             /* port: never 0 */
    bool tls;
};

struct package_dist {
    char name[PACKAGE_NAME_MAX + 1], version[PACKAGE_VERSION_MAX + 1];
    bool npm; /* of a package of npm; else of Python */
};

/* Is it a requirement that may be handed to an installer? Says why not. */
must_check int package_spec_check(const char *spec, size_t n, struct err *e);
/* The same of npm: name, @scope/name, name@1.2, name@^1.0 || ~2.1. No path, address or alias. */
must_check int package_npm_check(const char *spec, size_t n, struct err *e);
/* An http or https address without query and fragment. No error quotes it. */
must_check int package_index_parse(const char *url, size_t n, struct package_index *ret,
                                   struct err *e);
/* "host", "host:port" or "[address]:port". */
bool package_host_parse(const char *p, size_t n, struct package_host *ret);
/* "host, host:port": at most `max`; how many there were, or -1. */
must_check int package_hosts_parse(const char *text, struct package_host *ret, size_t max,
                                   struct err *e);
/* Name and version from the head of METADATA or PKG-INFO; false when one is missing or strange. */
bool package_metadata_parse(const char *text, size_t n, struct package_dist *ret);
/* The same from the head of a package.json, as far as it is JSON. */
bool package_json_parse(const char *text, size_t n, struct package_dist *ret);
/* A copy of a text in which the secret of the index shows nowhere, in no usual spelling. */
void package_scrub(const struct package_index *index, const char *text, size_t n, struct buf *out);
