/* See registry_fixture.h. Whatever becomes of this program, registry.sh ends a registry whose owner is gone. */
#include "registry/registry_fixture.h"

#include "compat/registry_inner.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#define SCRIPT "tests/registry/registry.sh"
#define CANNOT 3 /* its exit status where the machine lacks something */
/* bcrypt of the password, at its lowest cost. */
#define HTPASSWD REGISTRY_USER ":$2y$05$abcdefghijklmnopqrstuuDIEddBSuRWBBEY6g5zv60IAP5bSSfki"

static struct registry_fixture fixtures[] = { { .kind = REGISTRY_OPEN },
                                              { .kind = REGISTRY_PRIVATE } };

/* --- the script --- */

/* What it prints is added to `out`; its complaints go where ours go. Its exit status. */
static int script(struct buf *out, const char *task, const char *dir, const char *maybe_more)
{
    int ends[2];
    pid_t child;
    posix_spawn_file_actions_t actions;
    const char *args[] = { SCRIPT, task, dir, maybe_more, NULL };
    char chunk[256];
    if (pipe2(ends, O_CLOEXEC) < 0)
        fail_msg("pipe: %s", strerror(errno));
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    int failed = posix_spawn(&child, SCRIPT, &actions, NULL, (char *const *)args, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    if (failed) {
        close(ends[0]);
        fail_msg("%s: %s (tests run in the root of the source)", SCRIPT, strerror(failed));
    }
    for (ssize_t n; (n = read(ends[0], chunk, sizeof chunk)) > 0;)
        buf_add(out, (struct str){ chunk, (size_t)n });
    close(ends[0]);
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void stop_all(void)
{
    for (size_t i = 0; i < KV_COUNT_OF(fixtures); i++) {
        struct registry_fixture *f = &fixtures[i];
        AUTO_BUF said = { 0 };
        keyring_unref(take(&f->maybe_keys));
        if (f->running && script(&said, "stop", f->dir, NULL) != 0)
            _exit(1); /* something is left behind: the program fails, whatever its tests said */
        f->running = false;
    }
}

static const struct keyring *keys_for(const struct registry_fixture *f)
{
    const struct keyring *ring = NULL;
    AUTO_BUF text = { 0 };
    struct err err = { 0 };
    buf_addf(&text,
             "{\"auths\":{\"%s\":{\"username\":\"" REGISTRY_USER
             "\",\"password\":\"" REGISTRY_PASSWORD "\"}}}",
             f->host);
    EXPECT_OK(keyring_read("fixture", buf_str(&text), KEYRING_CONFIG, &ring, NULL, &err), err);
    return ring;
}

struct registry_fixture *registry_fixture(enum registry_kind kind)
{
    struct registry_fixture *f = &fixtures[kind];
    AUTO_BUF said = { 0 };
    char owner[16];
    if (f->halted)
        registry_fixture_resume(f); /* a test halted it, and failed */
    if (f->running)
        return f;
    if (!fixtures[0].running && !fixtures[1].running)
        atexit(stop_all);
    snprintf(owner, sizeof owner, "%d", getpid());
    setenv("KARVE_OWNER", owner, 1);
    setenv("no_proxy", "*", 1); /* whatever this machine's environment says */
    snprintf(f->dir, sizeof f->dir, "/tmp/karve-registry.%d.%d", getpid(), (int)kind);
    int status = script(&said, "start", f->dir, kind == REGISTRY_PRIVATE ? HTPASSWD : NULL);
    if (status == CANNOT)
        SKIP("there is no docker-registry, and it cannot be fetched");
    if (status != 0)
        fail_msg("%s start: exit status %d", SCRIPT, status);
    f->running = true;
    snprintf(f->host, sizeof f->host, "127.0.0.1:%.*s", STR_ARG(str_trim(buf_str(&said))));
    if (kind == REGISTRY_PRIVATE)
        f->maybe_keys = keys_for(f);
    return f;
}

static void script_must(const char *task, const struct registry_fixture *f)
{
    AUTO_BUF said = { 0 };
    int status = script(&said, task, f->dir, NULL);
    if (status != 0)
        fail_msg("%s %s: exit status %d", SCRIPT, task, status);
}

void registry_fixture_halt(struct registry_fixture *f)
{
    f->halted = true;
    script_must("halt", f);
}

void registry_fixture_resume(struct registry_fixture *f)
{
    script_must("resume", f);
    f->halted = false;
}

struct registry *registry_fixture_client(struct registry_fixture *f)
{
    struct registry *r = NULL;
    struct err err = { 0 };
    struct str host = str_of(f->host);
    EXPECT_OK(
        registry_new((struct registry_options){ .clock = clock_real(), .plain_http = { &host, 1 } },
                     &r, &err),
        err);
    return r;
}

struct reference registry_fixture_reference(struct registry_fixture *f, struct arena *arena,
                                            const char *name)
{
    struct reference ref;
    struct err err = { 0 };
    EXPECT_OK(reference_parse(arena, arena_strf(arena, "%s/%s", f->host, name), &ref, &err), err);
    return ref;
}

/* --- pushing --- */

static void push_blob(struct registry_fixture *f, struct registry *r, const struct reference *ref,
                      struct str bytes, char out[DIGEST_TEXT_MAX])
{
    struct err err = { 0 };
    EXPECT_OK(digest_text(DIGEST_SHA256, bytes, out, &err), err);
    EXPECT_OK(registry_push_blob(r, ref, f->maybe_keys, str_of(out), bytes, &err), err);
}

static void push_manifest(struct registry_fixture *f, struct registry *r,
                          const struct reference *ref, const char *maybe_tag,
                          const char *media_type, struct str text, char out[DIGEST_TEXT_MAX])
{
    struct err err = { 0 };
    bool has_referrers = true;
    EXPECT_OK(digest_text(DIGEST_SHA256, text, out, &err), err);
    EXPECT_OK(registry_push_manifest(r, ref, f->maybe_keys, str_of(maybe_tag ? maybe_tag : out),
                                     str_of(media_type), text, &has_referrers, &err),
              err);
    EXPECT_FALSE(has_referrers);
}

void registry_fixture_image(struct registry_fixture *f, struct registry *r, const char *repository,
                            const char *maybe_tag, const char *architecture,
                            char out[DIGEST_TEXT_MAX])
{
    AUTO_ARENA arena = { 0 };
    char config[DIGEST_TEXT_MAX];
    struct reference ref = registry_fixture_reference(f, &arena, repository);
    struct str text = arena_strf(&arena,
                                 "{\"architecture\":\"%s\",\"os\":\"linux\",\"rootfs\":{\"type\":"
                                 "\"layers\",\"diff_ids\":[]},\"of\":\"%s:%s\"}",
                                 architecture, repository, maybe_tag ? maybe_tag : "");
    push_blob(f, r, &ref, text, config);
    push_manifest(f, r, &ref, maybe_tag, MEDIA_OCI_MANIFEST,
                  arena_strf(&arena,
                             "{\"schemaVersion\":2,\"mediaType\":\"" MEDIA_OCI_MANIFEST
                             "\",\"config\":{\"mediaType\":"
                             "\"application/vnd.oci.image.config.v1+json\",\"digest\":\"%s\","
                             "\"size\":%zu},\"layers\":[]}",
                             config, text.len),
                  out);
}

void registry_fixture_index(struct registry_fixture *f, struct registry *r, const char *repository,
                            const char *tag, char amd64[DIGEST_TEXT_MAX],
                            char arm64[DIGEST_TEXT_MAX], char out[DIGEST_TEXT_MAX])
{
    AUTO_ARENA arena = { 0 };
    struct reference ref = registry_fixture_reference(f, &arena, repository);
    registry_fixture_image(f, r, repository, NULL, "amd64", amd64);
    registry_fixture_image(f, r, repository, NULL, "arm64", arm64);
    push_manifest(f, r, &ref, tag, MEDIA_OCI_INDEX,
                  arena_strf(&arena,
                             "{\"schemaVersion\":2,\"mediaType\":\"" MEDIA_OCI_INDEX
                             "\",\"manifests\":[{\"mediaType\":\"" MEDIA_OCI_MANIFEST
                             "\",\"digest\":\"%s\",\"size\":300,\"platform\":{\"os\":\"linux\","
                             "\"architecture\":\"amd64\"}},{\"mediaType\":\"" MEDIA_OCI_MANIFEST
                             "\",\"digest\":\"%s\",\"size\":300,\"platform\":{\"os\":\"linux\","
                             "\"architecture\":\"arm64\"}}]}",
                             amd64, arm64),
                  out);
}

void registry_fixture_attach(struct registry_fixture *f, struct registry *r, const char *repository,
                             const char *subject, const char *spec, int64_t created_us,
                             char out[DIGEST_TEXT_MAX])
{
    AUTO_ARENA arena = { 0 };
    AUTO_BUF text = { 0 };
    AUTO_BUF tag = { 0 };
    AUTO_BUF index = { 0 };
    char digest[DIGEST_TEXT_MAX];
    struct oci_manifest manifest;
    struct descriptor self;
    struct str before = STR_NONE;
    struct err err = { 0 };
    struct reference ref = registry_fixture_reference(f, &arena, repository);
    struct reference by_tag = ref, of_subject = ref;
    of_subject.digest = str_of(subject);
    EXPECT_OK(
        registry_manifest(r, &of_subject, f->maybe_keys, &arena, &manifest, NULL, &self, &err),
        err);
    push_blob(f, r, &ref, STR("{}"), digest);
    push_blob(f, r, &ref, str_of(spec), digest);
    artifact_manifest_write(&self, str_of(digest), strlen(spec), created_us, &text);
    push_manifest(f, r, &ref, NULL, MEDIA_OCI_MANIFEST, buf_str(&text), out);

    referrers_tag(str_of(subject), &tag);
    by_tag.tag = buf_str(&tag);
    if (registry_manifest(r, &by_tag, f->maybe_keys, &arena, &manifest, &before, NULL, &err) < 0)
        EXPECT_EQ(err.kind, ERR_NOT_FOUND);
    struct descriptor artifact = { .media_type = STR(MEDIA_OCI_MANIFEST),
                                   .digest = str_of(out),
                                   .size = (int64_t)text.len,
                                   .artifact_type = STR(COMPAT_ARTIFACT_TYPE),
                                   .created_us = created_us };
    EXPECT_OK(referrers_index_write(tag.p, before, &artifact, &index, &err), err);
    push_manifest(f, r, &ref, tag.p, MEDIA_OCI_INDEX, buf_str(&index), digest);
}
