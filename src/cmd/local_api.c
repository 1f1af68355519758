#include "cmd/local_api.h"

int local_api_path(const char *endpoint, struct buf *out, struct err *err)
{
    struct str text = str_of(endpoint), scheme = STR("unix://");
    if (str_starts(text, scheme))
        text = str_sub(text, scheme.len, text.len);
    if (!text.len || text.p[0] != '/')
        return err_set(err, ERR_INVALID, "%s: expected unix:// and an absolute path",
                       STR_SHOWN(str_of(endpoint)));
    buf_add(out, text);
    return 0;
}

bool local_api_is_default(const char *endpoint)
{
    return strcmp(endpoint, LOCAL_API_DEFAULT) == 0;
}
