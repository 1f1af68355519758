#include "support/test.h"

#include "bootstrap/launch_template.h"

/* A class from the inside of its spec, and the template for it. */
struct made {
    struct arena arena;
    struct object_pool *pool;
    const struct object *object;
    struct launch_template t;
    struct err err;
    int rc;
};

static void made_done(struct made *m)
{
    object_unref(m->object);
    object_pool_free(m->pool);
    arena_done(&m->arena);
}
#define AUTO_MADE __attribute__((cleanup(made_done))) struct made

static const struct str groups[] = { { "sg-1", 4 }, { "sg-2", 4 } };

static struct launch_choice choice(void)
{
    return (struct launch_choice){
        .cluster_name = STR("orchard"),
        .nodepool = STR("fruit"),
        .class_name = STR("default"),
        .region = STR("eu-west-1"),
        .image_id = STR("ami-1"),
        .user_data = STR("hello"),
        .instance_profile = STR("profile"),
        .security_groups = { groups, 2 },
        .capacity_type = STR("on-demand"),
        .reserved_capacity = true,
    };
}

static struct made make(const char *family, const char *spec, struct launch_choice c)
{
    struct made m = { .pool = object_pool_new() };
    struct doc doc;
    AUTO_BUF text = { 0 };
    buf_addf(&text, "{\"metadata\":{\"name\":\"default\"},\"spec\":{\"amiFamily\":\"%s\"%s%s}}",
             family, *spec ? "," : "", spec);
    EXPECT_OK(json_read(buf_str(&text), &doc, &m.err), m.err);
    EXPECT_OK(object_decode(m.pool, &ec2nodeclass_kind, doc.root, &m.object, &m.err), m.err);
    doc_done(&doc);
    m.rc = launch_template_build(&m.arena, ec2nodeclass_of(m.object), &c, &m.t, &m.err);
    return m;
}

#define OK(m) EXPECT_OK((m).rc, (m).err)

TEST(a_bare_class_gets_the_defaults_of_its_family)
{
    static const struct {
        const char *family;
        uint32_t count;
        const char *last;
        int64_t gib;
    } rows[] = {
        { "AL2", 1, "/dev/xvda", 20 },
        { "AL2023", 1, "/dev/xvda", 20 },
        { "Bottlerocket", 2, "/dev/xvdb", 20 },
        { "Windows2022", 1, "/dev/sda1", 50 },
        { "Custom", 0, NULL, 0 },
    };
    for (size_t i = 0; i < KV_COUNT_OF(rows); i++) {
        AUTO_MADE m = make(rows[i].family, "", choice());
        OK(m);
        EXPECT_EQ(m.t.block_devices.count, rows[i].count);
        if (!rows[i].count)
            continue;
        const struct launch_device *last = &m.t.block_devices.items[rows[i].count - 1];
        EXPECT_STR(last->name, rows[i].last);
        EXPECT_EQ(last->size_gib, rows[i].gib);
        EXPECT_EQ(last->type, VOLUME_GP3);
        EXPECT_EQ(last->encrypted, TRI_TRUE);
    }
    AUTO_MADE m = make("AL2023", "", choice());
    EXPECT_STR(m.t.user_data, "aGVsbG8=");
    EXPECT_EQ(m.t.metadata.http_endpoint, ON_OFF_ENABLED);
    EXPECT_EQ(m.t.metadata.http_ipv6, ON_OFF_DISABLED);
    EXPECT_EQ(m.t.metadata.http_tokens, HTTP_TOKENS_REQUIRED);
    EXPECT_EQ(m.t.metadata.hop_limit, 1);
    EXPECT_Z(m.t.metadata.instance_tags, "disabled");
    EXPECT_STR(m.t.placement.tenancy, "default");
    EXPECT_EQ(m.t.monitoring, TRI_UNSET);
}

TEST(volumes_are_whole_gib_rounded_up)
{
    AUTO_MADE m = make("AL2023",
                       "\"blockDeviceMappings\":["
                       "{\"deviceName\":\"/dev/xvda\",\"ebs\":{\"volumeSize\":\"100G\",\"iops\":0,"
                       "\"volumeType\":\"gp3\",\"throughput\":250,\"kmsKeyID\":\"key\","
                       "\"deleteOnTermination\":false,\"encrypted\":true}},"
                       "{\"deviceName\":\"/dev/xvdb\",\"ebs\":{\"snapshotID\":\"snap-1\","
                       "\"volumeInitializationRate\":150}},"
                       "{\"deviceName\":\"/dev/xvdc\"}]",
                       choice());
    OK(m);
    const struct launch_device *d = m.t.block_devices.items;
    EXPECT_EQ(m.t.block_devices.count, 3);
    EXPECT_EQ(d[0].size_gib, 94); /* 93.13 */
    EXPECT_EQ(d[0].iops, 0);
    EXPECT_EQ(d[0].throughput, 250);
    EXPECT_EQ(d[0].delete_on_termination, TRI_FALSE);
    EXPECT_STR(d[0].kms_key_id, "key");
    EXPECT_EQ(d[1].size_gib, 0);
    EXPECT_STR(d[1].snapshot_id, "snap-1");
    EXPECT_EQ(d[1].initialization_rate, 150);
    EXPECT_FALSE(d[2].has_ebs);
}

