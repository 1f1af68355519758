#include "net/curl_load.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>

#define CURL_LIBRARY "libcurl.so.4"

struct curl_functions libcurl;
static struct err trouble;

static const struct {
    const char *name;
    size_t offset;
} table[] = {
#define X(name) { "curl_" #name, offsetof(struct curl_functions, name) },
    CURL_FUNCTIONS(X)
#undef X
};

static void load(void)
{
    void *library = dlopen(CURL_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        err_set(&trouble, ERR_UNAVAILABLE, "HTTP needs libcurl: %s", dlerror());
        return;
    }
    for (size_t i = 0; i < KV_COUNT_OF(table); i++) {
        void *function = dlsym(library, table[i].name);
        if (!function) {
            err_set(&trouble, ERR_UNAVAILABLE, "HTTP needs a newer libcurl: %s", dlerror());
            return;
        }
        memcpy((char *)&libcurl + table[i].offset, &function, sizeof function);
    }
    if (libcurl.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        err_set(&trouble, ERR_UNAVAILABLE, "libcurl cannot be started");
}

int curl_load(struct err *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load);
    return trouble.kind == ERR_NONE ? 0 : err_set(err, trouble.kind, "%s", trouble.text);
}
