/* karve instance-types, as users and scripts meet it. */
#include "cli_testing.h"

#define TYPES_OF "instance-types --catalogue tests/instance_types/catalogue.yaml "
#define POOLS "-f tests/instance_types/pools.yaml "
#define DISCOUNT "-f tests/instance_types/discount.yaml "

static const json_val *json_of(const struct result *r, struct doc *doc)
{
    struct err err;
    EXPECT_OK(json_read(buf_str(&r->out), doc, &err), err);
    return doc->root;
}

/* The item of a list whose `key` is `value`. */
static const json_val *item_with(const json_val *list, const char *key, const char *value)
{
    json_each_item(list, item) {
        if (str_eqz(json_str(json_get(item, str_of(key))), value))
            return item;
    }
    fail_msg("no item with %s %s", key, value);
    return NULL;
}

TEST(instance_types_lists_the_whole_catalogue_the_cheapest_first)
{
    AUTO_RESULT r = karve(TYPES_OF);
    EXPECT_EQ(r.code, 0);
    EXPECT_STR(buf_str(&r.err), "");
    EXPECT_STR(buf_str(&r.out),
               "4 of 4 instance types\n"
               "NAME     CPU  MEMORY  GPU  ARCH   PODS  ZONES z-1*  SPOT    ON-DEMAND\n"
               "a.small  2    4Gi          amd64  20    a,b         0.0200  0.0800\n"
               "b.small  2    8Gi          arm64  20    b           -       0.0600\n"
               "a.large  8    16Gi         amd64  40    a           -       0.3200\n"
               "g.large  8    32Gi    1    amd64  40    a           -       1.2000\n");
}

TEST(instance_types_sorts_by_name_cpu_and_memory_and_ties_by_name)
{
    static const struct {
        const char *by, *want;
    } cases[] = {
        { "price", "a.small b.small a.large g.large " },
        { "name", "a.large a.small b.small g.large " },
        { "cpu", "a.small b.small a.large g.large " },
        { "memory", "a.small b.small a.large g.large " },
    };
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        AUTO_BUF command = { 0 }, names = { 0 };
        buf_addf(&command, TYPES_OF "-o json --sort %s", cases[i].by);
        AUTO_RESULT r = karve(command.p);
        struct doc doc;
        const json_val *pool = json_at(json_get(json_of(&r, &doc), STR("nodePools")), 0);
        json_each_item(json_get(pool, STR("instanceTypes")), type)
            buf_addf(&names, "%.*s ", STR_ARG(json_str(json_get(type, STR("name")))));
        EXPECT_STR(buf_str(&names), cases[i].want);
        doc_done(&doc);
    }
}

TEST(instance_types_has_a_section_for_each_pool_in_the_order_of_weight)
{
    AUTO_RESULT r = karve(TYPES_OF POOLS);
    EXPECT_EQ(r.code, 0);
    const char *general = strstr(r.out.p, "NodePool general (EC2NodeClass/default): 1 of 4");
    const char *cheap = strstr(r.out.p, "NodePool cheap (EC2NodeClass/default): 1 of 4");
    const char *varied = strstr(r.out.p, "NodePool varied (EC2NodeClass/default): 0 of 4");
    EXPECT_TRUE(general && cheap && varied);
    EXPECT_TRUE(general < cheap && cheap < varied);
    AUTO_RESULT one = karve(TYPES_OF POOLS "--nodepool cheap");
    EXPECT_TRUE(strstr(one.out.p, "NodePool cheap") && !strstr(one.out.p, "NodePool general"));
}

