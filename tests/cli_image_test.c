/* `karve image` as a user runs it, on a real registry. */
#include "cli_testing.h"

#include "codec/json.h"
#include "compat/registry_testing.h"
#include "registry/registry_fixture.h"

#define NEEDS(flag)                                                                                \
    "version: v1alpha1\n"                                                                          \
    "compatibilities:\n"                                                                           \
    "- tag: fast\n"                                                                                \
    "  weight: 80\n"                                                                               \
    "  description: needs " flag "\n"                                                              \
    "  rules:\n"                                                                                   \
    "  - name: vectors\n"                                                                          \
    "    matchFeatures:\n"                                                                         \
    "    - feature: cpu.cpuid\n"                                                                   \
    "      matchExpressions:\n"                                                                    \
    "        " flag ": {op: Exists}\n"

#define KERNEL                                                                                     \
    "version: v1alpha1\n"                                                                          \
    "compatibilities:\n"                                                                           \
    "- rules:\n"                                                                                   \
    "  - name: recent\n"                                                                           \
    "    matchFeatures:\n"                                                                         \
    "    - feature: kernel.version\n"                                                              \
    "      matchExpressions:\n"                                                                    \
    "        full: {op: Ge, value: ['5.10'], type: version}\n"

struct bench {
    struct registry_fixture *f;
    struct registry *r;
};

static void bench_done(struct bench *b)
{
    registry_free(b->r);
}
#define BENCH __attribute__((cleanup(bench_done))) struct bench

static struct bench bench_new(void)
{
    struct bench b = { .f = registry_fixture(REGISTRY_OPEN) };
    b.r = registry_fixture_client(b.f);
    return b;
}

/* `karve image VERB HOST/NAME FLAGS`, with `input` on standard input. */
static struct result image(struct bench *b, const char *verb, const char *name, const char *flags,
                           const char *input)
{
    AUTO_BUF command = { 0 };
    buf_addf(&command, "karve image %s %s/%s --plain-http %s %s", verb, b->f->host, name,
             b->f->host, flags);
    return sh(command.p, str_of(input));
}

#define EXPECT_SAYS(buf, part) EXPECT_HAS(buf_str(&(buf)), (part))
#define EXPECT_LACKS(buf, part) EXPECT_FALSE(strstr((buf).p ? (buf).p : "", (part)))

static struct doc read_json(const struct result *r)
{
    struct doc doc = { 0 };
    struct err err = { 0 };
    EXPECT_OK(json_read(buf_str(&r->out), &doc, &err), err);
    return doc;
}
#define JSON_DOC __attribute__((cleanup(doc_done))) struct doc

static void push(struct bench *b, const char *name, const char *flags, const char *spec)
{
    AUTO_BUF all = { 0 };
    buf_addf(&all, "-f - %s", flags);
    AUTO_RESULT r = image(b, "push", name, all.p, spec);
    if (r.code != 0)
        fail_msg("push: %d: %s", r.code, r.err.p);
}

/* --- usage --- */

TEST(a_verb_that_is_not_there_is_told_with_the_one_that_was_meant)
{
    AUTO_RESULT near = karve("image inspct nginx");
    EXPECT_EQ(near.code, 2);
    EXPECT_SAYS(near.err, "did you mean 'inspect'?");
    AUTO_RESULT far = karve("image frobnicate nginx");
    EXPECT_EQ(far.code, 2);
    EXPECT_SAYS(far.err, "'inspect', 'check' and 'push'");
    AUTO_RESULT none = karve("image");
    EXPECT_EQ(none.code, 2);
    AUTO_RESULT nothing = karve("image check");
    EXPECT_EQ(nothing.code, 2);
    EXPECT_SAYS(nothing.err, "expected an image");
    AUTO_RESULT more = karve("image check a b");
    EXPECT_EQ(more.code, 2);
    EXPECT_SAYS(more.err, "unexpected argument \"b\"");
}

