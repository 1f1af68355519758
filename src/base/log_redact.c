/* One pass over the text. At each position where a word can begin, a few recognisers are asked;
 * the first that knows what follows says how many bytes to copy and how many to hide. Everything
 * else is copied. No recogniser looks further than the value that it hides, except the one for
 * PEM, which then hides all that it looked at: the pass stays linear.
 */
#include "base/log_redact.h"

/* As they appear with case and punctuation removed. */
static const char *const secret_words[] = {
    "accesskey",  "apikey",       "authorization", "bearer",  "clientkey",   "cookie",
    "credential", "dockerconfig", "encryptionkey", "keydata", "keymaterial", "passphrase",
    "passwd",     "password",     "privatekey",    "secret",  "sessionkey",  "signature",
    "signingkey", "token",        "userdata",
};

#define NAME_MAX_BYTES 64 /* longer words are no field names; only their end is looked at */
#define AWS_KEY_ID_BYTES 20
#define AWS_SECRET_BYTES 40

struct mask {
    size_t copy, hide; /* copy so many bytes, then hide so many; hide 0: nothing recognised */
};

bool redact_name(struct str name)
{
    char plain[NAME_MAX_BYTES + 1];
    size_t len = 0;
    if (name.len > NAME_MAX_BYTES)
        name = str_sub(name, name.len - NAME_MAX_BYTES, NAME_MAX_BYTES);
    for (size_t i = 0; i < name.len; i++) {
        if (char_is_alnum(name.p[i]))
            plain[len++] = char_lower(name.p[i]);
    }
    plain[len] = '\0';
    for (size_t i = 0; i < KV_COUNT_OF(secret_words); i++) {
        if (strstr(plain, secret_words[i]))
            return true;
    }
    return false;
}

static bool starts_ignoring_case(struct str s, const char *word)
{
    size_t i = 0;
    for (; word[i]; i++) {
        if (i == s.len || char_lower(s.p[i]) != word[i])
            return false;
    }
    return true;
}

static bool is_word(char c)
{
    return char_is_alnum(c) || c == '_' || c == '-';
}

/* Of credentials: base64 in both alphabets, and the dots between the parts of a token. */
static bool is_token(char c)
{
    return is_word(c) || (c && strchr("+/=.~", c));
}

static size_t run(struct str s, size_t from, bool (*accepts)(char))
{
    size_t n = 0;
    while (from + n < s.len && accepts(s.p[from + n]))
        n++;
    return n;
}

static size_t skip_spaces(struct str s, size_t at)
{
    while (at < s.len && (s.p[at] == ' ' || s.p[at] == '\t'))
        at++;
    return at;
}

/* What a value can be made of when nothing quotes it. */
static bool is_value(char c)
{
    return !char_is_space(c) && c != ',' && c != ';' && c != '&' && c != '"' && c != '\'' &&
           c != '}' && c != ']' && c != ')';
}

static size_t quoted_bytes(struct str s, size_t at, char quote)
{
    size_t i = at;
    while (i < s.len && s.p[i] != quote)
        i += s.p[i] == '\\' && i + 1 < s.len ? 2 : 1;
    return (i < s.len ? i : s.len) - at;
}

/* "password=hunter2", "password: hunter2", "\"password\": \"hunter2\"", also inside a string that
 * is itself escaped JSON. A scheme before the value ("Authorization: Bearer x") goes with it. */
static struct mask named_value(struct str s)
{
    size_t name = run(s, 0, is_word);
    size_t at = name;
    while (at < s.len && (s.p[at] == '"' || s.p[at] == '\'' || s.p[at] == '\\'))
        at++;
    at = skip_spaces(s, at);
    if (at == s.len || (s.p[at] != '=' && s.p[at] != ':') || !redact_name(str_sub(s, 0, name)))
        return (struct mask){ 0 };
    at = skip_spaces(s, at + 1);
    while (at < s.len && s.p[at] == '\\')
        at++;
    if (at < s.len && (s.p[at] == '"' || s.p[at] == '\''))
        return (struct mask){ at + 1, quoted_bytes(s, at + 1, s.p[at]) };

    size_t value = run(s, at, is_value);
    struct str rest = str_sub(s, at, s.len);
    if (starts_ignoring_case(rest, "bearer ") || starts_ignoring_case(rest, "basic ")) {
        size_t credential = skip_spaces(s, at + value);
        value = credential + run(s, credential, is_value) - at;
    }
    return (struct mask){ at, value };
}