TEST(instance_types_all_says_what_excludes_each_type)
{
    AUTO_RESULT r = karve(TYPES_OF POOLS "--all");
    EXPECT_EQ(r.code, 0);
    EXPECT_HAS(buf_str(&r.out), "NOT LAUNCHED  REASON        DETAIL\n"
                                "a.large       requirements  example.com/cpu Lt 8: has 8\n"
                                "b.small       requirements  kubernetes.io/arch In [amd64]: has "
                                "arm64\n"
                                "g.large       requirements  example.com/cpu Lt 8: has 8\n");
    EXPECT_HAS(buf_str(&r.out), "a.large       offering      none available: spot in z-1a\n"
                                "b.small       requirements  karpenter.sh/capacity-type In [spot]: "
                                "has on-demand\n");
    EXPECT_HAS(buf_str(&r.out),
               "a.small       minValues     example.com/family: 2 of at least 3\n"
               "b.small       requirements  topology.kubernetes.io/zone In [z-1a]: has z-1b\n");
}

TEST(instance_types_names_the_combination_that_is_offered_nowhere)
{
    AUTO_RESULT r = karve(TYPES_OF "--all -r topology.kubernetes.io/zone=z-1b -r "
                                   "'karpenter.sh/capacity-type in (spot)' "
                                   "-r 'node.kubernetes.io/instance-type In a.large,a.small'");
    EXPECT_HAS(buf_str(&r.out),
               "a.large       requirements  topology.kubernetes.io/zone In [z-1b]: "
               "has z-1a\n");
    EXPECT_HAS(buf_str(&r.out), "1 of 4 instance types");
}

TEST(instance_types_tells_whether_min_values_are_met)
{
    AUTO_RESULT r = karve(TYPES_OF POOLS "-p varied");
    EXPECT_HAS(buf_str(&r.out), "minValues NOT met: example.com/family: 2 of at least 3\n"
                                "so the pool launches nothing: 3 types would do otherwise\n");
    EXPECT_EQ(r.code, 0);
    AUTO_RESULT spot = karve("instance-types -f examples/shop -p spot");
    EXPECT_HAS(buf_str(&spot.out), "minValues met: karpenter.k8s.aws/instance-family: ");
    EXPECT_HAS(buf_str(&spot.out), " of at least 5\n");
}

TEST(instance_types_takes_requirements_in_every_spelling)
{
    static const struct {
        const char *requirement, *want;
    } cases[] = {
        { "example.com/family In a,b", "3 of 4" },
        { "example.com/family in (a, b)", "3 of 4" },
        { "example.com/family NotIn a", "2 of 4" },
        { "example.com/family=g", "1 of 4" },
        { "example.com/family == g", "1 of 4" },
        { "example.com/family!=g", "3 of 4" },
        { "example.com/family", "4 of 4" },
        { "!example.com/family", "0 of 4" },
        { "example.com/family Exists", "4 of 4" },
        { "example.com/family DoesNotExist", "0 of 4" },
        { "example.com/cpu>2", "2 of 4" },
        { "example.com/cpu Gt 2", "2 of 4" },
        { "example.com/cpu >= 2", "4 of 4" },
        { "example.com/cpu Gte 9", "0 of 4" },
        { "example.com/cpu < 8", "2 of 4" },
        { "example.com/cpu Lte 8", "4 of 4" },
        { "beta.kubernetes.io/arch=arm64", "1 of 4" },
    };
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        AUTO_BUF command = { 0 };
        buf_addf(&command, TYPES_OF "-r '%s'", cases[i].requirement);
        AUTO_RESULT r = karve(command.p);
        EXPECT_EQ(r.code, 0);
        EXPECT_STR(buf_str(&r.err), "");
        EXPECT_HAS(buf_str(&r.out), cases[i].want);
    }
}

TEST(instance_types_refuses_requirements_that_make_no_sense)
{
    static const struct {
        const char *requirement, *words;
    } cases[] = {
        { "example.com/cpu Gtt 2", "unknown operator \"Gtt\"; expected In, NotIn" },
        { "example.com/cpu Exist", "did you mean Exists?" },
        { "example.com/cpu > many", "Gt needs one integer" },
        { "example.com/cpu > 1,2", "Gt needs one integer" },
        { "example.com/cpu In", "In needs a value" },
        { "example.com/cpu Exists 4", "Exists takes no value" },
        { "!example.com/cpu=4", "nothing may follow" },
        { "", "no label key" },
        { "-bad-=a", "-bad- is not a label key" },
        { "example.com/cpu=-", "\"-\" is not a label value" },
    };
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        AUTO_BUF command = { 0 };
        buf_addf(&command, TYPES_OF "-r '%s'", cases[i].requirement);
        AUTO_RESULT r = karve(command.p);
        EXPECT_EQ(r.code, 2);
        EXPECT_HAS(buf_str(&r.err), cases[i].words);
        EXPECT_EQ(r.out.len, 0);
    }
}

