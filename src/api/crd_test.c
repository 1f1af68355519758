#include "support/test.h"

#include "api/crd.h"
#include "api/kinds.h"
#include "codec/regex.h"

/* The definition of a kind as one who applies it reads it. */
struct read {
    struct buf text;
    struct doc doc;
    const json_val *schema;
};

static struct read read_crd(const struct kind *kind)
{
    struct read r = { 0 };
    struct err err;
    AUTO_JSON_BUILD b;
    json_build_init(&b);
    json_write_mut(crd_build(&b, kind), &r.text);
    EXPECT_OK(json_read(buf_str(&r.text), &r.doc, &err), err);
    r.schema =
        json_path(json_at(json_path(r.doc.root, "spec.versions"), 0), "schema.openAPIV3Schema");
    return r;
}

static void read_done(struct read *r)
{
    doc_done(&r->doc);
    buf_done(&r->text);
}

/* Follow properties by a dotted path of field names; [] steps into a list's items. */
static const json_val *property(const json_val *schema, const char *path)
{
    struct str rest = str_of(path), name;
    for (bool more = true; more;) {
        struct str tail = STR("");
        more = str_cut(rest, '.', &name, &tail);
        bool items = str_ends(name, STR("[]"));
        if (items)
            name.len -= 2;
        schema = json_get(json_get(schema, STR("properties")), name);
        if (items)
            schema = json_get(schema, STR("items"));
        rest = tail;
    }
    EXPECT_TRUE(schema);
    return schema;
}

static void expect_json(const json_val *v, const char *want)
{
    AUTO_BUF text = { 0 };
    json_write_canonical(v, &text);
    EXPECT_STR(buf_str(&text), want);
}

static void expect_member(const json_val *v, const char *name, const char *want)
{
    expect_json(json_get(v, str_of(name)), want);
}

TEST(crd_has_the_names_that_kubectl_uses)
{
    static const struct {
        const struct kind *kind;
        const char *name, *names;
    } want[] = {
        { &nodepool_kind, "nodepools.karpenter.sh",
          "{\"categories\":[\"karpenter\"],\"kind\":\"NodePool\",\"listKind\":\"NodePoolList\","
          "\"plural\":\"nodepools\",\"singular\":\"nodepool\"}" },
        { &nodeclaim_kind, "nodeclaims.karpenter.sh",
          "{\"categories\":[\"karpenter\"],\"kind\":\"NodeClaim\",\"listKind\":\"NodeClaimList\","
          "\"plural\":\"nodeclaims\",\"singular\":\"nodeclaim\"}" },
        { &nodeoverlay_kind, "nodeoverlays.karpenter.sh",
          "{\"categories\":[\"karpenter\"],\"kind\":\"NodeOverlay\",\"listKind\":"
          "\"NodeOverlayList\",\"plural\":\"nodeoverlays\",\"shortNames\":[\"overlays\"],"
          "\"singular\":\"nodeoverlay\"}" },
        { &ec2nodeclass_kind, "ec2nodeclasses.karpenter.k8s.aws",
          "{\"categories\":[\"karpenter\"],\"kind\":\"EC2NodeClass\",\"listKind\":"
          "\"EC2NodeClassList\",\"plural\":\"ec2nodeclasses\",\"shortNames\":[\"ec2nc\","
          "\"ec2ncs\"],\"singular\":\"ec2nodeclass\"}" },
        { &kwoknodeclass_kind, "kwoknodeclasses.karpenter.kwok.sh",
          "{\"categories\":[\"karpenter\"],\"kind\":\"KWOKNodeClass\",\"listKind\":"
          "\"KWOKNodeClassList\",\"plural\":\"kwoknodeclasses\",\"shortNames\":[\"kwoknc\","
          "\"kwokncs\"],\"singular\":\"kwoknodeclass\"}" },
    };
    for (size_t i = 0; i < KV_COUNT_OF(want); i++) {
        struct read r = read_crd(want[i].kind);
        EXPECT_STR(json_str(json_path(r.doc.root, "metadata.name")), want[i].name);
        EXPECT_STR(json_str(json_path(r.doc.root, "spec.scope")), "Cluster");
        expect_json(json_path(r.doc.root, "spec.names"), want[i].names);
        read_done(&r);
    }
}