TEST(a_flag_of_another_verb_and_two_targets_at_once_are_wrong_usage)
{
    static const char *const wrong[] = {
        "image inspect nginx --all",
        "image inspect nginx -f spec.yaml",
        "image push nginx -f spec.yaml --node n",
        "image check nginx --dry-run",
        "image check nginx --node n --instance-type m7i.large",
        "image check nginx --nodepool p --instance-type m7i.large",
        "image check nginx --instance-type m7i.lorge",
        "image check nginx -f examples/shop --nodepool genral",
        "image check nginx -f examples/shop --context c",
        "image push nginx",
        "image push nginx -f a -f b",
        "image inspect Nginx",
        "image inspect 'a b'",
    };
    for (size_t i = 0; i < KV_COUNT_OF(wrong); i++) {
        AUTO_RESULT r = karve(wrong[i]);
        if (r.code != 2 || r.out.len)
            fail_msg("%s: %d, %s", wrong[i], r.code, r.err.p);
    }
}

TEST(an_unknown_instance_type_is_told_with_the_one_that_was_meant)
{
    AUTO_RESULT r = karve("image check nginx --instance-type m7i.lrge");
    EXPECT_EQ(r.code, 2);
    EXPECT_SAYS(r.err, "did you mean \"m7i.large\"?");
}

TEST(a_registry_that_does_not_answer_is_exit_code_3)
{
    AUTO_RESULT r = karve("image inspect 127.0.0.1:1/app:1 --plain-http '*'");
    EXPECT_EQ(r.code, 3);
    EXPECT_SAYS(r.err, "127.0.0.1:1");
    EXPECT_EQ(r.out.len, 0);
}

TEST(a_host_that_is_not_allowed_is_not_asked)
{
    AUTO_RESULT r = karve("image inspect 127.0.0.1:1/app:1 --allowed-registries registry.example");
    EXPECT_EQ(r.code, 3);
    EXPECT_SAYS(r.err, "allowed");
}

TEST(an_image_that_the_registry_does_not_have_is_exit_code_1_for_every_verb)
{
    BENCH b = bench_new();
    AUTO_RESULT inspect = image(&b, "inspect", "cli/none:1", "", "");
    EXPECT_EQ(inspect.code, 1);
    EXPECT_SAYS(inspect.err, "cli/none");
    AUTO_RESULT check = image(&b, "check", "cli/none:1", "--instance-type m7i.large", "");
    EXPECT_EQ(check.code, 1);
    AUTO_RESULT pushed = image(&b, "push", "cli/none:1", "-f -", NEEDS("AVX512F"));
    EXPECT_EQ(pushed.code, 1);
}

/* --- inspect --- */

TEST(inspect_shows_the_platforms_of_an_index_and_that_no_spec_is_attached)
{
    BENCH b = bench_new();
    char amd64[DIGEST_TEXT_MAX], arm64[DIGEST_TEXT_MAX], index[DIGEST_TEXT_MAX];
    registry_fixture_index(b.f, b.r, "cli/bare", "1", amd64, arm64, index);

    AUTO_RESULT r = image(&b, "inspect", "cli/bare:1", "", "");
    EXPECT_EQ(r.code, 0);
    EXPECT_SAYS(r.out, index);
    EXPECT_SAYS(r.out, amd64);
    EXPECT_SAYS(r.out, arm64);
    EXPECT_SAYS(r.out, "linux/arm64");
    EXPECT_SAYS(r.out, "no compatibility spec is attached");

    AUTO_RESULT json = image(&b, "inspect", "cli/bare:1", "-o json", "");
    EXPECT_EQ(json.code, 0);
    JSON_DOC doc = read_json(&json);
    EXPECT_STR(json_str(json_get(doc.root, STR("digest"))), index);
    EXPECT_STR(json_str(json_get(doc.root, STR("referrers"))), "tag");
    EXPECT_TRUE(json_is_null(json_get(doc.root, STR("compatibility"))));
    const json_val *platforms = json_get(doc.root, STR("platforms"));
    EXPECT_EQ(json_count(platforms), 2);
    EXPECT_STR(json_str(json_get(json_at(platforms, 1), STR("architecture"))), "arm64");
    EXPECT_STR(json_str(json_get(json_at(platforms, 1), STR("digest"))), arm64);
}