TEST(instance_types_warns_of_a_label_that_nobody_has)
{
    AUTO_RESULT r = karve(TYPES_OF "-r 'example.com/famly=a'");
    EXPECT_EQ(r.code, 0);
    EXPECT_HAS(buf_str(&r.err),
               "no instance type has the label \"example.com/famly\"; did you mean "
               "example.com/family?");
    EXPECT_HAS(buf_str(&r.out), "0 of 4 instance types");
    AUTO_RESULT of_pool = karve(TYPES_OF POOLS "-p general -r team=web");
    EXPECT_STR(buf_str(&of_pool.err), "");
    EXPECT_HAS(buf_str(&of_pool.out), "1 of 4");
    AUTO_RESULT other = karve(TYPES_OF POOLS "-p general -r team=api");
    EXPECT_HAS(buf_str(&other.out), "none can be had: team In [web] and team In [api] have nothing "
                                    "in common");
}

TEST(instance_types_suggests_the_pool_that_was_meant)
{
    AUTO_RESULT r = karve(TYPES_OF POOLS "-p genral");
    EXPECT_EQ(r.code, 2);
    EXPECT_HAS(buf_str(&r.err), "there is no NodePool \"genral\"; did you mean \"general\"?");
    AUTO_RESULT far = karve(TYPES_OF POOLS "-p something-else");
    EXPECT_EQ(far.code, 2);
    EXPECT_HAS(buf_str(&far.err), "there are general, cheap, varied");
    AUTO_RESULT none = karve(TYPES_OF "-p general");
    EXPECT_EQ(none.code, 2);
    EXPECT_HAS(buf_str(&none.err), "-f");
}

TEST(instance_types_shows_prices_and_capacity_after_overlays)
{
    AUTO_RESULT r = karve(TYPES_OF POOLS DISCOUNT "-p general -o wide");
    EXPECT_EQ(r.code, 0);
    EXPECT_HAS(buf_str(&r.out), "0.0400* was 0.0800  example.com/slots=3\n");
    EXPECT_HAS(buf_str(&r.out), "* set by a NodeOverlay\n");
    EXPECT_HAS(buf_str(&r.out), "discount  5       price -50%");
    AUTO_RESULT gate = karve(TYPES_OF POOLS DISCOUNT "-p general --node-overlay false");
    EXPECT_HAS(buf_str(&gate.out), "0.0200  0.0800\n");
    EXPECT_FALSE(strstr(gate.out.p, "OVERLAY") != NULL);
}

TEST(instance_types_tells_which_overlay_was_rejected_and_exits_1)
{
    AUTO_RESULT r = karve(TYPES_OF POOLS DISCOUNT "-f tests/instance_types/clash.yaml -p general");
    EXPECT_EQ(r.code, 1);
    EXPECT_HAS(buf_str(&r.err),
               "tests/instance_types/clash.yaml:2: NodeOverlay/clash: rejected (conflict): ");
    EXPECT_HAS(buf_str(&r.err), "discount");
    EXPECT_HAS(buf_str(&r.out), "0.0400*");
}

