#include "support/test.h"

#include "bootstrap/ami.h"

/* --- aliases --- */

TEST(an_alias_is_a_family_and_a_version)
{
    static const struct {
        const char *text;
        enum ami_family family;
        bool latest;
    } rows[] = {
        { "al2@latest", AMI_FAMILY_AL2, true },
        { "al2@v20260101", AMI_FAMILY_AL2, false },
        { "al2023@v20260714", AMI_FAMILY_AL2023, false },
        { "bottlerocket@v1.46.0", AMI_FAMILY_BOTTLEROCKET, false },
        { "bottlerocket@1.46.0", AMI_FAMILY_BOTTLEROCKET, false },
        { "windows2019@latest", AMI_FAMILY_WINDOWS2019, true },
        { "windows2022@latest", AMI_FAMILY_WINDOWS2022, true },
        { "windows2025@latest", AMI_FAMILY_WINDOWS2025, true },
    };
    for (size_t i = 0; i < KV_COUNT_OF(rows); i++) {
        struct ami_alias alias = { 0 };
        struct err err = { 0 };
        EXPECT_OK(ami_alias_parse(str_of(rows[i].text), &alias, &err), err);
        EXPECT_EQ(alias.family, rows[i].family);
        EXPECT_EQ(alias.latest, rows[i].latest);
        EXPECT_TRUE(str_ends(str_of(rows[i].text), alias.version));
    }
}

TEST(what_is_no_alias_is_refused_with_what_was_expected)
{
    static const struct {
        const char *text, *says;
    } rows[] = {
        { "", "expected family@version" },
        { "al2023", "expected family@version" },
        { "al2023@", "expected family@version" },
        { "al2023@a/../b", "expected family@version" },
        { "al2023@latest@latest", "expected family@version" },
        { "al2023@v2026071400000000000000000", "at most 30" },
        { "AL2023@latest", "no such family" },
        { "custom@latest", "no such family" },
        { "@latest", "no such family" },
        { "windows2022@v1", "only the version latest" },
    };
    for (size_t i = 0; i < KV_COUNT_OF(rows); i++) {
        struct ami_alias alias;
        struct err err = { 0 };
        EXPECT_ERR(ami_alias_parse(str_of(rows[i].text), &alias, &err), err, ERR_INVALID);
        EXPECT_HAS(str_of(err.text), rows[i].says);
    }
}

/* --- parameters --- */

static void expect_parameters(const char *text, const char *version, const char *want)
{
    AUTO_ARENA arena = { 0 };
    AUTO_BUF b = { 0 };
    struct ami_alias alias;
    ami_parameters parameters;
    struct err err = { 0 };
    EXPECT_OK(ami_alias_parse(str_of(text), &alias, &err), err);
    EXPECT_OK(ami_alias_parameters(&arena, &alias, str_of(version), &parameters, &err), err);
    for (uint32_t i = 0; i < parameters.count; i++) {
        uint8_t v = parameters.items[i].variants;
        buf_addf(&b, "%.*s%s%s%s%s\n", STR_ARG(parameters.items[i].path),
                 v & AMI_STANDARD ? " standard" : "", v & AMI_NVIDIA ? " nvidia" : "",
                 v & AMI_NEURON ? " neuron" : "", v & AMI_WINDOWS ? " windows" : "");
    }
    EXPECT_STR(buf_str(&b), want);
}

#define EKS "/aws/service/eks/optimized-ami/"
#define BR "/aws/service/bottlerocket/"
#define WIN "/aws/service/ami-windows-latest/Windows_Server-"