TEST(inspect_shows_the_rules_of_a_spec_in_words_and_the_groups_it_would_become)
{
    BENCH b = bench_new();
    char digest[DIGEST_TEXT_MAX];
    registry_fixture_image(b.f, b.r, "cli/words", "1", "amd64", digest);
    push(&b, "cli/words:1", "",
         "version: v1alpha1\n"
         "compatibilities:\n"
         "- tag: gpu\n"
         "  weight: 90\n"
         "  description: a card of NVIDIA\n"
         "  rules:\n"
         "  - name: card\n"
         "    matchFeatures:\n"
         "    - feature: pci.device\n"
         "      matchExpressions:\n"
         "        vendor: {op: In, value: ['10de']}\n"
         "        class: {op: InRegexp, value: ['^03']}\n"
         "    matchAny:\n"
         "    - matchFeatures:\n"
         "      - feature: kernel.version\n"
         "        matchExpressions:\n"
         "          full: {op: Ge, value: ['5.15'], type: version}\n"
         "    - matchFeatures:\n"
         "      - feature: kernel.loadedmodule\n"
         "        matchName: {op: In, value: [nvidia, nouveau]}\n"
         "- tag: other\n"
         "  rules:\n"
         "  - name: one\n"
         "    matchFeatures: [{feature: cpu.cpuid, matchExpressions: {AVX2: {op: Exists}}}]\n"
         "  - name: two\n"
         "    matchFeatures:\n"
         "    - feature: memory.numa\n"
         "      matchExpressions: {node_count: {op: GeLe, value: ['2', '4']}}\n");

    AUTO_RESULT r = image(&b, "inspect", "cli/words:1", "", "");
    EXPECT_EQ(r.code, 0);
    EXPECT_SAYS(r.out, "set 1 \"gpu\", weight 90: a card of NVIDIA\n");
    EXPECT_SAYS(r.out, "pci.device: class matches \"^03\" and vendor is \"10de\"\n");
    EXPECT_SAYS(r.out, "and one of\n");
    EXPECT_SAYS(r.out, "- kernel.version: full is at least version 5.15\n");
    EXPECT_SAYS(r.out, "- kernel.loadedmodule: a name is one of \"nvidia\", \"nouveau\"\n");
    EXPECT_SAYS(r.out, "one of 2 rules must match\n");
    EXPECT_SAYS(r.out, "memory.numa: node_count is from 2 to 4\n");
    EXPECT_SAYS(r.out, "all 2 sets must match\n");
    EXPECT_SAYS(r.out, "NodeFeatureGroup image-compat-");

    AUTO_RESULT any =
        image(&b, "inspect", "cli/words:1", "--set-combine any --rule-combine all", "");
    EXPECT_SAYS(any.out, "one of 2 sets must match\n");
    EXPECT_SAYS(any.out, "all 2 rules must match\n");

    AUTO_RESULT json = image(&b, "inspect", "cli/words:1", "-o json", "");
    JSON_DOC doc = read_json(&json);
    const json_val *sets = json_path(doc.root, "compatibility.sets");
    EXPECT_EQ(json_count(sets), 2);
    const json_val *first = json_at(sets, 0);
    EXPECT_STR(json_str(json_get(first, STR("tag"))), "gpu");
    EXPECT_TRUE(
        str_starts(json_str(json_get(first, STR("nodeFeatureGroup"))), STR("image-compat-")));
    EXPECT_EQ(json_count(json_get(first, STR("rules"))), 1);
    EXPECT_TRUE(json_str(json_path(doc.root, "compatibility.created")).len > 0);
}