TEST(instance_types_prints_json_for_scripts)
{
    AUTO_RESULT r = karve(TYPES_OF POOLS DISCOUNT "-o json");
    EXPECT_EQ(r.code, 0);
    struct doc doc;
    const json_val *root = json_of(&r, &doc);
    const json_val *pool = item_with(json_get(root, STR("nodePools")), "name", "general");
    const json_val *type = item_with(json_get(pool, STR("instanceTypes")), "name", "a.small");
    EXPECT_STR(json_str(json_path(type, "cpu")), "2");
    EXPECT_STR(json_str(json_path(type, "memory")), "4Gi");
    EXPECT_STR(json_str(json_path(type, "allocatable.cpu")), "1900m");
    EXPECT_STR(json_str(json_get(json_get(type, STR("capacity")), STR("example.com/slots"))), "3");
    EXPECT_STR(json_str(json_get(json_get(type, STR("labels")), STR("example.com/family"))), "a");
    EXPECT_EQ(json_count(json_get(type, STR("offerings"))), 4);
    const json_val *offering =
        item_with(json_get(type, STR("offerings")), "capacityType", "on-demand");
    EXPECT_TRUE(json_double(json_get(offering, STR("price"))) == 0.04);
    EXPECT_TRUE(json_double(json_get(offering, STR("priceBefore"))) == 0.08);
    EXPECT_STR(json_str(json_path(type, "cheapest.zone")), "z-1b");
    const json_val *out = item_with(json_get(pool, STR("excluded")), "name", "b.small");
    EXPECT_STR(json_str(json_get(out, STR("reason"))), "requirements");

    const json_val *varied = item_with(json_get(root, STR("nodePools")), "name", "varied");
    const json_val *min =
        item_with(json_get(varied, STR("minValues")), "key", "example.com/family");
    EXPECT_FALSE(json_bool(json_get(min, STR("met"))));
    const json_val *overlay = item_with(json_get(root, STR("overlays")), "name", "discount");
    EXPECT_STR(json_str(json_get(overlay, STR("state"))), "accepted");
    doc_done(&doc);
}

TEST(a_preview_shows_prices_and_capacity_before_and_after)
{
    AUTO_RESULT r = karve(TYPES_OF POOLS "--preview tests/instance_types/discount.yaml");
    EXPECT_EQ(r.code, 0);
    EXPECT_HAS(buf_str(&r.out), "NodeOverlay discount is new, and would be accepted");
    EXPECT_HAS(buf_str(&r.out),
               "NODEPOOL  NAME     CAPACITY TYPE  ZONES z-1*  BEFORE  AFTER   CHANGE\n"
               "general   a.small  on-demand      a,b         0.0800  0.0400  -50.0%\n");
    EXPECT_HAS(buf_str(&r.out), "NODEPOOL  RESOURCE           BEFORE  AFTER  TYPES\n"
                                "general   example.com/slots  0       3      a.small\n");
    EXPECT_HAS(buf_str(&r.out), "--all shows them");
    AUTO_RESULT all = karve(TYPES_OF POOLS "--all --preview tests/instance_types/discount.yaml");
    EXPECT_HAS(buf_str(&all.out), "varied    a.large  on-demand");
}

TEST(a_preview_of_an_overlay_that_would_be_rejected_exits_1)
{
    AUTO_RESULT r = karve(TYPES_OF POOLS DISCOUNT "--preview tests/instance_types/clash.yaml");
    EXPECT_EQ(r.code, 1);
    EXPECT_HAS(buf_str(&r.out), "tests/instance_types/clash.yaml:2: NodeOverlay clash is new, and "
                                "would be rejected (conflict): ");
    EXPECT_HAS(buf_str(&r.out), "nothing would change\n");
    AUTO_RESULT json =
        karve(TYPES_OF POOLS DISCOUNT "-o json --preview tests/instance_types/clash.yaml");
    EXPECT_EQ(json.code, 1);
    struct doc doc;
    const json_val *preview = json_at(json_get(json_of(&json, &doc), STR("previews")), 0);
    EXPECT_STR(json_str(json_get(preview, STR("state"))), "conflict");
    EXPECT_EQ(json_count(json_get(preview, STR("changes"))), 0);
    doc_done(&doc);
}

