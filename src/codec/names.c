/* The syntax rules of names: small enough to check by hand, and checked for every label of every
 * object, so without regular expressions. */
#include "codec/selector.h"

#define NAME_BYTES_MAX 63
#define SUBDOMAIN_BYTES_MAX 253

static bool is_lower_alnum(char c)
{
    return (c >= 'a' && c <= 'z') || char_is_digit(c);
}

/* Letters, digits, '-', '_' and '.', a letter or digit at both ends. */
static bool is_name(struct str s)
{
    if (s.len == 0 || !char_is_alnum(s.p[0]) || !char_is_alnum(s.p[s.len - 1]))
        return false;
    for (size_t i = 0; i < s.len; i++) {
        char c = s.p[i];
        if (!char_is_alnum(c) && c != '-' && c != '_' && c != '.')
            return false;
    }
    return true;
}

/* Lower-case letters, digits and '-', a letter or digit at both ends. */
static bool is_dns_label(struct str s)
{
    if (s.len == 0 || !is_lower_alnum(s.p[0]) || !is_lower_alnum(s.p[s.len - 1]))
        return false;
    for (size_t i = 0; i < s.len; i++) {
        if (!is_lower_alnum(s.p[i]) && s.p[i] != '-')
            return false;
    }
    return true;
}

static bool is_dns_subdomain(struct str s)
{
    struct str label, rest = s;
    bool more;
    do {
        more = str_cut(rest, '.', &label, &rest);
        if (!is_dns_label(label))
            return false;
    } while (more);
    return true;
}

const char *label_key_problem(struct str key)
{
    struct str prefix, name;
    if (!str_cut(key, '/', &prefix, &name)) {
        name = key;
    } else if (prefix.len == 0) {
        return "must have a prefix before its '/'";
    } else if (prefix.len > SUBDOMAIN_BYTES_MAX) {
        return "must have a prefix of at most 253 characters";
    } else if (!is_dns_subdomain(prefix)) {
        return "must have a DNS name as its prefix: lower-case letters, digits, '-' and '.', with "
               "a letter or digit at both ends of each part (example.com/name)";
    } else if (str_find(name, '/') >= 0) {
        return "must have at most one '/'";
    }
    if (name.len == 0)
        return prefix.len && name.p ? "must have a name after its '/'" : "must not be empty";
    if (name.len > NAME_BYTES_MAX)
        return "must have a name of at most 63 characters";
    if (!is_name(name))
        return "must have a name of letters, digits, '-', '_' and '.', with a letter or digit at "
               "both ends";
    return NULL;
}

const char *label_value_problem(struct str value)
{
    if (value.len > NAME_BYTES_MAX)
        return "must be at most 63 characters";
    if (value.len && !is_name(value))
        return "must be empty or letters, digits, '-', '_' and '.', with a letter or digit at both "
               "ends";
    return NULL;
}

const char *dns1123_label_problem(struct str s)
{
    if (s.len == 0)
        return "must not be empty";
    if (s.len > NAME_BYTES_MAX)
        return "must be at most 63 characters";
    if (!is_dns_label(s))
        return "must be lower-case letters, digits and '-', with a letter or digit at both ends";
    return NULL;
}

const char *dns1123_subdomain_problem(struct str s)
{
    if (s.len == 0)
        return "must not be empty";
    if (s.len > SUBDOMAIN_BYTES_MAX)
        return "must be at most 253 characters";
    if (!is_dns_subdomain(s))
        return "must be lower-case letters, digits, '-' and '.', with a letter or digit at both "
               "ends of each part between dots";
    return NULL;
}
