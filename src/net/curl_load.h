/* net/curl_load.h - libcurl, loaded when the first HTTP client is made.
 *
 * It brings twenty more libraries: linked, they would cost each run of the program milliseconds and each
 * agent more than a megabyte, and most runs and agents never speak HTTP.
 */
#pragma once

#include "base/err.h"

#define CURL_DISABLE_TYPECHECK /* its macros call the functions by name */
#include <curl/curl.h>

#define CURL_FUNCTIONS(X)                                                                          \
    X(easy_cleanup)                                                                                \
    X(easy_getinfo)                                                                                \
    X(easy_init)                                                                                   \
    X(easy_setopt)                                                                                 \
    X(easy_strerror)                                                                               \
    X(free)                                                                                        \
    X(getdate)                                                                                     \
    X(global_init)                                                                                 \
    X(multi_add_handle)                                                                            \
    X(multi_cleanup)                                                                               \
    X(multi_info_read)                                                                             \
    X(multi_init)                                                                                  \
    X(multi_perform)                                                                               \
    X(multi_poll)                                                                                  \
    X(multi_remove_handle)                                                                         \
    X(multi_setopt)                                                                                \
    X(multi_wakeup)                                                                                \
    X(slist_append)                                                                                \
    X(slist_free_all)                                                                              \
    X(url)                                                                                         \
    X(url_cleanup)                                                                                 \
    X(url_get)                                                                                     \
    X(url_set)

struct curl_functions { /* libcurl.easy_init() is curl_easy_init() */
#define X(name) __typeof__(curl_##name) *name;
    CURL_FUNCTIONS(X)
#undef X
};
extern struct curl_functions libcurl; /* once curl_load has succeeded */

/* Thread safe. ERR_UNAVAILABLE: it is not installed, or too old. */
int curl_load(struct err *err);