TEST(a_preview_of_an_overlay_that_is_there_replaces_it)
{
    AUTO_RESULT r = sh(
        "karve " TYPES_OF POOLS DISCOUNT "-p general --preview -",
        STR("apiVersion: karpenter.sh/v1alpha1\nkind: NodeOverlay\nmetadata: {name: discount}\n"
            "spec:\n  requirements:\n  - {key: karpenter.sh/capacity-type, operator: In, values: "
            "[on-demand]}\n  price: \"0.07\"\n"));
    EXPECT_EQ(r.code, 0);
    EXPECT_HAS(buf_str(&r.out), "discount replaces the one of that name, and would be accepted");
    EXPECT_HAS(buf_str(&r.out), "0.0400 (discount)  0.0700  +75.0%");
}

TEST(a_preview_of_a_file_that_has_no_valid_overlay_exits_1)
{
    AUTO_RESULT none = karve(TYPES_OF "--preview tests/instance_types/pools.yaml");
    EXPECT_EQ(none.code, 1);
    EXPECT_HAS(buf_str(&none.err), "there is no NodeOverlay in");
    AUTO_RESULT bad = sh("karve " TYPES_OF "--preview -",
                         STR("apiVersion: karpenter.sh/v1alpha1\nkind: NodeOverlay\n"
                             "metadata: {name: x}\nspec: {requirements: [], price: cheap}\n"));
    EXPECT_EQ(bad.code, 1);
    EXPECT_HAS(buf_str(&bad.err), "NodeOverlay/x: spec.price");
    AUTO_RESULT gate =
        karve(TYPES_OF "--preview tests/instance_types/discount.yaml --node-overlay false");
    EXPECT_EQ(gate.code, 2);
}

TEST(instance_types_of_bad_input_says_where_and_exits_by_the_contract)
{
    AUTO_RESULT manifest =
        sh("karve instance-types -f -", STR("apiVersion: karpenter.sh/v1\nkind: NodePool\n"
                                            "metadata: {name: web}\nspec: {wieght: 1}\n"));
    EXPECT_EQ(manifest.code, 1);
    EXPECT_HAS(buf_str(&manifest.err), "stdin:4:8: NodePool/web: spec.wieght");
    EXPECT_EQ(manifest.out.len, 0);
    AUTO_RESULT catalogue = sh("karve instance-types --catalogue -",
                               STR("instanceTypes:\n- name: x\n  capacity: {cpu: much}\n"));
    EXPECT_EQ(catalogue.code, 1);
    EXPECT_HAS(buf_str(&catalogue.err), "stdin:3:");
    EXPECT_HAS(buf_str(&catalogue.err), "instanceTypes[0].capacity");
    AUTO_RESULT missing = karve("instance-types --catalogue /no/such/file");
    EXPECT_EQ(missing.code, 3);
    AUTO_RESULT no_manifest = karve("instance-types -f /no/such/file");
    EXPECT_EQ(no_manifest.code, 3);
    AUTO_RESULT region = karve("instance-types --region eu-west-11");
    EXPECT_EQ(region.code, 2);
    EXPECT_HAS(buf_str(&region.err), "did you mean eu-west-1?");
    AUTO_RESULT argument = karve("instance-types examples/shop");
    EXPECT_EQ(argument.code, 2);
    EXPECT_HAS(buf_str(&argument.err), "-f");
}

TEST(instance_types_says_when_a_node_class_is_not_among_the_manifests)
{
    AUTO_RESULT r = karve("instance-types " POOLS "-p cheap");
    EXPECT_EQ(r.code, 0);
    EXPECT_HAS(buf_str(&r.err), "NodePool/cheap: EC2NodeClass/default is not among the manifests");
    AUTO_RESULT shop = karve("instance-types -f examples/shop");
    EXPECT_STR(buf_str(&shop.err), "");
    EXPECT_EQ(shop.code, 0);
    EXPECT_HAS(buf_str(&shop.out), "NodePool arm64 (EC2NodeClass/graviton): ");
    EXPECT_HAS(buf_str(&shop.out), "c7g.large ");
}

