/* cmd/image_setup.h - the flags about images and registries, and what they set up. */
#pragma once

#include "cmd/command.h"
#include "cmd/types_load.h"
#include "compat/service.h"
#include "store/informer.h"

extern const char *const set_combine_choices[],
    *const rule_combine_choices[], *const version_choices[],
                                       *const image_choices[], *const resolve_choices[],
                                                                   *const unknown_choices[],
                                                                       *const unobserved_choices[],
                                                                           *const nfg_choices[];

/* How registries are talked to. */
#define REGISTRY_FLAGS                                                                             \
    { .name = "plain-http",                                                                        \
      .value = "HOST",                                                                             \
      .help = "a registry that is spoken to without TLS (HOST or HOST:PORT; '*': all of them)",    \
      .many = true },                                                                              \
        { .name = "registry-ca",                                                                   \
          .value = "PATH",                                                                         \
          .help = "authorities that registries are believed by, beside the system's (PEM)",        \
          .files = true },                                                                         \
        { .name = "registry-config",                                                               \
          .value = "PATH",                                                                         \
          .help = "credentials for registries: a docker config.json",                              \
          .files = true },                                                                         \
        { .name = "allowed-registries",                                                            \
          .value = "HOST",                                                                         \
          .help = "talk to no other hosts (globs); without it to all but link-local ones",         \
          .many = true },                                                                          \
    {                                                                                              \
        .name = "registry-mirror", .value = "NAME=HOST",                                           \
        .help = "ask this host for images of that registry", .many = true                          \
    }

/* What an image's specs mean. */
#define IMAGE_RULE_FLAGS                                                                           \
    { .name = "set-combine",                                                                       \
      .value = "HOW",                                                                              \
      .help = "of an image's compatibility sets a node must match all, or any",                    \
      .dflt = "all",                                                                               \
      .choices = set_combine_choices },                                                            \
        { .name = "rule-combine",                                                                  \
          .value = "HOW",                                                                          \
          .help = "and of a set's rules any, as NodeFeatureGroups do, or all",                     \
          .dflt = "any",                                                                           \
          .choices = rule_combine_choices },                                                       \
        { .name = "version-parsing",                                                               \
          .value = "HOW",                                                                          \
          .help = "versions with what NFD refuses in them: read up to there, or an error",         \
          .dflt = "lenient",                                                                       \
          .choices = version_choices },                                                            \
    {                                                                                              \
        .name = "image-tags", .value = "TAG", .help = "only sets with one of these tags count",    \
        .many = true                                                                               \
    }

/* What follows from it. */
#define IMAGE_POLICY_FLAGS(mode_, on_error_)                                                       \
    { .name = "image-compatibility",                                                               \
      .value = "MODE",                                                                             \
      .help = "keep pods off nodes that their images cannot run on: by architecture and "          \
              "artifacts, by architecture alone, or not at all",                                   \
      .dflt = mode_,                                                                               \
      .choices = image_choices },                                                                  \
        { .name = "on-resolve-error",                                                              \
          .value = "POLICY",                                                                       \
          .help = "an image that cannot be looked up fits no node, or every one",                  \
          .dflt = on_error_,                                                                       \
          .choices = resolve_choices },                                                            \
    {                                                                                              \
        .name = "unknown-features", .value = "POLICY",                                             \
        .help = "machines of which it is not known whether they fit: last, like others, never",    \
        .dflt = "prefer-known", .choices = unknown_choices                                         \
    }

/* Whose artifacts may spend money: of who launches, and of who shows what would be launched. */
#define IMAGE_LAUNCH_FLAGS                                                                         \
    {                                                                                              \
        .name = "launch-repositories", .value = "PATTERN",                                         \
        .help = "repositories whose artifacts may decide what is launched: HOST/PATH, '*' in "     \
                "a part",                                                                          \
        .many = true                                                                               \
    }

