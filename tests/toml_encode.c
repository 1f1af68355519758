/* toml-encode: the tagged JSON of the public TOML test suite on standard input, TOML on standard
 * output. Exit code 1, and a message, for anything else. */
#include "base/file.h"
#include "codec/toml.h"

#include <stdio.h>

struct encoder {
    struct arena *arena;
    struct err *err;
};

static int encode(struct encoder *e, const json_val *v, struct toml **out);

static bool is_tagged(const json_val *v)
{
    return json_count(v) == 2 && json_is_string(json_get(v, STR("type"))) &&
           json_is_string(json_get(v, STR("value")));
}

/* A float without a point, "5", is one all the same. */
static int encode_float(struct encoder *e, struct str text, struct toml **out)
{
    struct toml *v;
    if (toml_read_value(e->arena, text, &v, e->err) < 0)
        return -1;
    bool minus_zero = toml_is(v, TOML_INTEGER) && toml_int(v) == 0 && text.p[0] == '-';
    if (minus_zero)
        *out = toml_new_float(e->arena, -0.0);
    else
        *out = toml_is(v, TOML_INTEGER) ? toml_new_float(e->arena, (double)toml_int(v)) : v;
    return 0;
}

static int encode_scalar(struct encoder *e, const json_val *v, struct toml **out)
{
    static const struct {
        const char *tag;
        enum toml_type type;
    } tags[] = {
        { "integer", TOML_INTEGER },
        { "float", TOML_FLOAT },
        { "bool", TOML_BOOL },
        { "datetime", TOML_DATETIME },
        { "datetime-local", TOML_DATETIME_LOCAL },
        { "date-local", TOML_DATE_LOCAL },
        { "time-local", TOML_TIME_LOCAL },
    };
    struct str type = json_str(json_get(v, STR("type"))),
               text = json_str(json_get(v, STR("value")));
    if (str_eqz(type, "string")) {
        *out = toml_new_str(e->arena, text);
        return 0;
    }
    for (size_t i = 0; i < KV_COUNT_OF(tags); i++) {
        if (!str_eqz(type, tags[i].tag))
            continue;
        int rc = tags[i].type == TOML_FLOAT ? encode_float(e, text, out)
                                            : toml_read_value(e->arena, text, out, e->err);
        if (rc == 0 && !toml_is(*out, tags[i].type))
            return err_set(e->err, ERR_INVALID, "%s is no %s", STR_SHOWN(text), tags[i].tag);
        return rc;
    }
    return err_set(e->err, ERR_INVALID, "unknown type %s", STR_SHOWN(type));
}

static int encode_table(struct encoder *e, const json_val *object, struct toml **out)
{
    *out = toml_new_table(e->arena);
    json_each_member(object, key, member) {
        struct toml *value;
        if (encode(e, member, &value) < 0)
            return err_wrap(e->err, "%s", STR_SHOWN(json_key(key)));
        toml_set(e->arena, *out, json_key(key), value);
    }
    return 0;
}

static int encode_array(struct encoder *e, const json_val *array, struct toml **out)
{
    *out = toml_new_array(e->arena);
    json_each_item(array, item) {
        struct toml *value;
        if (encode(e, item, &value) < 0)
            return -1;
        toml_push(e->arena, *out, value);
    }
    return 0;
}

static int encode(struct encoder *e, const json_val *v, struct toml **out)
{
    if (is_tagged(v))
        return encode_scalar(e, v, out);
    if (json_is_object(v))
        return encode_table(e, v, out);
    if (json_is_array(v))
        return encode_array(e, v, out);
    return err_set(e->err, ERR_INVALID, "expected an object or array, found %s", json_type_name(v));
}

int main(void)
{
    AUTO_ARENA arena = { 0 };
    AUTO_BUF text = { 0 };
    AUTO_BUF toml = { 0 };
    struct err err = { 0 };
    struct encoder encoder = { &arena, &err };
    struct doc doc = { 0 };
    struct toml *root = NULL;
    /* Not json_read, which refuses the NUL characters that TOML can hold. */
    int rc = file_read("-", JSON_BYTES_MAX, &text, &err);
    if (rc == 0)
        rc = json_read_trusted(buf_str(&text), &doc, &err);
    if (rc == 0) {
        rc = encode(&encoder, doc.root, &root);
        doc_done(&doc);
    }
    if (rc == 0 && (!toml_is(root, TOML_TABLE)))
        rc = err_set(&err, ERR_INVALID, "a document is a table");
    if (rc < 0) {
        fprintf(stderr, "toml-encode: %s\n", err.text);
        return 1;
    }
    toml_write(root, &toml);
    fwrite(buf_str(&toml).p, 1, toml.len, stdout);
    return 0;
}
