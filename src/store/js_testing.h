/* store/js_testing.h - JSON in tests, written with single quotes: js("{'metadata':{'name':'%s'}}", name). */
#pragma once

#include "base/str.h"

#include <stdio.h>

#define JS_BYTES_MAX 4096

/* The next text: eight are alive at a time, and a test uses fewer in one statement. */
KV_PRINTF(1, 2) static inline struct str js(const char *fmt, ...)
{
    static _Thread_local char ring[8][JS_BYTES_MAX];
    static _Thread_local unsigned next;
    char *text = ring[next++ % 8];
    va_list args;

    va_start(args, fmt);
    int len = vsnprintf(text, JS_BYTES_MAX, fmt, args);
    va_end(args);
    KV_ASSERT(len >= 0 && len < JS_BYTES_MAX);
    for (int i = 0; i < len; i++)
        text[i] = text[i] == '\'' ? '"' : text[i];
    return (struct str){ text, (size_t)len };
}
