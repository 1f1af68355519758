/* What `karve crds` prints, on a real API server: it is accepted, its rules are enforced in our words, and
 * kubectl shows what the documents say.
 *
 * The samples are those of tests/crdcheck, which asks the code of an API server without a server.
 */
#include "kube/life.h"

#include "api/crd.h"
#include "base/file.h"
#include "base/map.h"
#include "crdcheck/export/samples.h"

#define DOC_BYTES_MAX ((size_t)1 << 20)

TEST(definitions_can_be_applied_by_client_and_by_server)
{
    struct plane *p = life_plane();
    EXPECT_HAS(plane_must(p, "$KARVE crds | kubectl apply -f -"), "unchanged");
    plane_must(p, "$KARVE crds --rbac | kubectl apply --server-side --force-conflicts -f -");
    plane_must(p, "$KARVE crds --rbac -o json | kubectl apply --server-side --dry-run=server -f -");
}

/* --- the rules --- */

/* A table of the messages that the definitions have. The value tells whether it was seen. */
static void collect_messages(const json_val *v, struct str_table *out)
{
    json_each_item(v, item)
        collect_messages(item, out);
    json_each_member(v, key, value) {
        if (!str_eqz(json_key(key), "x-kubernetes-validations"))
            collect_messages(value, out);
        else
            json_each_item(value, rule)
                str_table_put(out, json_str(json_get(rule, STR("message"))), NULL);
    }
}

static void collect_messages_of(const struct kind *kind, struct str_table *out)
{
    AUTO_JSON_BUILD b;
    AUTO_BUF text = { 0 };
    struct doc doc;
    struct err err;
    json_build_init(&b);
    json_write_mut(crd_build(&b, kind), &text);
    EXPECT_OK(json_read(buf_str(&text), &doc, &err), err);
    collect_messages(doc.root, out);
    doc_done(&doc);
}

static bool is_of_a_rule(const struct str_table *messages, struct str words)
{
    str_table_each(messages, slot) {
        if (words.len && str_starts(slot->key, words))
            return true;
    }
    return false;
}

static void note_messages(struct str_table *messages, struct str said)
{
    str_table_each(messages, slot) {
        if (memmem(said.p, said.len, slot->key.p, slot->key.len))
            str_table_put(messages, slot->key, messages);
    }
}

static struct str json_text(struct arena *arena, const json_mut *v)
{
    AUTO_BUF text = { 0 };
    json_write_mut(v, &text);
    return arena_str(arena, buf_str(&text));
}

static bool is_about_status(const struct sample *sample)
{
    return strncmp(sample->patch, "{status:", 8) == 0;
}

/* What is called as the set's objects are. */
static struct object_ref ref_of(const struct sample_set *set, struct arena *arena)
{
    AUTO_JSON_BUILD b;
    json_build_init(&b);
    const json_mut *meta = json_mut_get(sample_build(&b, set->base, NULL), STR("metadata"));
    struct str name = json_mut_str(json_mut_get(meta, STR("name")));
    return (struct object_ref){ set->kind, STR(""), arena_str(arena, name) };
}

/* Send it as it would come: a creation, an update of what was there, or an update of its status. */
static int send(const struct sample_set *set, const struct sample *sample, struct arena *arena,
                struct err *err)
{
    AUTO_JSON_BUILD b;
    json_build_init(&b);
    const struct object_ref ref = ref_of(set, arena);
    json_mut *object = sample_build(&b, set->base, sample->patch);
    if (!sample->old && !is_about_status(sample))
        return store_create(life_store(), set->kind, STR(""), json_text(arena, object), NULL, err);
    EXPECT_OK(store_create(life_store(), set->kind, STR(""),
                           json_text(arena, sample_build(&b, set->base, sample->old)), NULL, err),
              *err);
    json_mut *patch = json_new_object(&b);
    if (is_about_status(sample)) {
        json_set(&b, patch, STR("status"), json_mut_get(object, STR("status")));
        return store_patch(life_store(), ref, (struct patch_options){ .status = true },
                           json_text(arena, patch), NULL, err);
    }
    json_set_str(&b, patch, "op", STR("replace"));
    json_set_str(&b, patch, "path", STR("/spec"));
    json_set(&b, patch, STR("value"), json_mut_get(object, STR("spec")));
    struct str text = arena_strf(arena, "[%.*s]", STR_ARG(json_text(arena, patch)));
    return store_patch(life_store(), ref, (struct patch_options){ .type = PATCH_JSON }, text, NULL,
                       err);
}

/* What is not as the table says; empty: all is well. */
static struct str judge(const struct sample_set *set, const struct sample *sample,
                        struct str_table *messages, struct arena *arena)
{
    struct err err = { 0 }, ignored;
    bool accepted = send(set, sample, arena, &err) == 0;
    store_remove(life_store(), ref_of(set, arena), NULL, &ignored);
    if (!sample->problem || sample->judge != API)
        return accepted ? STR("") : arena_strf(arena, "refused: %s", err.text);
    if (accepted)
        return STR("accepted");
    if (err.kind != ERR_INVALID)
        return arena_strf(arena, "another error: %s", err.text);
    struct str words = str_of(strstr(sample->problem, ": ") + 2);
    note_messages(messages, str_of(err.text));
    if (is_of_a_rule(messages, words) && !strstr(err.text, words.p))
        return arena_strf(arena, "in other words: %s", err.text);
    return STR("");
}