TEST(what_ec2_would_refuse_is_refused_with_the_field)
{
#define VOLUME(inside)                                                                             \
    "\"blockDeviceMappings\":[{\"deviceName\":\"/dev/xvda\",\"ebs\":{" inside "}}]"
    static const struct {
        const char *spec, *says;
    } rows[] = {
        { VOLUME("\"iops\":3000"), "spec.blockDeviceMappings[0].ebs: expected volumeSize" },
        { VOLUME("\"volumeSize\":\"100\""), "[0].ebs.volumeSize: is not a volume's size" },
        { VOLUME("\"volumeSize\":\"1Gi\",\"volumeType\":\"gp2\",\"iops\":3000"),
          "[0].ebs.iops: volumes of gp2 take none" },
        { VOLUME("\"volumeSize\":\"1Gi\",\"volumeType\":\"io2\",\"iops\":100,\"throughput\":1"),
          "[0].ebs.throughput: volumes of io2 take none" },
        { VOLUME("\"volumeSize\":\"1Gi\",\"volumeType\":\"io1\""), "volumes of io1 need it" },
        { VOLUME("\"volumeSize\":\"1Gi\",\"volumeInitializationRate\":100"), "needs snapshotID" },
        { "\"blockDeviceMappings\":[{\"ebs\":{\"volumeSize\":\"1Gi\"}}]", "[0].deviceName" },
        { "\"associatePublicIPAddress\":true,\"networkInterfaces\":["
          "{\"networkCardIndex\":0,\"deviceIndex\":0,\"interfaceType\":\"interface\"},"
          "{\"networkCardIndex\":1,\"deviceIndex\":1,\"interfaceType\":\"efa-only\"}]",
          "spec.associatePublicIPAddress" },
    };
    for (size_t i = 0; i < KV_COUNT_OF(rows); i++) {
        AUTO_MADE m = make("AL2023", rows[i].spec, choice());
        EXPECT_ERR(m.rc, m.err, ERR_INVALID);
        EXPECT_HAS(str_of(m.err.text), rows[i].says);
    }
}

TEST(what_was_not_resolved_is_named)
{
    static char large[16385];
    memset(large, 'x', sizeof large);
    struct launch_choice c[7];
    for (size_t i = 0; i < KV_COUNT_OF(c); i++)
        c[i] = choice();
    c[0].image_id = STR("");
    c[1].instance_profile = STR_NONE;
    c[2].cluster_name = STR_NONE;
    c[3].security_groups.count = 0;
    c[4].user_data = (struct str){ large, sizeof large };
    c[5].capacity_type = STR("reserved");
    c[6].capacity_type = STR("reserved");
    c[6].reservation_id = STR("cr-1");
    c[6].reserved_capacity = false;
    static const char *const says[] = {
        "needs an image",    "needs an instance profile",        "the cluster's name",
        "no security group", "16385 bytes with what karve adds", "the id of its reservation",
        "not enabled",
    };
    for (size_t i = 0; i < KV_COUNT_OF(c); i++) {
        AUTO_MADE m = make("AL2023", "", c[i]);
        EXPECT_ERR(m.rc, m.err, ERR_INVALID);
        EXPECT_HAS(str_of(m.err.text), says[i]);
    }
    c[4].user_data.len--;
    AUTO_MADE m = make("AL2023", "", c[4]);
    OK(m);
}

/* --- interfaces --- */