TEST(crd_of_nodepool_can_be_scaled)
{
    struct read r = read_crd(&nodepool_kind);
    const json_val *version = json_at(json_path(r.doc.root, "spec.versions"), 0);
    expect_member(version, "name", "\"v1\"");
    expect_member(version, "subresources",
                  "{\"scale\":{\"specReplicasPath\":\".spec.replicas\","
                  "\"statusReplicasPath\":\".status.nodes\"},\"status\":{}}");
    read_done(&r);
}

static void expect_columns(const struct kind *kind, const char *want)
{
    struct read r = read_crd(kind);
    const json_val *version = json_at(json_path(r.doc.root, "spec.versions"), 0);
    AUTO_BUF got = { 0 };
    json_each_item(json_get(version, STR("additionalPrinterColumns")), column) {
        struct str name = json_str(json_get(column, STR("name")));
        buf_addf(&got, "%s%.*s%s", got.len ? " " : "", STR_ARG(name),
                 json_get(column, STR("priority")) ? "*" : "");
    }
    EXPECT_STR(buf_str(&got), want);
    read_done(&r);
}

TEST(crd_columns_are_those_of_karpenter_and_registration_health_with_the_wide_ones_last)
{
    expect_columns(&nodepool_kind, "NodeClass Nodes Ready NodeRegistrationHealthy Age Weight* CPU* "
                                   "Memory*");
    expect_columns(&nodeclaim_kind, "Type Capacity Zone Node Ready Age ImageID* ID* NodePool* "
                                    "NodeClass* Drifted*");
    expect_columns(&nodeoverlay_kind, "Ready Age Weight*");
    expect_columns(&ec2nodeclass_kind, "Ready Age Role");
}

TEST(crd_schema_says_types_ranges_and_defaults)
{
    struct read r = read_crd(&nodepool_kind);
    const json_val *weight = property(r.schema, "spec.weight");
    expect_member(weight, "type", "\"integer\"");
    expect_member(weight, "format", "\"int32\"");
    expect_member(weight, "minimum", "1");
    expect_member(weight, "maximum", "100");
    expect_member(property(r.schema, "spec.disruption"), "default",
                  "{\"consolidateAfter\":\"0s\"}");
    expect_member(property(r.schema, "spec.disruption.budgets"), "default",
                  "[{\"nodes\":\"10%\"}]");
    expect_member(property(r.schema, "spec.disruption.budgets"), "maxItems", "50");
    expect_member(property(r.schema, "spec.template.spec.expireAfter"), "pattern",
                  "\"^(([0-9]+(s|m|h))+|Never)$\"");
    expect_member(property(r.schema, "spec.template.spec.nodeClassRef"), "required",
                  "[\"group\",\"kind\",\"name\"]");
    expect_member(r.schema, "required", "[\"spec\"]");
    expect_json(property(r.schema, "metadata"), "{\"type\":\"object\"}");
    read_done(&r);
}

TEST(crd_schema_says_how_lists_and_maps_merge)
{
    struct read r = read_crd(&nodepool_kind);
    expect_member(property(r.schema, "spec.template.spec.taints"), "x-kubernetes-list-type",
                  "\"atomic\"");
    expect_member(property(r.schema, "spec.disruption.budgets[].reasons"), "x-kubernetes-list-type",
                  "\"set\"");
    expect_member(property(r.schema, "status.conditions"), "x-kubernetes-list-type", "\"map\"");
    expect_member(property(r.schema, "status.conditions"), "x-kubernetes-list-map-keys",
                  "[\"type\"]");
    expect_member(property(r.schema, "spec.template.metadata.labels"), "x-kubernetes-map-type",
                  "\"atomic\"");
    expect_member(property(r.schema, "spec.template.metadata.labels"), "maxProperties", "100");
    read_done(&r);
}