TEST(inspect_says_of_a_spec_that_cannot_be_used_why)
{
    BENCH b = bench_new();
    char digest[DIGEST_TEXT_MAX], artifact[DIGEST_TEXT_MAX];
    registry_fixture_image(b.f, b.r, "cli/broken", "1", "amd64", digest);
    registry_fixture_attach(b.f, b.r, "cli/broken", digest, "version: [", 1000000, artifact);
    AUTO_RESULT r = image(&b, "inspect", "cli/broken:1", "", "");
    EXPECT_EQ(r.code, 0);
    EXPECT_SAYS(r.out, artifact);
    EXPECT_SAYS(r.out, "cannot be used: ");
    AUTO_RESULT check = image(&b, "check", "cli/broken:1", "--instance-type m7i.large", "");
    EXPECT_EQ(check.code, 1);
    EXPECT_SAYS(check.out, "error");
}

/* --- push --- */

TEST(push_refuses_a_wrong_spec_with_its_line_and_field_and_sends_nothing)
{
    BENCH b = bench_new();
    char digest[DIGEST_TEXT_MAX];
    registry_fixture_image(b.f, b.r, "cli/wrong", "1", "amd64", digest);
    static const struct {
        const char *spec, *says;
    } wrong[] = {
        { "version: v1alpha1\ncompatibilities:\n- rulez: []\n", "stdin:3:" },
        { "version: v1alpha1\ncompatibilities:\n- rules:\n  - name: r\n    matchFeatures:\n"
          "    - feature: cpu.cpuid\n      matchExpressions: {AVX: {op: Exist}}\n",
          "op" },
        { "version: v2\ncompatibilities: []\n", "v2" },
        { "a: [", "stdin:" },
        { "", "stdin" },
    };
    for (size_t i = 0; i < KV_COUNT_OF(wrong); i++) {
        AUTO_RESULT r = image(&b, "push", "cli/wrong:1", "-f -", wrong[i].spec);
        EXPECT_EQ(r.code, 1);
        EXPECT_EQ(r.out.len, 0);
        EXPECT_SAYS(r.err, wrong[i].says);
    }
    AUTO_RESULT missing = image(&b, "push", "cli/wrong:1", "-f /nonexistent.yaml", "");
    EXPECT_EQ(missing.code, 3);
    AUTO_RESULT r = image(&b, "inspect", "cli/wrong:1", "", "");
    EXPECT_SAYS(r.out, "no compatibility spec is attached");
}

TEST(push_attaches_a_spec_and_says_so_once)
{
    BENCH b = bench_new();
    char digest[DIGEST_TEXT_MAX];
    registry_fixture_image(b.f, b.r, "cli/push", "1", "amd64", digest);

    AUTO_RESULT dry = image(&b, "push", "cli/push:1", "-f - --dry-run", NEEDS("AVX512F"));
    EXPECT_EQ(dry.code, 0);
    EXPECT_SAYS(dry.out, "would be attached");
    AUTO_RESULT bare = image(&b, "inspect", "cli/push:1", "", "");
    EXPECT_SAYS(bare.out, "no compatibility spec is attached");

    AUTO_RESULT first = image(&b, "push", "cli/push:1", "-f - -o json", NEEDS("AVX512F"));
    EXPECT_EQ(first.code, 0);
    JSON_DOC doc = read_json(&first);
    EXPECT_STR(json_str(json_get(doc.root, STR("state"))), "attached");
    EXPECT_STR(json_str(json_get(doc.root, STR("subject"))), digest);
    struct str artifact = json_str(json_get(doc.root, STR("artifact")));

    AUTO_RESULT again = image(&b, "push", "cli/push:1", "-f -", NEEDS("AVX512F"));
    EXPECT_EQ(again.code, 0);
    EXPECT_SAYS(again.out, "is attached already");
    EXPECT_SAYS(again.out, artifact.p);

    AUTO_RESULT forced = image(&b, "push", "cli/push:1", "-f - --force", NEEDS("AVX512F"));
    EXPECT_EQ(forced.code, 0);
    EXPECT_LACKS(forced.out, artifact.p);
    AUTO_RESULT shown = image(&b, "inspect", "cli/push:1", "", "");
    EXPECT_LACKS(shown.out, artifact.p);
    EXPECT_SAYS(shown.out, "set 1 \"fast\", weight 80: needs AVX512F");
}

