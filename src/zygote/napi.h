/* SPDX-License-Identifier: MIT */
/*
 * The few functions of Node-API that the Node.js zygote calls. That interface
 * is stable across releases of Node.js, so its headers need not be installed.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef struct napi_env__ *napi_env;
typedef struct napi_value__ *napi_value;
typedef struct napi_callback_info__ *napi_callback_info;
typedef napi_value napi_callback(napi_env env, napi_callback_info info);

#define NAPI_CALL __attribute__((visibility("default"))) int /* 0: done */

NAPI_CALL napi_create_function(napi_env env, const char *name, size_t name_n, napi_callback *fn,
                               void *user, napi_value *ret);
NAPI_CALL napi_set_named_property(napi_env env, napi_value object, const char *name,
                                  napi_value value);
NAPI_CALL napi_get_cb_info(napi_env env, napi_callback_info info, size_t *argc, napi_value *argv,
                           napi_value *self, void **user);
NAPI_CALL napi_get_value_int32(napi_env env, napi_value value, int32_t *ret);
NAPI_CALL napi_get_value_string_utf8(napi_env env, napi_value value, char *text, size_t max,
                                     size_t *ret_n);
NAPI_CALL napi_create_int32(napi_env env, int32_t value, napi_value *ret);
NAPI_CALL napi_create_string_utf8(napi_env env, const char *text, size_t n, napi_value *ret);
NAPI_CALL napi_create_object(napi_env env, napi_value *ret);
NAPI_CALL napi_create_array(napi_env env, napi_value *ret);
NAPI_CALL napi_set_element(napi_env env, napi_value array, uint32_t at, napi_value value);

/* What Node.js looks for in a library that it loads. */
__attribute__((visibility("default"))) napi_value napi_register_module_v1(napi_env env,
                                                                          napi_value exports);