/* "Bearer eyJ...", "Basic dXNlcjpwYXNz". Eight characters or more: "basic idea" is prose. */
static struct mask http_credential(struct str s)
{
    size_t scheme = starts_ignoring_case(s, "bearer ")  ? 7
                    : starts_ignoring_case(s, "basic ") ? 6
                                                        : 0;
    if (scheme == 0)
        return (struct mask){ 0 };
    size_t at = skip_spaces(s, scheme);
    size_t value = run(s, at, is_token);
    return (struct mask){ at, value >= 8 ? value : 0 };
}

/* Three base64url parts, the first of which starts with {" in base64. */
static struct mask json_web_token(struct str s)
{
    if (!str_starts(s, STR("eyJ")))
        return (struct mask){ 0 };
    size_t first = run(s, 0, is_word);
    bool dotted = first < s.len && s.p[first] == '.';
    size_t second = dotted ? run(s, first + 1, is_word) : 0;
    return (struct mask){ 0, second ? run(s, 0, is_token) : 0 };
}

/* AKIA or ASIA and 16 capitals or digits. */
static struct mask aws_key_id(struct str s)
{
    size_t n = run(s, 0, char_is_alnum);
    bool id = n == AWS_KEY_ID_BYTES && (str_starts(s, STR("AKIA")) || str_starts(s, STR("ASIA")));
    return (struct mask){ 0, id ? n : 0 };
}

static bool is_base64(char c)
{
    return char_is_alnum(c) || c == '/' || c == '+';
}

/* 40 characters of base64 with nothing else to know them by; asking for all three kinds of
 * character lets hexadecimal digests and plain paths through. */
static struct mask aws_secret_key(struct str s)
{
    size_t n = run(s, 0, is_base64);
    bool upper = false, small = false, digit = false;
    for (size_t i = 0; i < n && n == AWS_SECRET_BYTES; i++) {
        upper |= s.p[i] >= 'A' && s.p[i] <= 'Z';
        small |= s.p[i] >= 'a' && s.p[i] <= 'z';
        digit |= s.p[i] >= '0' && s.p[i] <= '9';
    }
    return (struct mask){ 0, upper && small && digit ? n : 0 };
}

/* From "-----BEGIN ... PRIVATE KEY-----" to the end of the END line, or of the text. */
static struct mask private_key(struct str s)
{
    if (!str_starts(s, STR("-----BEGIN ")))
        return (struct mask){ 0 };
    struct str title = str_sub(s, 0, 64);
    if (!memmem(title.p, title.len, "PRIVATE KEY", 11))
        return (struct mask){ 0 };
    const char *end = memmem(s.p, s.len, "-----END", 8);
    size_t at = end ? (size_t)(end - s.p) + 8 : s.len;
    const char *close = at < s.len ? memmem(s.p + at, s.len - at, "-----", 5) : NULL;
    return (struct mask){ 0, close ? (size_t)(close - s.p) + 5 : s.len };
}

/* "://user:password@host": only the password. */
static struct mask url_password(struct str s)
{
    if (!str_starts(s, STR("://")))
        return (struct mask){ 0 };
    size_t colon = 0;
    for (size_t i = 3; i < s.len && is_value(s.p[i]) && s.p[i] != '/'; i++) {
        if (s.p[i] == ':' && colon == 0)
            colon = i;
        if (s.p[i] == '@')
            return colon ? (struct mask){ colon + 1, i - colon - 1 } : (struct mask){ 0 };
    }
    return (struct mask){ 0 };
}

static struct mask recognise(struct str s, char before)
{
    static const struct {
        struct mask (*what)(struct str);
        bool (*word)(char); /* asked where a run of these begins */
    } recognisers[] = {
        { http_credential, is_word },  { json_web_token, is_word }, { aws_key_id, char_is_alnum },
        { aws_secret_key, is_base64 }, { named_value, is_word },
    };
    if (s.p[0] == ':')
        return url_password(s);
    struct mask m = s.p[0] == '-' ? private_key(s) : (struct mask){ 0 };
    for (size_t i = 0; i < KV_COUNT_OF(recognisers) && m.hide == 0; i++) {
        if (recognisers[i].word(s.p[0]) && !recognisers[i].word(before))
            m = recognisers[i].what(s);
    }
    return m;
}

void redact_text(struct str text, size_t bytes_max, struct buf *out)
{
    size_t end = out->len + bytes_max;
    char before = ' ';
    for (size_t i = 0; i < text.len && out->len <= end;) {
        struct str rest = str_sub(text, i, text.len);
        struct mask m = recognise(rest, before);
        size_t copy = m.hide || m.copy ? m.copy : 1;
        buf_add(out, str_sub(rest, 0, copy));
        if (m.hide)
            buf_addz(out, REDACTED);
        i += copy + m.hide;
        before = text.p[i - 1];
    }
}