TEST(crd_quantities_are_integers_or_strings)
{
    struct read r = read_crd(&nodepool_kind);
    const json_val *value =
        json_get(property(r.schema, "spec.limits"), STR("additionalProperties"));
    expect_member(value, "x-kubernetes-int-or-string", "true");
    expect_member(value, "anyOf", "[{\"type\":\"integer\"},{\"type\":\"string\"}]");
    EXPECT_TRUE(regex_match_static("KMGTPE", json_str(json_get(value, STR("pattern")))));
    read_done(&r);
}

TEST(crd_leaves_the_kubelet_open)
{
    struct read r = read_crd(&ec2nodeclass_kind);
    const json_val *kubelet = property(r.schema, "spec.kubelet");
    expect_member(kubelet, "type", "\"object\"");
    expect_member(kubelet, "x-kubernetes-preserve-unknown-fields", "true");
    read_done(&r);
}

TEST(crd_carries_the_cel_rules_with_their_messages)
{
    struct read r = read_crd(&nodeclaim_kind);
    expect_member(property(r.schema, "spec"), "x-kubernetes-validations",
                  "[{\"message\":\"spec cannot be changed\",\"rule\":\"self == oldSelf\"}]");
    read_done(&r);
}

/* Every pattern in a definition must be one that an API server can compile. */
static void check_patterns(const json_val *v)
{
    struct err err;
    struct regex *re = NULL;
    json_each_member(v, key, value) {
        if (str_eqz(json_str(key), "pattern") && json_is_string(value)) {
            EXPECT_OK(regex_compile(json_str(value), &re, &err), err);
            regex_free(re);
        }
        check_patterns(value);
    }
    if (json_is_array(v)) {
        json_each_item(v, item)
            check_patterns(item);
    }
}

TEST(crd_patterns_compile)
{
    for (uint32_t i = 0; i < kind_count; i++) {
        if (!kinds[i]->crd)
            continue;
        struct read r = read_crd(kinds[i]);
        check_patterns(r.schema);
        read_done(&r);
    }
}

TEST(five_kinds_are_our_own)
{
    int count = 0;
    for (uint32_t i = 0; i < kind_count; i++)
        count += kinds[i]->crd != NULL;
    EXPECT_EQ(count, 5);
}

TEST(reference_has_a_row_for_every_field_with_default_rules_and_meaning)
{
    AUTO_BUF text = { 0 };
    crd_reference(&nodepool_kind, &text);
    EXPECT_HAS(buf_str(&text), "# NodePool\n");
    EXPECT_HAS(buf_str(&text), "- apiVersion: `karpenter.sh/v1`\n");
    EXPECT_HAS(buf_str(&text), "- subresources: status, scale\n");
    EXPECT_HAS(buf_str(&text), "| `spec.weight` | integer |  | 1 to 100 | Pools with a higher");
    EXPECT_HAS(buf_str(&text),
               "| `spec.disruption.budgets[].nodes` | string | `\"10%\"` | required;"
               " matches `^((100\\|[0-9]{1,2})%\\|[0-9]+)$` | ");
    EXPECT_HAS(buf_str(&text), "each one of `Underutilized`, `Empty`, `Drifted`");
    EXPECT_HAS(buf_str(&text), "schedule and duration go together");
    EXPECT_HAS(buf_str(&text),
               "| `status.conditions[].lastTransitionTime` | time |  | required | ");
}

/* A bar that is not escaped would tear the row. */
TEST(reference_rows_have_five_cells)
{
    for (uint32_t i = 0; i < kind_count; i++) {
        AUTO_BUF text = { 0 };
        if (!kinds[i]->crd)
            continue;
        crd_reference(kinds[i], &text);
        struct str rest = buf_str(&text), line;
        while (str_cut(rest, '\n', &line, &rest)) {
            int bars = 0;
            for (size_t c = 0; c < line.len; c++)
                bars += line.p[c] == '|' && (c == 0 || line.p[c - 1] != '\\');
            EXPECT_TRUE(bars == 0 || bars == 6);
        }
    }
}