TEST(one_interface_is_the_default_and_carries_what_the_class_says)
{
    AUTO_MADE m = make("AL2023",
                       "\"associatePublicIPAddress\":false,\"ipPrefixCount\":2,"
                       "\"connectionTracking\":{\"udpTimeout\":45}",
                       choice());
    OK(m);
    const struct launch_interface *i = m.t.interfaces.items;
    EXPECT_EQ(m.t.interfaces.count, 1);
    EXPECT_EQ(i->groups.count, 2);
    EXPECT_EQ(i->associate_public_ip, TRI_FALSE);
    EXPECT_EQ(i->ipv4_prefix_count.value, 2);
    EXPECT_EQ(i->ipv6_address_count, 0);
    EXPECT_TRUE(i->type == NULL);
    EXPECT_EQ(i->maybe_tracking->udp_s.value, 45);

    struct launch_choice c = choice();
    c.ipv6 = true;
    AUTO_MADE six = make("AL2023", "\"ipPrefixCount\":2", c);
    OK(six);
    EXPECT_FALSE(six.t.interfaces.items->ipv4_prefix_count.set);
    EXPECT_EQ(six.t.interfaces.items->ipv6_prefix_count.value, 2);
    EXPECT_EQ(six.t.interfaces.items->ipv6_address_count, 1);
    EXPECT_TRUE(six.t.interfaces.items->primary_ipv6);
}

TEST(each_efa_that_is_asked_for_is_on_a_card_of_its_own)
{
    struct launch_choice c = choice();
    c.efa_count = 4;
    AUTO_MADE m = make("AL2023", "\"ipPrefixCount\":1", c);
    OK(m);
    EXPECT_EQ(m.t.interfaces.count, 4);
    for (uint32_t i = 0; i < 4; i++) {
        const struct launch_interface *interface = &m.t.interfaces.items[i];
        EXPECT_EQ(interface->card_index, i);
        EXPECT_EQ(interface->device_index, i ? 1 : 0);
        EXPECT_Z(interface->type, "efa");
        EXPECT_EQ(interface->ipv4_prefix_count.set, i == 0);
    }
}

TEST(listed_interfaces_are_taken_as_they_are_and_efa_only_ones_get_no_addresses)
{
    struct launch_choice c = choice();
    c.efa_count = 4; /* the list wins */
    AUTO_MADE m = make("AL2023",
                       "\"ipPrefixCount\":1,\"connectionTracking\":{\"udpTimeout\":45},"
                       "\"associatePublicIPAddress\":false,\"networkInterfaces\":["
                       "{\"networkCardIndex\":0,\"deviceIndex\":0,\"interfaceType\":\"interface\"},"
                       "{\"networkCardIndex\":1,\"deviceIndex\":1,\"interfaceType\":\"efa-only\"}]",
                       c);
    OK(m);
    const struct launch_interface *i = m.t.interfaces.items;
    EXPECT_EQ(m.t.interfaces.count, 2);
    EXPECT_EQ(i[0].ipv4_prefix_count.value, 1);
    EXPECT_TRUE(i[0].maybe_tracking != NULL);
    EXPECT_EQ(i[1].card_index, 1);
    EXPECT_Z(i[1].type, "efa-only");
    EXPECT_FALSE(i[1].ipv4_prefix_count.set);
    EXPECT_EQ(i[1].associate_public_ip, TRI_UNSET);
    EXPECT_TRUE(i[1].maybe_tracking == NULL);
    EXPECT_EQ(i[1].groups.count, 2);
}

/* --- the rest --- */

TEST(passthroughs_are_carried)
{
    struct launch_choice c = choice();
    c.tenancy = STR("dedicated");
    c.placement_group_id = STR("pg-1");
    c.partition = (struct maybe_int){ 3, true };
    c.enclaves = true;
    AUTO_MADE m = make("AL2023",
                       "\"detailedMonitoring\":true,\"cpuOptions\":{\"nestedVirtualization\":"
                       "\"enabled\"},\"metadataOptions\":{\"httpEndpoint\":\"disabled\","
                       "\"httpProtocolIPv6\":\"enabled\",\"httpPutResponseHopLimit\":2,"
                       "\"httpTokens\":\"optional\"}",
                       c);
    OK(m);
    EXPECT_EQ(m.t.monitoring, TRI_TRUE);
    EXPECT_EQ(m.t.nested_virtualization, ON_OFF_ENABLED);
    EXPECT_TRUE(m.t.enclaves);
    EXPECT_EQ(m.t.metadata.http_endpoint, ON_OFF_DISABLED);
    EXPECT_EQ(m.t.metadata.http_ipv6, ON_OFF_ENABLED);
    EXPECT_EQ(m.t.metadata.hop_limit, 2);
    EXPECT_EQ(m.t.metadata.http_tokens, HTTP_TOKENS_OPTIONAL);
    EXPECT_STR(m.t.placement.tenancy, "dedicated");
    EXPECT_STR(m.t.placement.group_id, "pg-1");
    EXPECT_EQ(m.t.placement.partition.value, 3);

    c.region = STR("us-isob-east-1");
    AUTO_MADE iso = make("AL2023", "\"metadataOptions\":{\"httpProtocolIPv6\":\"enabled\"}", c);
    EXPECT_EQ(iso.t.metadata.http_ipv6, ON_OFF_UNSET);
}