TEST(what_is_pushed_last_counts_whatever_the_clocks_of_others_said)
{
    BENCH b = bench_new();
    char digest[DIGEST_TEXT_MAX], artifact[DIGEST_TEXT_MAX];
    const int64_t year_2200_us = (int64_t)7258118400 * 1000000;
    registry_fixture_image(b.f, b.r, "cli/future", "1", "amd64", digest);
    registry_fixture_attach(b.f, b.r, "cli/future", digest, KERNEL, year_2200_us, artifact);
    push(&b, "cli/future:1", "", NEEDS("AVX512F"));
    AUTO_RESULT r = image(&b, "inspect", "cli/future:1", "", "");
    EXPECT_LACKS(r.out, artifact);
    EXPECT_SAYS(r.out, "needs AVX512F");
}

TEST(a_spec_for_one_platform_overrides_that_of_the_image_there_alone)
{
    BENCH b = bench_new();
    char amd64[DIGEST_TEXT_MAX], arm64[DIGEST_TEXT_MAX], index[DIGEST_TEXT_MAX];
    registry_fixture_index(b.f, b.r, "cli/each", "1", amd64, arm64, index);
    push(&b, "cli/each:1", "", NEEDS("AVX512F"));
    push(&b, "cli/each:1", "--platform linux/arm64", NEEDS("ASIMD"));
    AUTO_RESULT none = image(&b, "push", "cli/each:1", "-f - --platform linux/s390x", KERNEL);
    EXPECT_EQ(none.code, 1);
    EXPECT_SAYS(none.err, "it is for linux/amd64, linux/arm64");
    AUTO_RESULT no_word = image(&b, "push", "cli/each:1", "-f - --platform arm64", KERNEL);
    EXPECT_EQ(no_word.code, 2);

    AUTO_RESULT r = image(&b, "inspect", "cli/each:1", "", "");
    EXPECT_SAYS(r.out, "compatibility spec of linux/arm64");
    AUTO_RESULT check =
        image(&b, "check", "cli/each:1",
              "--instance-type m7g.large --instance-type m7i.large --instance-type m6a.large "
              "-o json",
              "");
    EXPECT_EQ(check.code, 0);
    JSON_DOC doc = read_json(&check);
    const json_val *types = json_get(doc.root, STR("instanceTypes"));
    EXPECT_STR(json_str(json_get(json_at(types, 0), STR("runs"))), "yes");
    EXPECT_STR(json_str(json_get(json_at(types, 1), STR("runs"))), "yes");
    EXPECT_STR(json_str(json_get(json_at(types, 2), STR("runs"))), "no");
}

TEST(a_private_registry_is_pushed_to_with_its_credentials_and_refuses_others)
{
    struct registry_fixture *f = registry_fixture(REGISTRY_PRIVATE);
    BENCH b = { .f = f, .r = registry_fixture_client(f) };
    char digest[DIGEST_TEXT_MAX];
    registry_fixture_image(f, b.r, "cli/secret", "1", "amd64", digest);
    AUTO_RESULT denied = image(&b, "inspect", "cli/secret:1", "", "");
    EXPECT_EQ(denied.code, 3);
    AUTO_BUF command = { 0 };
    buf_addf(&command,
             "d=$(mktemp -d); trap 'rm -rf $d' EXIT; cat >$d/spec.yaml; "
             "echo '{\"auths\":{\"%s\":{\"username\":\"" REGISTRY_USER
             "\",\"password\":\"" REGISTRY_PASSWORD "\"}}}' >$d/config.json; "
             "karve image push %s/cli/secret:1 --plain-http %s -f $d/spec.yaml "
             "--registry-config $d/config.json",
             f->host, f->host, f->host);
    AUTO_RESULT pushed = sh(command.p, STR(NEEDS("AVX512F")));
    EXPECT_EQ(pushed.code, 0);
    EXPECT_SAYS(pushed.out, "attached to");
    EXPECT_LACKS(pushed.err, REGISTRY_PASSWORD);
}