TEST(every_alias_names_its_parameters)
{
    expect_parameters("al2@latest", "1.32",
                      EKS "1.32/amazon-linux-2/recommended/image_id standard\n" EKS
                          "1.32/amazon-linux-2-arm64/recommended/image_id standard\n" EKS
                          "1.32/amazon-linux-2-gpu/recommended/image_id nvidia neuron\n");
    expect_parameters(
        "al2@v20260101", "1.31",
        EKS "1.31/amazon-linux-2/amazon-eks-node-1.31-v20260101/image_id standard\n" EKS
            "1.31/amazon-linux-2-arm64/amazon-eks-arm64-node-1.31-v20260101/image_id "
            "standard\n" EKS "1.31/amazon-linux-2-gpu/amazon-eks-gpu-node-1.31-v20260101/image_id "
            "nvidia neuron\n");
    expect_parameters("al2023@latest", "1.33",
                      EKS
                      "1.33/amazon-linux-2023/x86_64/standard/recommended/image_id standard\n" EKS
                      "1.33/amazon-linux-2023/x86_64/nvidia/recommended/image_id nvidia\n" EKS
                      "1.33/amazon-linux-2023/x86_64/neuron/recommended/image_id neuron\n" EKS
                      "1.33/amazon-linux-2023/arm64/standard/recommended/image_id standard\n" EKS
                      "1.33/amazon-linux-2023/arm64/nvidia/recommended/image_id nvidia\n");
    expect_parameters(
        "al2023@v20260714", "1.33",
        EKS "1.33/amazon-linux-2023/x86_64/standard/"
            "amazon-eks-node-al2023-x86_64-standard-1.33-v20260714/image_id standard\n" EKS
            "1.33/amazon-linux-2023/x86_64/nvidia/"
            "amazon-eks-node-al2023-x86_64-nvidia-1.33-v20260714/image_id nvidia\n" EKS
            "1.33/amazon-linux-2023/x86_64/neuron/"
            "amazon-eks-node-al2023-x86_64-neuron-1.33-v20260714/image_id neuron\n" EKS
            "1.33/amazon-linux-2023/arm64/standard/"
            "amazon-eks-node-al2023-arm64-standard-1.33-v20260714/image_id standard\n" EKS
            "1.33/amazon-linux-2023/arm64/nvidia/"
            "amazon-eks-node-al2023-arm64-nvidia-1.33-v20260714/image_id nvidia\n");
    const char *bottlerocket = BR "aws-k8s-1.33/x86_64/1.46.0/image_id standard neuron\n" BR
                                  "aws-k8s-1.33/arm64/1.46.0/image_id standard\n" BR
                                  "aws-k8s-1.33-nvidia/x86_64/1.46.0/image_id nvidia\n" BR
                                  "aws-k8s-1.33-nvidia/arm64/1.46.0/image_id nvidia\n";
    expect_parameters("bottlerocket@v1.46.0", "1.33", bottlerocket);
    expect_parameters("bottlerocket@1.46.0", "1.33", bottlerocket);
    expect_parameters("bottlerocket@latest", "1.33",
                      BR "aws-k8s-1.33/x86_64/latest/image_id standard neuron\n" BR
                         "aws-k8s-1.33/arm64/latest/image_id standard\n" BR
                         "aws-k8s-1.33-nvidia/x86_64/latest/image_id nvidia\n" BR
                         "aws-k8s-1.33-nvidia/arm64/latest/image_id nvidia\n");
    expect_parameters("windows2019@latest", "1.33",
                      WIN "2019-English-Core-EKS_Optimized-1.33/image_id windows\n");
    expect_parameters("windows2022@latest", "1.33",
                      WIN "2022-English-Core-EKS_Optimized-1.33/image_id windows\n");
    expect_parameters("windows2025@latest", "1.35",
                      WIN "2025-English-Core-EKS_Optimized-1.35/image_id windows\n");
}

TEST(versions_without_images_are_refused)
{
    static const struct {
        const char *alias, *version, *says;
    } rows[] = {
        { "al2@latest", "1.33", "there are no AL2 images for Kubernetes 1.33" },
        { "windows2025@latest", "1.34", "the first are for 1.35" },
        { "al2023@latest", "", "is not a version" },
        { "al2023@latest", "1.33/..", "is not a version" },
        { "al2023@latest", "v1.33", "is not a version" },
        { "al2023@latest", "1.", "is not a version" },
        { "al2023@latest", "1.9999", "is not a version" },
    };
    for (size_t i = 0; i < KV_COUNT_OF(rows); i++) {
        AUTO_ARENA arena = { 0 };
        struct ami_alias alias;
        ami_parameters parameters;
        struct err err = { 0 };
        EXPECT_OK(ami_alias_parse(str_of(rows[i].alias), &alias, &err), err);
        EXPECT_ERR(ami_alias_parameters(&arena, &alias, str_of(rows[i].version), &parameters, &err),
                   err, ERR_INVALID);
        EXPECT_HAS(str_of(err.text), rows[i].says);
    }
}

