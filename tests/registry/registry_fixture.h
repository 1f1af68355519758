/* tests/registry/registry_fixture.h - a real OCI registry for test programs.
 *
 *     struct registry_fixture *f = registry_fixture(REGISTRY_OPEN);
 *     registry_fixture_image(f, "team/app", "1", "arm64");
 *
 * One of each kind for the program, started by the first test that asks and stopped when the program ends.
 * A test that finds no way to start it is skipped, with the reason, and fails in CI. registry.sh does the
 * work.
 */
#pragma once

#include "compat/image.h"
#include "net/digest.h"
#include "support/test.h"

enum registry_kind {
    REGISTRY_OPEN,
    REGISTRY_PRIVATE, /* for REGISTRY_USER alone */
};
#define REGISTRY_USER "me"
#define REGISTRY_PASSWORD "pass:word"

struct registry_fixture {
    enum registry_kind kind;
    char dir[64];
    char host[32]; /* "127.0.0.1:PORT" */
    bool running;
    bool halted;                      /* until it is asked for again */
    const struct keyring *maybe_keys; /* for the private one */
};

struct registry_fixture *registry_fixture(enum registry_kind kind);
/* It ends, and comes back as it was, at the same address. */
void registry_fixture_halt(struct registry_fixture *f);
void registry_fixture_resume(struct registry_fixture *f);
/* With plain HTTP to it. The caller's. */
struct registry *registry_fixture_client(struct registry_fixture *f);
struct reference registry_fixture_reference(struct registry_fixture *f, struct arena *arena,
                                            const char *name); /* "team/app:1" */

/* Push; what fails ends the test. `out` gets the digest. */
void registry_fixture_image(struct registry_fixture *f, struct registry *r, const char *repository,
                            const char *maybe_tag, const char *architecture,
                            char out[DIGEST_TEXT_MAX]);
/* An index of two images, for amd64 and arm64. */
void registry_fixture_index(struct registry_fixture *f, struct registry *r, const char *repository,
                            const char *tag, char amd64[DIGEST_TEXT_MAX],
                            char arm64[DIGEST_TEXT_MAX], char out[DIGEST_TEXT_MAX]);
/* A spec for what `subject` names; by the referrers tag too, as this registry has no API. */
void registry_fixture_attach(struct registry_fixture *f, struct registry *r, const char *repository,
                             const char *subject, const char *spec, int64_t created_us,
                             char out[DIGEST_TEXT_MAX]);