TEST(reservations_are_used_only_when_they_are_meant)
{
    static const struct {
        const char *capacity_type;
        bool gate, block, interruptible;
        const char *preference, *market; /* NULL: nothing is said */
    } rows[] = {
        { "on-demand", true, false, false, "none", NULL },
        { "spot", true, false, false, "none", NULL },
        { "spot", false, false, false, NULL, NULL },
        { "reserved", true, false, false, "capacity-reservations-only", NULL },
        { "reserved", true, true, false, "capacity-reservations-only", "capacity-block" },
        { "reserved", true, false, true, "capacity-reservations-only",
          "interruptible-capacity-reservation" },
    };
    for (size_t i = 0; i < KV_COUNT_OF(rows); i++) {
        struct launch_choice c = choice();
        c.capacity_type = str_of(rows[i].capacity_type);
        c.reserved_capacity = rows[i].gate;
        c.capacity_block = rows[i].block;
        c.interruptible = rows[i].interruptible;
        c.reservation_id = STR("cr-1");
        AUTO_MADE m = make("AL2023", "", c);
        OK(m);
        EXPECT_STR(str_of(m.t.reservation.preference), rows[i].preference);
        EXPECT_STR(str_of(m.t.market_type), rows[i].market);
        bool reserved = str_eqz(c.capacity_type, "reserved");
        EXPECT_STR(m.t.reservation.target_id, reserved ? "cr-1" : NULL);
        EXPECT_EQ(m.t.tags_spot_request, str_eqz(c.capacity_type, "spot"));
    }
}

TEST(our_tags_win_over_the_classes)
{
    AUTO_MADE m = make(
        "AL2023", "\"tags\":{\"team\":\"pear\",\"a\":\"1\",\"eks:eks-cluster-name\":\"other\"}",
        choice());
    OK(m);
    AUTO_BUF b = { 0 };
    for (uint32_t i = 0; i < m.t.tags.count; i++)
        buf_addf(&b, "%.*s=%.*s ", STR_ARG(m.t.tags.items[i].key),
                 STR_ARG(m.t.tags.items[i].value));
    EXPECT_STR(buf_str(&b), "a=1 eks:eks-cluster-name=orchard "
                            "karpenter.k8s.aws/ec2nodeclass=default karpenter.sh/nodepool=fruit "
                            "kubernetes.io/cluster/orchard=owned team=pear ");
}

/* --- the name --- */

TEST(the_name_depends_on_everything_and_on_nothing_else)
{
    char names[12][LAUNCH_TEMPLATE_NAME_MAX];
    static const char *const specs[] = {
        "",
        "\"detailedMonitoring\":true",
        "\"detailedMonitoring\":false",
        "\"blockDeviceMappings\":[{\"deviceName\":\"/dev/xvda\",\"ebs\":{\"volumeSize\":\"20Gi\"}}]",
        "\"ipPrefixCount\":0",
        "\"connectionTracking\":{\"udpTimeout\":45}",
        "\"tags\":{\"a\":\"bc\"}",
        "\"tags\":{\"ab\":\"c\"}",
        "\"metadataOptions\":{\"httpPutResponseHopLimit\":2}",
        "\"cpuOptions\":{\"nestedVirtualization\":\"disabled\"}",
        "\"associatePublicIPAddress\":true",
        "\"tags\":{}",
    };
    for (size_t i = 0; i < KV_COUNT_OF(specs); i++) {
        AUTO_MADE m = make("AL2023", specs[i], choice());
        OK(m);
        launch_template_name(&m.t, names[i]);
        EXPECT_TRUE(str_starts(str_of(names[i]), STR("karpenter.k8s.aws/")));
        EXPECT_EQ(strlen(names[i]), 18 + 16);
        for (size_t j = 0; j < i; j++)
            EXPECT_EQ(strcmp(names[i], names[j]) == 0, i == 11 && j == 0);
    }
    struct launch_choice c = choice();
    c.user_data = STR("hello!");
    AUTO_MADE m = make("AL2023", "", c);
    char other[LAUNCH_TEMPLATE_NAME_MAX];
    launch_template_name(&m.t, other);
    EXPECT_TRUE(strcmp(other, names[0]) != 0);
}