/* --- queries --- */

static void expect_queries(const struct ami_term *terms, uint32_t count, struct str_list ids,
                           const char *want)
{
    AUTO_ARENA arena = { 0 };
    AUTO_BUF b = { 0 };
    struct ec2nodeclass_spec spec = { .ami_terms = { terms, count } };
    ami_queries queries = ami_queries_of(&arena, &spec, ids);
    for (uint32_t q = 0; q < queries.count; q++) {
        for (uint32_t f = 0; f < queries.items[q].filters.count; f++) {
            const struct ami_filter *filter = &queries.items[q].filters.items[f];
            buf_addf(&b, "%s%.*s=", f ? " " : "", STR_ARG(filter->name));
            for (uint32_t v = 0; v < filter->values.count; v++)
                buf_addf(&b, "%s%.*s", v ? "," : "", STR_ARG(filter->values.items[v]));
        }
        for (uint32_t o = 0; o < queries.items[q].owners.count; o++)
            buf_addf(&b, "%s%.*s", o ? "," : " owners=", STR_ARG(queries.items[q].owners.items[o]));
        buf_addc(&b, '\n');
    }
    EXPECT_STR(buf_str(&b), want);
}

TEST(ids_from_everywhere_make_one_query_and_every_other_term_one_each)
{
    static const struct str_pair tags[] = { { { "env", 3 }, { "*", 1 } },
                                            { { "team", 4 }, { "pear", 4 } } };
    const struct ami_term terms[] = {
        { .id = STR("ami-2") },
        { .name = STR("my-image-*") },
        { .name = STR("theirs"), .owner = STR("123456789012") },
        { .tags = { tags, 2 } },
        { .ssm_parameter = STR("/my/ami") },
        { .id = STR("ami-1") },
    };
    const struct str held[] = { STR("ami-3"), STR("not an id"), STR("ami-1") };
    expect_queries(terms, 6, (struct str_list){ held, 3 },
                   "image-id=ami-1,ami-2,ami-3 state=available\n"
                   "name=my-image-* state=available owners=self,amazon\n"
                   "name=theirs state=available owners=123456789012\n"
                   "tag-key=env tag:team=pear state=available\n");
    const struct ami_term alias = { .alias = STR("al2023@latest") };
    expect_queries(&alias, 1, (struct str_list){ held, 1 }, "image-id=ami-3 state=available\n");
    expect_queries(&alias, 1, (struct str_list){ held + 1, 1 }, "");
}

/* --- images --- */

#define DAY ((int64_t)86400 * 1000000)
#define IMAGE(id_, name_, arch_, created, deprecated)                                              \
    {                                                                                              \
        .id = { id_, sizeof(id_) - 1 }, .name = { name_, sizeof(name_) - 1 },                      \
        .architecture = { arch_, sizeof(arch_) - 1 }, .created_us = (created)*DAY,                 \
        .deprecated_us = (deprecated)*DAY                                                          \
    }

static void format_amis(resolved_amis amis, struct buf *b)
{
    static const char *const ops[] = { "?", "In", "NotIn", "Exists", "DoesNotExist" };
    for (uint32_t i = 0; i < amis.count; i++) {
        const struct resolved_ami *ami = &amis.items[i];
        buf_addf(b, "%.*s%s", STR_ARG(ami->id), ami->deprecated ? " deprecated" : "");
        for (uint32_t r = 0; r < ami->requirements.count; r++) {
            const struct expression *e = &ami->requirements.items[r];
            buf_addf(b, " %.*s:%s", STR_ARG(e->key), ops[e->op]);
            if (e->values.count)
                buf_addf(b, ":%.*s", STR_ARG(e->values.items[0]));
        }
        buf_addc(b, '\n');
    }
}

static void expect_amis(enum ami_family family, const struct ami_image *images, uint32_t count,
                        const struct ami_source *sources, uint32_t source_count, const char *want)
{
    AUTO_ARENA arena = { 0 };
    AUTO_BUF b = { 0 };
    format_amis(ami_resolve(&arena, family, images, count, sources, source_count, 100 * DAY), &b);
    EXPECT_STR(buf_str(&b), want);
}

#define GPU "karpenter.k8s.aws/instance-gpu-count"
#define ACCELERATOR "karpenter.k8s.aws/instance-accelerator-count"