/* --- registries that differ --- */

/* An image for amd64 in a registry in memory. */
static struct fake_registry *fake_new(struct fake_registry_options options)
{
    struct fake_registry *f = fake_registry_new(options);
    const struct str config = STR("{\"architecture\":\"amd64\",\"os\":\"linux\"}");
    char digest[DIGEST_TEXT_MAX];
    AUTO_BUF manifest = { 0 };
    fake_registry_blob(f, config, digest);
    buf_addf(&manifest,
             "{\"schemaVersion\":2,\"mediaType\":\"" MEDIA_OCI_MANIFEST "\",\"config\":{"
             "\"mediaType\":\"application/vnd.oci.image.config.v1+json\",\"digest\":\"%s\","
             "\"size\":%zu},\"layers\":[]}",
             digest, config.len);
    fake_registry_manifest(f, "team/app", "1", MEDIA_OCI_MANIFEST, buf_str(&manifest), NULL);
    return f;
}

static struct result fake_image(struct fake_registry *f, const char *verb, const char *flags,
                                const char *input)
{
    AUTO_BUF command = { 0 };
    buf_addf(&command, "karve image %s %s/team/app:1 --plain-http %s %s", verb,
             fake_registry_host(f), fake_registry_host(f), flags);
    return sh(command.p, str_of(input));
}

#define LIST_PATH "/v2/team/app/manifests/sha256-"

TEST(a_registry_with_a_referrers_api_lists_what_is_pushed_by_itself)
{
    AUTO(fake_registry) f = fake_new((struct fake_registry_options){ .filters = true });
    AUTO_RESULT pushed = fake_image(f, "push", "-f -", NEEDS("AVX512F"));
    EXPECT_EQ(pushed.code, 0);
    EXPECT_SAYS(pushed.out, "listed by the registry's referrers API");
    EXPECT_EQ(fake_registry_seen(f, "PUT " LIST_PATH), 0);
    AUTO_RESULT shown = fake_image(f, "inspect", "", "");
    EXPECT_EQ(shown.code, 0);
    EXPECT_SAYS(shown.out, "artifacts are listed by the registry's referrers API");
    EXPECT_SAYS(shown.out, "needs AVX512F");
}

TEST(an_entry_that_somebody_else_overwrote_is_written_again)
{
    AUTO(fake_registry) f = fake_new((struct fake_registry_options){ .without_referrers = true });
    /* What was attached before, the list to add to, and the look whether we are in it. */
    fake_registry_fault(f,
                        (struct fake_fault){ .on = "GET " LIST_PATH, .times = 3, .status = 404 });
    AUTO_RESULT pushed = fake_image(f, "push", "-f -", NEEDS("AVX512F"));
    EXPECT_EQ(pushed.code, 0);
    EXPECT_EQ(fake_registry_seen(f, "PUT " LIST_PATH), 2);
    AUTO_RESULT shown = fake_image(f, "inspect", "", "");
    EXPECT_SAYS(shown.out, "needs AVX512F");
}

