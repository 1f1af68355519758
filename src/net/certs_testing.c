#include "net/certs_testing.h"

#include <stdatomic.h>
#include <time.h>

#define MUST(call) KV_ASSERT((call) >= 0)

static struct str pem_of(const gnutls_datum_t *pem)
{
    struct str s = { (const char *)pem->data, pem->size };
    return (struct str){ str_dup(s), s.len };
}

struct cert *cert_new(struct cert_options options)
{
    static atomic_uint serial;
    struct cert *cert = kv_calloc(1, sizeof *cert);
    uint32_t number = atomic_fetch_add(&serial, 1) + 1;
    time_t now = time(NULL), day = 86400;
    gnutls_datum_t pem;

    MUST(gnutls_x509_privkey_init(&cert->key));
    MUST(gnutls_x509_privkey_generate(cert->key, GNUTLS_PK_ECDSA,
                                      GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0));
    MUST(gnutls_x509_crt_init(&cert->crt));
    MUST(gnutls_x509_crt_set_version(cert->crt, 3));
    MUST(gnutls_x509_crt_set_serial(cert->crt, &number, sizeof number));
    MUST(gnutls_x509_crt_set_activation_time(cert->crt, now - 10 * day));
    MUST(gnutls_x509_crt_set_expiration_time(cert->crt, options.expired ? now - day : now + day));
    MUST(gnutls_x509_crt_set_dn_by_oid(cert->crt, GNUTLS_OID_X520_COMMON_NAME, 0, options.name,
                                       (unsigned)strlen(options.name)));
    MUST(gnutls_x509_crt_set_basic_constraints(cert->crt, options.authority, -1));
    MUST(gnutls_x509_crt_set_key_usage(
        cert->crt, options.authority ? GNUTLS_KEY_KEY_CERT_SIGN : GNUTLS_KEY_DIGITAL_SIGNATURE));
    if (options.dns)
        MUST(gnutls_x509_crt_set_subject_alt_name(cert->crt, GNUTLS_SAN_DNSNAME, options.dns,
                                                  (unsigned)strlen(options.dns),
                                                  GNUTLS_FSAN_APPEND));
    if (options.loopback)
        MUST(gnutls_x509_crt_set_subject_alt_name(cert->crt, GNUTLS_SAN_IPADDRESS, "\x7f\0\0\1", 4,
                                                  GNUTLS_FSAN_APPEND));
    MUST(gnutls_x509_crt_set_key(cert->crt, cert->key));
    MUST(gnutls_x509_crt_sign2(cert->crt, options.issuer ? options.issuer->crt : cert->crt,
                               options.issuer ? options.issuer->key : cert->key, GNUTLS_DIG_SHA256,
                               0));

    MUST(gnutls_x509_crt_export2(cert->crt, GNUTLS_X509_FMT_PEM, &pem));
    cert->cert_pem = pem_of(&pem);
    gnutls_free(pem.data);
    MUST(gnutls_x509_privkey_export2_pkcs8(cert->key, GNUTLS_X509_FMT_PEM, NULL, GNUTLS_PKCS_PLAIN,
                                           &pem));
    cert->key_pem = pem_of(&pem);
    gnutls_free(pem.data);
    return cert;
}

void cert_free(struct cert *cert)
{
    if (!cert)
        return;
    gnutls_x509_crt_deinit(cert->crt);
    gnutls_x509_privkey_deinit(cert->key);
    free((char *)cert->cert_pem.p);
    free((char *)cert->key_pem.p);
    free(cert);
}