TEST(images_of_an_alias_get_the_requirements_of_their_parameters)
{
    const struct ami_image images[] = {
        IMAGE("ami-x", "br-x86", "x86_64", 50, 0),
        IMAGE("ami-a", "br-arm", "arm64", 51, 0),
        IMAGE("ami-n", "br-nvidia", "x86_64", 49, 0),
        IMAGE("ami-i", "old", "i386", 60, 0),
    };
    const struct ami_source sources[] = {
        { STR("ami-x"), AMI_STANDARD | AMI_NEURON },
        { STR("ami-a"), AMI_STANDARD },
        { STR("ami-n"), AMI_NVIDIA },
        { STR("ami-gone"), AMI_NVIDIA },
    };
    expect_amis(
        AMI_FAMILY_BOTTLEROCKET, images, 4, sources, 4,
        "ami-a kubernetes.io/arch:In:arm64 " GPU ":DoesNotExist " ACCELERATOR ":DoesNotExist\n"
        "ami-x kubernetes.io/arch:In:amd64 " GPU ":DoesNotExist " ACCELERATOR ":DoesNotExist\n"
        "ami-x kubernetes.io/arch:In:amd64 " ACCELERATOR ":Exists\n"
        "ami-n kubernetes.io/arch:In:amd64 " GPU ":Exists\n");
}

TEST(windows_images_are_of_their_build)
{
    const struct ami_image image = IMAGE("ami-w", "win", "x86_64", 1, 0);
    const struct ami_source source = { STR("ami-w"), AMI_WINDOWS };
    expect_amis(AMI_FAMILY_WINDOWS2022, &image, 1, &source, 1,
                "ami-w kubernetes.io/os:In:windows kubernetes.io/arch:In:amd64 "
                "node.kubernetes.io/windows-build:In:10.0.20348\n");
}

TEST(of_images_for_the_same_types_the_newest_that_is_not_deprecated_is_kept)
{
    static const struct {
        struct ami_image images[3];
        const char *want;
    } rows[] = {
        { { IMAGE("ami-1", "a", "x86_64", 1, 0), IMAGE("ami-2", "a", "x86_64", 2, 0) }, "ami-2" },
        { { IMAGE("ami-1", "a", "x86_64", 1, 0), IMAGE("ami-2", "a", "x86_64", 2, 100) }, "ami-1" },
        { { IMAGE("ami-1", "a", "x86_64", 1, 0), IMAGE("ami-2", "a", "x86_64", 2, 101) }, "ami-2" },
        { { IMAGE("ami-1", "a", "x86_64", 1, 9), IMAGE("ami-2", "a", "x86_64", 2, 9) },
          "ami-2 deprecated" },
        { { IMAGE("ami-1", "b", "x86_64", 1, 0), IMAGE("ami-2", "a", "x86_64", 1, 0) }, "ami-1" },
        { { IMAGE("ami-2", "a", "x86_64", 1, 0), IMAGE("ami-1", "a", "x86_64", 1, 0) }, "ami-1" },
    };
    for (size_t i = 0; i < KV_COUNT_OF(rows); i++) {
        AUTO_ARENA arena = { 0 };
        struct str want = arena_strf(&arena, "%s kubernetes.io/arch:In:amd64\n", rows[i].want);
        expect_amis(AMI_FAMILY_CUSTOM, rows[i].images, 2, NULL, 0, want.p);
        /* Their order in the answer does not count. */
        const struct ami_image turned[] = { rows[i].images[1], rows[i].images[0] };
        expect_amis(AMI_FAMILY_CUSTOM, turned, 2, NULL, 0, want.p);
    }
    expect_amis(AMI_FAMILY_CUSTOM, NULL, 0, NULL, 0, "");
}

/* --- an image for a type --- */

static struct requirements labels(struct arena *arena, const char *arch, bool gpu, bool neuron)
{
    struct str *value = arena_array(arena, struct str, 1);
    value[0] = str_of(arch);
    struct requirement items[] = {
        requirement_in(arena, STR(LABEL_ARCH), (struct str_list){ value, 1 }),
        gpu ? requirement_in(arena, STR(GPU), (struct str_list){ value, 1 })
            : requirement_does_not_exist(arena, STR(GPU)),
        neuron ? requirement_in(arena, STR(ACCELERATOR), (struct str_list){ value, 1 })
               : requirement_does_not_exist(arena, STR(ACCELERATOR)),
    };
    struct requirements set = { 0 };
    for (size_t i = 0; i < KV_COUNT_OF(items); i++)
        set = requirements_add(arena, &set, &items[i]);
    return set;
}

