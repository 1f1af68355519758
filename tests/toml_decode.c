/* toml-decode: TOML on standard input, the tagged JSON of the public TOML test suite on standard
 * output. Exit code 1, and a message, for a text that is not TOML 1.0. */
#include "base/file.h"
#include "codec/toml.h"

#include <math.h>
#include <stdio.h>

static const char *tag_of(enum toml_type type)
{
    static const char *const tags[] = {
        [TOML_STRING] = "string",         [TOML_INTEGER] = "integer",
        [TOML_FLOAT] = "float",           [TOML_BOOL] = "bool",
        [TOML_DATETIME] = "datetime",     [TOML_DATETIME_LOCAL] = "datetime-local",
        [TOML_DATE_LOCAL] = "date-local", [TOML_TIME_LOCAL] = "time-local",
    };
    return tags[type];
}

static void add_float(struct buf *out, double v)
{
    if (isnan(v) || isinf(v))
        buf_addz(out, isnan(v) ? "nan" : v < 0 ? "-inf" : "inf");
    else
        buf_add_double(out, v);
}

static void add_scalar(struct buf *out, const struct toml *v)
{
    AUTO_BUF text = { 0 };
    switch (toml_type(v)) {
    case TOML_INTEGER:
        buf_addf(&text, "%lld", (long long)toml_int(v));
        break;
    case TOML_FLOAT:
        add_float(&text, toml_float(v));
        break;
    case TOML_BOOL:
        buf_addz(&text, toml_bool(v) ? "true" : "false");
        break;
    case TOML_STRING:
    case TOML_DATETIME:
    case TOML_DATETIME_LOCAL:
    case TOML_DATE_LOCAL:
    case TOML_TIME_LOCAL:
        buf_add(&text, toml_str(v));
        break;
    case TOML_ARRAY:
    case TOML_TABLE:
        KV_UNREACHABLE();
    }
    buf_addf(out, "{\"type\":\"%s\",\"value\":", tag_of(toml_type(v)));
    json_write_string(buf_str(&text), out);
    buf_addc(out, '}');
}

static void add_value(struct buf *out, const struct toml *v)
{
    const char *before = "";
    if (toml_is(v, TOML_ARRAY)) {
        buf_addc(out, '[');
        for (uint32_t i = 0; i < toml_count(v); i++, before = ",") {
            buf_addz(out, before);
            add_value(out, toml_item(v, i));
        }
        buf_addc(out, ']');
    } else if (toml_is(v, TOML_TABLE)) {
        buf_addc(out, '{');
        toml_each(v, e)
        {
            buf_addz(out, before);
            json_write_string(toml_key(e), out);
            buf_addc(out, ':');
            add_value(out, toml_value(e));
            before = ",";
        }
        buf_addc(out, '}');
    } else {
        add_scalar(out, v);
    }
}

int main(void)
{
    AUTO_ARENA arena = { 0 };
    AUTO_BUF text = { 0 };
    AUTO_BUF json = { 0 };
    struct toml *root;
    struct err err = { 0 };
    if (file_read("-", TOML_BYTES_MAX, &text, &err) < 0 ||
        toml_read(&arena, buf_str(&text), &root, &err) < 0) {
        fprintf(stderr, "toml-decode: %s\n", err.text);
        return 1;
    }
    add_value(&json, root);
    puts(buf_str(&json).p);
    return 0;
}
