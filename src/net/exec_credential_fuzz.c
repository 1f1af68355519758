/* Any bytes as a plugin's answer: refused, or a credential that can be used. */
#include "net/exec_credential.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO_ARENA arena = { 0 };
    struct exec_credential c;
    struct err err = { 0 };
    struct str text = { (const char *)data, size };
    if (exec_credential_decode(text, STR("client.authentication.k8s.io/v1"), &arena, &c, &err) <
        0) {
        KV_ASSERT(err.kind == ERR_INVALID);
        KV_ASSERT(err.text[0] != '\0');
        return 0;
    }
    KV_ASSERT(c.token.len > 0 || c.cert_pem.len > 0);
    KV_ASSERT((c.cert_pem.len > 0) == (c.key_pem.len > 0));
    for (size_t i = 0; i < c.token.len; i++)
        KV_ASSERT((unsigned char)c.token.p[i] > ' ');
    return 0;
}
