/* Two bytes of status code, then a body: whatever it is, it becomes an error whose text is fit for a
 * terminal. */
#include "store/kube_client.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct err err = { 0 };
    bool budget;

    if (size < 2)
        return 0;
    struct str body = { (const char *)data + 2, size - 2 };
    KV_ASSERT(kube_refusal((data[0] << 8 | data[1]) % 1000, body, &budget, &err) < 0);
    KV_ASSERT(err.kind != ERR_NONE);
    KV_ASSERT(err.text[0] != '\0');
    KV_ASSERT(str_is_utf8(str_of(err.text)));
    for (const char *c = err.text; *c; c++)
        KV_ASSERT((unsigned char)*c >= ' ' && *c != 0x7f);
    return 0;
}