TEST(a_type_gets_the_first_image_that_suits_it)
{
    AUTO_ARENA arena = { 0 };
    const struct ami_image images[] = {
        IMAGE("ami-std", "a", "x86_64", 3, 0),
        IMAGE("ami-gpu", "b", "x86_64", 2, 0),
        IMAGE("ami-arm", "c", "arm64", 1, 0),
    };
    const struct ami_source sources[] = {
        { STR("ami-std"), AMI_STANDARD | AMI_NEURON },
        { STR("ami-gpu"), AMI_NVIDIA },
        { STR("ami-arm"), AMI_STANDARD },
    };
    resolved_amis amis =
        ami_resolve(&arena, AMI_FAMILY_BOTTLEROCKET, images, 3, sources, 3, 100 * DAY);
    struct ami_choices choices;
    struct err err = { 0 };
    EXPECT_OK(ami_choices_of(&arena, amis.items, amis.count, &choices, &err), err);
    static const struct {
        const char *arch;
        bool gpu, neuron;
        const char *want;
    } rows[] = {
        { "amd64", false, false, "ami-std" }, { "amd64", true, false, "ami-gpu" },
        { "amd64", false, true, "ami-std" },  { "arm64", false, false, "ami-arm" },
        { "arm64", true, false, NULL },
    };
    for (size_t i = 0; i < KV_COUNT_OF(rows); i++) {
        struct requirements type = labels(&arena, rows[i].arch, rows[i].gpu, rows[i].neuron);
        const struct resolved_ami *ami = ami_choose(&choices, &type);
        EXPECT_EQ(ami != NULL, rows[i].want != NULL);
        if (ami)
            EXPECT_STR(ami->id, rows[i].want);
    }
}

/* --- Bottlerocket --- */

TEST(the_version_of_bottlerocket_comes_from_the_alias_a_name_or_the_image)
{
    static const struct {
        struct ami_term term;
        const char *image, *want; /* NULL: nobody says */
    } rows[] = {
        { { .alias = { "bottlerocket@v1.46.0", 20 } }, NULL, "1.46.0" },
        { { .alias = { "bottlerocket@latest", 19 } }, "x-v1.2.3", "latest" },
        { { .name = { "bottlerocket-aws-k8s-1.33-x86_64-v1.45.1-*", 42 } }, NULL, "1.45.1" },
        { { .name = { "bottlerocket-*-v1.4*", 20 } }, NULL, NULL },
        { { .name = { "bottlerocket-*-v1.4*", 20 } }, "b-v1.41.0-2a8b", "1.41.0" },
        { { .id = { "ami-1", 5 } }, "bottlerocket-aws-k8s-1.33-arm64-v1.46.0-7f3c", "1.46.0" },
        { { .id = { "ami-1", 5 } }, "my-very-own", NULL },
        { { .id = { "ami-1", 5 } }, NULL, NULL },
        { { .id = { "ami-1", 5 } }, "x-v1.2-v1.2.3.4-v", NULL },
    };
    for (size_t i = 0; i < KV_COUNT_OF(rows); i++) {
        struct ec2nodeclass_spec spec = { .ami_terms = { &rows[i].term, 1 } };
        struct str got = ami_bottlerocket_version(&spec, str_of(rows[i].image));
        EXPECT_EQ(got.p != NULL, rows[i].want != NULL);
        if (rows[i].want)
            EXPECT_STR(got, rows[i].want);
    }
    const struct ami_term two[] = { { .name = STR("a-v1.46.0-*") },
                                    { .name = STR("b-v1.40.0-*") } };
    struct ec2nodeclass_spec spec = { .ami_terms = { two, 2 } };
    EXPECT_TRUE(ami_bottlerocket_version(&spec, STR_NONE).p == NULL);
    EXPECT_STR(ami_bottlerocket_version(&spec, STR("b-v1.40.0-1")), "1.40.0");
}