TEST(instance_types_of_a_kwok_pool_are_those_of_kwok)
{
    struct str pools = STR("apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: fake}\n"
                           "spec:\n  template:\n    spec:\n      nodeClassRef: {group: "
                           "karpenter.kwok.sh, kind: KWOKNodeClass, name: default}\n"
                           "      requirements:\n      - {key: karpenter.kwok.sh/instance-family, "
                           "operator: In, values: [c]}\n");
    AUTO_RESULT r = sh("karve instance-types -f -", pools);
    EXPECT_EQ(r.code, 0);
    EXPECT_STR(buf_str(&r.err), "");
    EXPECT_HAS(buf_str(&r.out),
               "NodePool fake (KWOKNodeClass/default): 48 of 144 instance types\n");
    EXPECT_HAS(buf_str(&r.out), "ZONES test-zone-*");
    EXPECT_HAS(buf_str(&r.out), "c-1x-amd64-linux");
    EXPECT_HAS(buf_str(&r.out), "0.0190  0.0271\n");
    /* Labels of EC2 are no labels of its types. */
    AUTO_RESULT ec2 = sh("karve instance-types -f - -r karpenter.k8s.aws/instance-cpu=4", pools);
    EXPECT_HAS(buf_str(&ec2.out),
               "0 of 144 instance types\nnone can be had: label "
               "karpenter.k8s.aws/instance-cpu has no known values; did you mean "
               "karpenter.kwok.sh/instance-cpu?\n");
}

TEST(instance_types_without_a_nodepool_has_no_column_for_it_and_says_so)
{
    AUTO_RESULT r = karve(TYPES_OF DISCOUNT "--preview tests/instance_types/clash.yaml");
    EXPECT_HAS(buf_str(&r.err), "there is no NodePool among the manifests: this is the whole "
                                "catalogue\n");
    EXPECT_HAS(buf_str(&r.out), "would be rejected (conflict)");
    EXPECT_TRUE(strstr(r.out.p, "NodePool") == NULL);
    EXPECT_TRUE(strstr(r.out.p, "NODEPOOL") == NULL);
}

TEST(instance_types_says_what_does_not_go_with_the_node_class)
{
    AUTO_RESULT r = karve("instance-types --all -r karpenter.k8s.aws/instance-family=a1");
    EXPECT_EQ(r.code, 0);
    EXPECT_HAS(buf_str(&r.out), "offering      AL2023 does not boot on the first Graviton\n");
}

TEST(standard_input_can_be_named_once)
{
    AUTO_RESULT r = sh("karve instance-types -f - --catalogue -", STR(""));
    EXPECT_EQ(r.code, 2);
    EXPECT_HAS(buf_str(&r.err), "standard input (-) can be read once only");
}

TEST(output_that_cannot_be_written_exits_3_however_much_it_is)
{
    static const char *const commands[] = { "--help",
                                            "crds",
                                            "validate -f examples/shop -o json",
                                            "validate -f examples/shop",
                                            "instance-types",
                                            "instance-types -r kubernetes.io/arch=none" };
    for (size_t i = 0; i < KV_COUNT_OF(commands); i++) {
        AUTO_BUF command = { 0 };
        buf_addf(&command, "karve %s > /dev/full", commands[i]);
        AUTO_RESULT r = sh(command.p, STR(""));
        EXPECT_EQ(r.code, 3);
        EXPECT_HAS(buf_str(&r.err), "standard output: No space left on device");
    }
}

TEST(the_built_in_catalogue_is_that_of_the_region_asked_for)
{
    AUTO_RESULT r = karve("instance-types --region eu-west-1 -r "
                          "node.kubernetes.io/instance-type=m7i.large");
    EXPECT_EQ(r.code, 0);
    EXPECT_HAS(buf_str(&r.out), "ZONES eu-west-1*");
    EXPECT_HAS(buf_str(&r.out), "m7i.large");
}