/* The service behind the controller and the extender. */
#define IMAGE_SERVICE_FLAGS(mode_, on_error_)                                                      \
    REGISTRY_FLAGS, IMAGE_RULE_FLAGS, IMAGE_POLICY_FLAGS(mode_, on_error_),                        \
        { .name = "unobserved-node",                                                               \
          .value = "POLICY",                                                                       \
          .help = "a node without NodeFeatures yet: judged by its instance type, or refused",      \
          .dflt = "predict",                                                                       \
          .choices = unobserved_choices },                                                         \
        { .name = "pull-secrets",                                                                  \
          .value = "BOOL",                                                                         \
          .help = "use the pull secrets of pods (needs the right to get secrets)",                 \
          .dflt = "false",                                                                         \
          .choices = bool_choices },                                                               \
        { .name = "cache-enabled",                                                                 \
          .value = "BOOL",                                                                         \
          .help = "remember what registries said",                                                 \
          .dflt = "true",                                                                          \
          .choices = bool_choices },                                                               \
        { .name = "cache-ttl-seconds",                                                             \
          .value = "SECONDS",                                                                      \
          .help = "look at a tag again after so long; 0: 300, and 60 for 'latest'",                \
          .dflt = "0" },                                                                           \
        { .name = "stale-max-seconds",                                                             \
          .value = "SECONDS",                                                                      \
          .help = "go on with what a registry said while it does not answer, for so long",         \
          .dflt = "86400" },                                                                       \
        { .name = "max-cache-size",                                                                \
          .value = "COUNT",                                                                        \
          .help = "images remembered, at most",                                                    \
          .dflt = "10000" },                                                                       \
        { .name = "max-nfgs-per-image",                                                            \
          .value = "COUNT",                                                                        \
          .help = "sets that an image may have, at most",                                          \
          .dflt = "64" },                                                                          \
        { .name = "nfg-mode",                                                                      \
          .value = "MODE",                                                                         \
          .help = "NodeFeatureGroups for images: none, for others to see, or with a say",          \
          .dflt = "off",                                                                           \
          .choices = nfg_choices },                                                                \
        { .name = "nfg-idle-seconds",                                                              \
          .value = "SECONDS",                                                                      \
          .help = "a group that nobody needs is deleted after so long",                            \
          .dflt = "3600" },                                                                        \
    {                                                                                              \
        .name = "nfd-namespace", .value = "NAME", .help = "of nfd-master; else found by its pods", \
        .dflt = ""                                                                                 \
    }

struct image_feed {
    const struct kind *kind;
    const char *fields, *labels; /* selectors; NULL: all */
};
#define IMAGE_FEEDS_MAX 6

struct image_setup {
    struct arena arena; /* texts of the settings */
    struct registry *maybe_registry;
    const struct keyring *maybe_keys;
    struct compat_settings settings;
    struct image_source_registry source;
    struct compat_service *maybe_service;
    struct informer *informers[IMAGE_FEEDS_MAX];
    struct informer_set *maybe_informers;
};

/* Reads what of these flags the command has. An enum exit_code; what is wrong is said on stderr. */
int image_setup_read(struct image_setup *setup, const struct invocation *inv);
/* The client, and where images are asked for. */
int image_setup_registry(struct image_setup *setup, const struct invocation *inv,
                         const struct clock *clock, struct metrics *maybe_metrics, struct log *log);
/* Is --image-compatibility anything but off? */
bool image_setup_wanted(const struct invocation *inv);

struct image_service_options {
    const struct store *store;
    const struct clock *clock;
    struct metrics *maybe_metrics;
    struct log *maybe_log;
    void (*on_change)(void *ctx);
    void *ctx;
};
/* The registry must be there. */
int image_setup_service(struct image_setup *setup, struct image_service_options options,
                        struct err *err);
/* Informers that tell the service, on a thread of their own. */
void image_setup_feed(struct image_setup *setup, const struct image_service_options *options,
                      const struct image_feed *feeds, uint32_t count);
bool image_setup_synced(struct image_setup *setup); /* all of them have been read once */
/* What keeps one of them from being read; false: nothing does. */
bool image_setup_trouble(struct image_setup *setup, struct err *out);
/* In two steps: nothing is asked any more and nobody tells the service; then it goes. */
void image_setup_cancel(struct image_setup *setup);
void image_setup_done(struct image_setup *setup);