TEST(a_list_that_never_keeps_our_entry_is_told_and_not_fought_over_for_ever)
{
    AUTO(fake_registry) f = fake_new((struct fake_registry_options){ .without_referrers = true });
    fake_registry_fault(f, (struct fake_fault){ .on = "GET " LIST_PATH, .status = 404 });
    AUTO_RESULT pushed = fake_image(f, "push", "-f -", NEEDS("AVX512F"));
    EXPECT_EQ(pushed.code, 3);
    EXPECT_EQ(pushed.out.len, 0);
    EXPECT_SAYS(pushed.err, "others keep changing the tag sha256-");
}

/* --- check --- */

TEST(check_tells_of_instance_types_which_can_run_it_and_the_rule_that_says_no)
{
    BENCH b = bench_new();
    char digest[DIGEST_TEXT_MAX];
    registry_fixture_image(b.f, b.r, "cli/check", "1", "amd64", digest);
    push(&b, "cli/check:1", "", NEEDS("AVX512F"));

    AUTO_RESULT yes = image(&b, "check", "cli/check:1", "--instance-type m7i.large", "");
    EXPECT_EQ(yes.code, 0);
    EXPECT_SAYS(yes.out, "can run on 1 of 1 instance type\n");
    AUTO_RESULT no = image(&b, "check", "cli/check:1", "--instance-type m6a.large --all", "");
    EXPECT_EQ(no.code, 1);
    EXPECT_SAYS(no.out, "set \"fast\": rule \"vectors\": cpu.cpuid AVX512F: expected to exist, is "
                        "absent");
    AUTO_RESULT arm = image(&b, "check", "cli/check:1", "--instance-type m7g.large", "");
    EXPECT_EQ(arm.code, 1);
    EXPECT_SAYS(arm.out, "is built for linux/amd64 only, the node is linux/arm64");
    AUTO_RESULT both = image(&b, "check", "cli/check:1",
                             "--instance-type m6a.large --instance-type m7i.large", "");
    EXPECT_EQ(both.code, 0);
    EXPECT_SAYS(both.out, "can run on 1 of 2 instance types\n");
}

TEST(what_is_not_predicted_is_unknown_and_no_yes)
{
    BENCH b = bench_new();
    char digest[DIGEST_TEXT_MAX];
    registry_fixture_image(b.f, b.r, "cli/kernel", "1", "amd64", digest);
    push(&b, "cli/kernel:1", "", KERNEL);
    AUTO_RESULT r = image(&b, "check", "cli/kernel:1", "--instance-type t3.large", "");
    EXPECT_EQ(r.code, 1);
    EXPECT_SAYS(r.out, "of 1 it is not known");
    EXPECT_SAYS(r.out, "kernel.version");
}

TEST(an_image_for_arm64_alone_runs_on_all_such_types_of_the_catalogue_and_no_others)
{
    BENCH b = bench_new();
    char digest[DIGEST_TEXT_MAX];
    registry_fixture_image(b.f, b.r, "cli/arm", "1", "arm64", digest);
    AUTO_RESULT r = image(&b, "check", "cli/arm:1", "", "");
    EXPECT_EQ(r.code, 0);
    EXPECT_SAYS(r.out, "instance types of the catalogue");
    EXPECT_SAYS(r.out, "m7g.*");
    EXPECT_SAYS(r.out, "is built for linux/arm64 only, the node is linux/amd64");
    AUTO_RESULT json = image(&b, "check", "cli/arm:1", "-o json", "");
    JSON_DOC doc = read_json(&json);
    json_each_item(json_get(doc.root, STR("instanceTypes")), type) {
        bool arm = str_eqz(json_str(json_get(type, STR("architecture"))), "arm64");
        EXPECT_STR(json_str(json_get(type, STR("runs"))), arm ? "yes" : "no");
    }
    AUTO_RESULT all = image(&b, "check", "cli/arm:1", "--all", "");
    EXPECT_SAYS(all.out, "m7g.medium");
    EXPECT_SAYS(all.out, "m7g.metal");
}