static void check_set(struct plane *p, const struct sample_set *set, struct str_table *messages)
{
    uint32_t wrong = 0;
    for (uint32_t i = 0; i < set->count; i++) {
        const struct sample *sample = &set->samples[i];
        struct str problem = judge(set, sample, messages, &p->arena);
        if (problem.len) {
            print_error("%s %s: %.*s\n", set->kind->name, sample->patch, STR_ARG(problem));
            wrong++;
        }
    }
    EXPECT_EQ(wrong, 0);
}

TEST(good_objects_are_accepted_and_bad_ones_refused_in_our_words)
{
    struct plane *p = life_plane();
    struct str_table messages = { 0 };
    plane_must(p, "kubectl delete kwoknodeclass default"); /* as the samples are called */
    for (size_t i = 0; i < KV_COUNT_OF(sample_sets); i++)
        collect_messages_of(sample_sets[i].kind, &messages);
    uint32_t samples = 0, unseen = 0;
    for (size_t i = 0; i < KV_COUNT_OF(sample_sets); i++) {
        check_set(p, &sample_sets[i], &messages);
        samples += sample_sets[i].count;
    }
    str_table_each(&messages, slot) {
        if (!slot->value) {
            print_error("no sample is refused with: %.*s\n", STR_ARG(slot->key));
            unseen++;
        }
    }
    printf("# %u samples, %u rules\n", samples, (unsigned)messages.live_count);
    str_table_done(&messages);
    EXPECT_EQ(unseen, 0);
}

TEST(kubectl_is_told_why_an_object_is_refused)
{
    struct plane *p = life_plane();
    AUTO_BUF said = { 0 };
    EXPECT_TRUE(plane_sh(p, &said, "%s",
                         "printf '%s' '{\"apiVersion\":\"karpenter.sh/v1\",\"kind\":\"NodePool\","
                         "\"metadata\":{\"name\":\"a\"},\"spec\":{\"template\":{\"metadata\":"
                         "{\"labels\":{\"karpenter.sh/nodepool\":\"b\"}},\"spec\":{"
                         "\"nodeClassRef\":{\"group\":\"karpenter.kwok.sh\",\"kind\":"
                         "\"KWOKNodeClass\",\"name\":\"default\"},\"requirements\":[]}}}}' | "
                         "kubectl apply -f -") != 0);
    EXPECT_HAS(buf_str(&said), "spec.template.metadata.labels");
    EXPECT_HAS(buf_str(&said), "label karpenter.sh/nodepool is restricted");
}

/* --- what kubectl shows --- */

/* "NAME  READY   AGE" -> "NAME READY AGE" */
static struct str words_of(struct arena *arena, struct str line)
{
    AUTO_BUF out = { 0 };
    for (size_t i = 0; i < line.len; i++) {
        if (line.p[i] != ' ')
            buf_addc(&out, line.p[i]);
        else if (out.len && out.p[out.len - 1] != ' ')
            buf_addc(&out, ' ');
    }
    return arena_str(arena, str_trim(buf_str(&out)));
}

static struct str header_of(struct plane *p, const char *resource, const char *flags)
{
    return words_of(&p->arena, plane_must(p, "kubectl get %s %s | head -n 1", resource, flags));
}

static const struct {
    const char *resource, *object;
} shown[] = {
    { "nodepools", nodepool_base },          { "nodeclaims", nodeclaim_base },
    { "nodeoverlays", nodeoverlay_base },    { "kwoknodeclasses", kwoknodeclass_base },
    { "ec2nodeclasses", ec2nodeclass_base },
};

/* docs/crds.md has a row for each: | `nodepools` | `NAME ...` | `NAME ... with -o wide` | */
TEST(kubectl_get_has_the_columns_that_are_documented)
{
    struct plane *p = life_plane();
    AUTO_BUF doc = { 0 };
    struct err err;
    EXPECT_OK(file_read("docs/crds.md", DOC_BYTES_MAX, &doc, &err), err);
    for (size_t i = 0; i < KV_COUNT_OF(shown); i++) {
        plane_apply(p, shown[i].object);
        struct str row = arena_strf(&p->arena, "| `%s` | `%.*s` | `%.*s` |", shown[i].resource,
                                    STR_ARG(header_of(p, shown[i].resource, "")),
                                    STR_ARG(header_of(p, shown[i].resource, "-o wide")));
        EXPECT_HAS(buf_str(&doc), row.p);
    }
    EXPECT_HAS(plane_must(p, "kubectl get karpenter -o name"), "nodepool.karpenter.sh/default");
}

TEST(kubectl_explains_every_kind_and_its_fields)
{
    struct plane *p = life_plane();
    for (size_t i = 0; i < KV_COUNT_OF(shown); i++) {
        struct str said = plane_must(p, "kubectl explain --recursive %s", shown[i].resource);
        EXPECT_HAS(said, "DESCRIPTION:");
        EXPECT_HAS(said, "spec\t<Object>");
    }
    EXPECT_HAS(plane_must(p, "kubectl explain nodepool.spec.template.spec.expireAfter"),
               "How old a node may become before it is replaced, or Never.");
    EXPECT_HAS(plane_must(p, "kubectl explain nodepool.spec.disruption.consolidationPolicy"),
               "WhenEmptyOrUnderutilized");
}