TEST(check_of_a_nodepool_asks_about_the_types_that_its_requirements_allow)
{
    BENCH b = bench_new();
    char digest[DIGEST_TEXT_MAX];
    registry_fixture_image(b.f, b.r, "cli/pool", "1", "amd64", digest);
    AUTO_RESULT arm = image(&b, "check", "cli/pool:1", "-f examples/shop --nodepool arm64", "");
    EXPECT_EQ(arm.code, 1);
    EXPECT_SAYS(arm.out, "can run on 0 of 51 instance types of NodePool arm64");
    AUTO_RESULT amd = image(&b, "check", "cli/pool:1", "-f examples/shop --nodepool batch", "");
    EXPECT_EQ(amd.code, 0);
    AUTO_RESULT none = image(&b, "check", "cli/pool:1", "-f examples/shop --nodepool genral", "");
    EXPECT_EQ(none.code, 2);
}

#define NODE(name, arch, type)                                                                     \
    "apiVersion: v1\nkind: Node\nmetadata:\n  name: " name "\n  labels: {kubernetes.io/os: linux," \
    " kubernetes.io/arch: " arch ", node.kubernetes.io/instance-type: " type "}\n---\n"
#define FEATURES(name, flags)                                                                      \
    "apiVersion: nfd.k8s-sigs.io/v1alpha1\nkind: NodeFeature\nmetadata:\n  name: " name            \
    "\n  namespace: node-feature-discovery\n  labels: {nfd.node.kubernetes.io/node-name: " name    \
    "}\nspec:\n  features:\n    flags: {cpu.cpuid: {elements: {" flags "}}}\n    attributes: {}\n" \
    "    instances: {}\n---\n"

TEST(nodes_of_manifests_are_judged_by_what_they_published_and_the_others_by_their_type)
{
    BENCH b = bench_new();
    char digest[DIGEST_TEXT_MAX];
    static const char nodes[] = NODE("a", "amd64", "m7i.large") NODE("b", "amd64", "m7i.large")
        NODE("c", "amd64", "m7i.large") NODE("d", "arm64", "m7g.large")
            FEATURES("a", "AVX2: {}, AVX512F: {}") FEATURES("b", "AVX2: {}");
    registry_fixture_image(b.f, b.r, "cli/nodes", "1", "amd64", digest);
    push(&b, "cli/nodes:1", "", NEEDS("AVX512F"));

    AUTO_RESULT r = image(&b, "check", "cli/nodes:1", "-f - -o json", nodes);
    EXPECT_EQ(r.code, 0);
    JSON_DOC doc = read_json(&r);
    const json_val *items = json_get(doc.root, STR("nodes"));
    static const char *const runs[] = { "yes", "no", "unknown", "no" };
    static const char *const features[] = { "published", "published", "predicted", "predicted" };
    EXPECT_EQ(json_count(items), 4);
    for (size_t i = 0; i < 4; i++) {
        EXPECT_STR(json_str(json_get(json_at(items, i), STR("runs"))), runs[i]);
        EXPECT_STR(json_str(json_get(json_at(items, i), STR("features"))), features[i]);
    }
    AUTO_RESULT one = image(&b, "check", "cli/nodes:1", "-f - --node b --all", nodes);
    EXPECT_EQ(one.code, 1);
    EXPECT_SAYS(one.out, "can run on 0 of 1 node\n");
    EXPECT_SAYS(one.out, "AVX512F: expected to exist, is absent");
    AUTO_RESULT none = image(&b, "check", "cli/nodes:1", "-f - --node z", nodes);
    EXPECT_EQ(none.code, 2);
    EXPECT_SAYS(none.err, "there is no Node \"z\" among the manifests");
}

TEST(a_cluster_that_cannot_be_asked_is_exit_code_3)
{
    AUTO_RESULT r = karve("image check nginx --kubeconfig /nonexistent/config");
    EXPECT_EQ(r.code, 3);
    EXPECT_SAYS(r.err, "/nonexistent/config");
}
