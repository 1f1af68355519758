/* The table of EC2NodeClass's spec. */
#include "api/ec2nodeclass_spec.h"

#include "codec/regex.h"

#include <strings.h>

/* --- block devices --- */

/* Whole numbers up to EC2's 64 TB: 59000Gi, 64000G, 58Ti, 64T. */
#define PATTERN_VOLUME_SIZE                                                                        \
    "^(([1-9][0-9]{0,3}|[1-4][0-9]{4}|5[0-8][0-9]{3}|59000)Gi"                                     \
    "|([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-3][0-9]{3}|64000)G"                                       \
    "|([1-9]|[1-4][0-9]|5[0-8])Ti"                                                                 \
    "|([1-9]|[1-5][0-9]|6[0-4])T)$"

static const char *volume_size_words(struct str text)
{
    if (regex_match_static(PATTERN_VOLUME_SIZE, text))
        return NULL;
    return "is not a volume's size, expected a whole number of Gi, G, Ti or T up to 59000Gi, "
           "64000G, 58Ti or 64T";
}

int64_t ebs_size_gib(struct str size)
{
    static const struct {
        struct str suffix;
        int64_t bytes;
    } units[] = {
        { { "Gi", 2 }, 1LL << 30 },
        { { "G", 1 }, 1000LL * 1000 * 1000 },
        { { "Ti", 2 }, 1LL << 40 },
        { { "T", 1 }, 1000LL * 1000 * 1000 * 1000 },
    };
    int64_t n;
    for (size_t i = 0; i < KV_COUNT_OF(units); i++) {
        if (!str_ends(size, units[i].suffix))
            continue;
        if (!str_to_i64(str_sub(size, 0, size.len - units[i].suffix.len), &n) || n < 1 || n > 64000)
            return 0;
        return (n * units[i].bytes + (1LL << 30) - 1) >> 30;
    }
    return 0;
}

static bool volume_has_size(const json_val *self, const json_val *old KV_UNUSED)
{
    return PRESENT_ANY(self, "snapshotID", "volumeSize");
}

static bool rate_with_snapshot(const json_val *self, const json_val *old KV_UNUSED)
{
    return !present(self, "volumeInitializationRate") || present(self, "snapshotID");
}

#define T struct ebs_volume
static const struct field ebs_volume_fields[] = {
    FIELD(TRI, delete_on_termination, "deleteOnTermination",
          "Whether the volume goes when the instance does."),
    FIELD(TRI, encrypted, "encrypted", "Whether the volume is encrypted."),
    FIELD(MAYBE_INT, iops, "iops", "I/O operations per second, for types that let one choose.",
          RULE(.format = "int64")),
    FIELD(STR, kms_key_id, "kmsKeyID", "The key that encrypts the volume."),
    FIELD(STR, snapshot_id, "snapshotID", "The snapshot that the volume is made from."),
    FIELD(MAYBE_INT, throughput, "throughput", "MiB per second, for gp3.", RULE(.format = "int64")),
    FIELD(MAYBE_INT, initialization_rate, "volumeInitializationRate",
          "MiB per second at which the snapshot is loaded.",
          RULE(.format = "int32", BETWEEN(100, 300))),
    FIELD(STR, size, "volumeSize", "The volume's size: a whole number of Gi, G, Ti or T.",
          RULE(.pattern = PATTERN_VOLUME_SIZE, .check = volume_size_words)),
    FIELD(ENUM, type, "volumeType", "The type of the volume.",
          RULE(ENUMS("standard", "io1", "io2", "gp2", "sc1", "st1", "gp3"))),
};
#undef T
static const struct schema ebs_volume_schema =
    SCHEMA("BlockDevice", struct ebs_volume, ebs_volume_fields, .doc = "An EBS volume.",
           CEL_RULES({ "has(self.snapshotID) || has(self.volumeSize)",
                       "expected snapshotID or volumeSize", volume_has_size },
                     { "!has(self.volumeInitializationRate) || has(self.snapshotID)",
                       "volumeInitializationRate needs snapshotID", rate_with_snapshot }));

#define T struct block_device
static const struct field block_device_fields[] = {
    FIELD(STR, device_name, "deviceName", "The device, such as /dev/xvda."),
    FIELD(OPTION, ebs, "ebs", "The EBS volume behind the device.", .sub = &ebs_volume_schema),
    FIELD(BOOL, root_volume, "rootVolume",
          "Whether the kubelet's root directory is on it, which makes its size the node's "
          "ephemeral storage. One device at most."),
};
#undef T
static const struct schema block_device_schema =
    SCHEMA("BlockDeviceMapping", struct block_device, block_device_fields,
           .doc = "A device of the instance.");

static bool one_root_volume(const json_val *self, const json_val *old KV_UNUSED)
{
    size_t count = 0;
    json_each_item(self, device)
        count += json_bool(json_member(device, "rootVolume"));
    return count <= 1;
}

/* --- the network --- */

static int64_t interface_card(const json_val *interface)
{
    int64_t n = -1;
    json_i64(json_member(interface, "networkCardIndex"), &n);
    return n;
}

static int64_t interface_device(const json_val *interface)
{
    int64_t n = -1;
    json_i64(json_member(interface, "deviceIndex"), &n);
    return n;
}

static bool interface_is(const json_val *interface, const char *type)
{
    return str_eqz(json_str(json_member(interface, "interfaceType")), type);
}

static bool has_primary_interface(const json_val *self, const json_val *old KV_UNUSED)
{
    json_each_item(self, n) {
        if (interface_card(n) == 0 && interface_device(n) == 0 && interface_is(n, "interface"))
            return true;
    }
    return false;
}

static bool interfaces_differ(const json_val *self, const json_val *old KV_UNUSED)
{
    json_each_item(self, a) {
        size_t count = 0;
        json_each_item(self, b)
            count += interface_card(a) == interface_card(b) &&
                     interface_device(a) == interface_device(b);
        if (count != 1)
            return false;
    }
    return true;
}

static bool one_efa_per_card(const json_val *self, const json_val *old KV_UNUSED)
{
    json_each_item(self, a) {
        size_t count = 0;
        if (!interface_is(a, "efa-only"))
            continue;
        json_each_item(self, b)
            count += interface_is(b, "efa-only") && interface_card(a) == interface_card(b);
        if (count != 1)
            return false;
    }
    return true;
}

#define T struct network_interface
static const struct field network_interface_fields[] = {
    FIELD(INT, device_index, "deviceIndex", "Where on the card the interface is.",
          .flags = FIELD_REQUIRED, RULE(.format = "int32", AT_LEAST(0))),
    FIELD(ENUM, type, "interfaceType",
          "What it is for: interface carries IP traffic, efa-only the elastic fabric.",
          .flags = FIELD_REQUIRED, RULE(ENUMS("interface", "efa-only"))),
    FIELD(INT, card_index, "networkCardIndex", "The card that the interface is on.",
          .flags = FIELD_REQUIRED, RULE(.format = "int32", AT_LEAST(0))),
};
#undef T
static const struct schema network_interface_schema =
    SCHEMA("NetworkInterface", struct network_interface, network_interface_fields,
           .doc = "A network interface of the instance.");

static bool tracks_something(const json_val *self, const json_val *old KV_UNUSED)
{
    return PRESENT_ANY(self, "tcpEstablishedTimeout", "udpStreamTimeout", "udpTimeout");
}

#define T struct connection_tracking
static const struct field connection_tracking_fields[] = {
    FIELD(MAYBE_INT, tcp_established_s, "tcpEstablishedTimeout",
          "Seconds that an idle established TCP connection is remembered.",
          RULE(.format = "int32", BETWEEN(60, 432000))),
    FIELD(MAYBE_INT, udp_stream_s, "udpStreamTimeout",
          "Seconds that an idle UDP flow with several packets is remembered.",
          RULE(.format = "int32", BETWEEN(60, 180))),
    FIELD(MAYBE_INT, udp_s, "udpTimeout",
          "Seconds that a UDP flow with one packet or one direction is remembered.",
          RULE(.format = "int32", BETWEEN(30, 60))),
};
#undef T
static const struct schema connection_tracking_schema =
    SCHEMA("ConnectionTracking", struct connection_tracking, connection_tracking_fields,
           .doc = "How long security groups remember idle connections.",
           CEL_RULES({ "has(self.tcpEstablishedTimeout) || has(self.udpStreamTimeout) || "
                       "has(self.udpTimeout)",
                       "expected at least one timeout", tracks_something }));

#define T struct metadata_options
static const struct field metadata_options_fields[] = {
    FIELD(ENUM, http_endpoint, "httpEndpoint", "Whether the metadata service answers.",
          RULE(ENUMS("enabled", "disabled"), .dflt = "\"enabled\"")),
    FIELD(ENUM, http_ipv6, "httpProtocolIPv6", "Whether it answers over IPv6.",
          RULE(ENUMS("enabled", "disabled"), .dflt = "\"disabled\"")),
    FIELD(MAYBE_INT, hop_limit, "httpPutResponseHopLimit",
          "How many hops its answers may travel; 1 keeps them from pods with their own network.",
          RULE(.format = "int64", BETWEEN(1, 64), .dflt = "1")),
    FIELD(ENUM, http_tokens, "httpTokens",
          "Whether a session token is needed (IMDSv2) or optional.",
          RULE(ENUMS("required", "optional"), .dflt = "\"required\"")),
};
#undef T
static const struct schema metadata_options_schema =
    SCHEMA("MetadataOptions", struct metadata_options, metadata_options_fields,
           .doc = "The instance metadata service of the nodes.");

static bool one_placement_selector(const json_val *self, const json_val *old KV_UNUSED)
{
    return present(self, "id") != present(self, "name");
}

#define T struct placement_group_selector
static const struct field placement_group_fields[] = {
    FIELD(STR, id, "id", "The placement group's id.", RULE(.pattern = "^pg-[0-9a-z]+$")),
    FIELD(STR, name, "name", "The placement group's name.", RULE(.len_min = 1)),
};
#undef T
static const struct schema placement_group_schema =
    SCHEMA("PlacementGroupSelector", struct placement_group_selector, placement_group_fields,
           .doc = "The placement group that nodes are launched into.",
           CEL_RULES({ "has(self.id) != has(self.name)", "expected exactly one of id and name",
                       one_placement_selector }));

#define T struct cpu_options
static const struct field cpu_options_fields[] = {
    FIELD(ENUM, nested_virtualization, "nestedVirtualization",
          "Whether nodes can run virtual machines; enabled leaves only instance types that can.",
          RULE(ENUMS("enabled", "disabled"))),
};
#undef T
static const struct schema cpu_options_schema =
    SCHEMA("CPUOptions", struct cpu_options, cpu_options_fields, .doc = "Options of the CPU.");

/* --- the spec --- */

static bool alias_is_only_term(const json_val *self, const json_val *old KV_UNUSED)
{
    json_each_item(self, term) {
        if (present(term, "alias"))
            return json_count(self) == 1;
    }
    return true;
}

static bool family_is_known(const json_val *self, const json_val *old KV_UNUSED)
{
    if (present(self, "amiFamily"))
        return true;
    json_each_item(json_member(self, "amiSelectorTerms"), term) {
        if (present(term, "alias"))
            return true;
    }
    return false;
}

static bool family_fits_alias(const json_val *self, const json_val *old KV_UNUSED)
{
    struct str family = json_str(json_member(self, "amiFamily"));
    if (family.len == 0 || str_eqz(family, "Custom"))
        return true;
    json_each_item(json_member(self, "amiSelectorTerms"), term) {
        const json_val *alias = json_member(term, "alias");
        struct str of_alias = ami_alias_family(json_str(alias));
        if (alias &&
            (of_alias.len != family.len || strncasecmp(of_alias.p, family.p, family.len) != 0))
            return false;
    }
    return true;
}

static bool one_identity(const json_val *self, const json_val *old KV_UNUSED)
{
    return present(self, "role") != present(self, "instanceProfile");
}

static const char *const reserved_tags[] = { "eks:eks-cluster-name", "karpenter.sh/nodepool",
                                             "karpenter.sh/nodeclaim",
                                             "karpenter.k8s.aws/ec2nodeclass" };

static bool tags_have_keys(const json_val *self, const json_val *old KV_UNUSED)
{
    return json_member(self, "") == NULL;
}

static bool tags_not_reserved(const json_val *self, const json_val *old KV_UNUSED)
{
    for (size_t i = 0; i < KV_COUNT_OF(reserved_tags); i++) {
        if (present(self, reserved_tags[i]))
            return false;
    }
    json_each_member(self, key, value) {
        (void)value;
        if (str_starts(json_str(key), STR("kubernetes.io/cluster")))
            return false;
    }
    return true;
}

#define T struct ec2nodeclass_spec
static const struct field spec_fields[] = {
    FIELD(ENUM, ami_family, "amiFamily",
          "How nodes are told to join: the form of their user data and their block devices. Taken "
          "from the alias when there is one.",
          RULE(.enums = ami_family_names)),
    FIELD(LIST, ami_terms, "amiSelectorTerms",
          "The machine images to launch, as an alias or as terms that each select some.",
          .flags = FIELD_REQUIRED, .sub = &ami_term_schema,
          RULE(.items_min = 1, .items_max = 30,
               CEL_RULES({ "!self.exists(t, has(t.alias)) || self.size() == 1",
                           "alias must be the only term", alias_is_only_term }))),
    FIELD(TRI, associate_public_ip, "associatePublicIPAddress",
          "Whether nodes get a public address; the subnet decides when it is left out."),
    FIELD(LIST, block_devices, "blockDeviceMappings",
          "The devices of the instances; the family's own when it is left out.",
          .sub = &block_device_schema,
          RULE(.items_max = 50,
               CEL_RULES({ "self.filter(d, has(d.rootVolume) && d.rootVolume).size() <= 1",
                           "at most one device can be the rootVolume", one_root_volume }))),
    FIELD(LIST, reservation_terms, "capacityReservationSelectorTerms",
          "Capacity reservations that nodes may be launched into.", .sub = &reservation_term_schema,
          RULE(.items_max = 30)),
    FIELD(OPTION, connection_tracking, "connectionTracking",
          "How long security groups remember idle connections. Needs nitro instances.",
          .sub = &connection_tracking_schema),
    FIELD(STR, context, "context", "Passed on to EC2 with every launch."),
    FIELD(OPTION, cpu_options, "cpuOptions", "Options of the CPU.", .sub = &cpu_options_schema),
    FIELD(TRI, detailed_monitoring, "detailedMonitoring",
          "Whether EC2 measures instances every minute instead of every five."),
    FIELD(STR, instance_profile, "instanceProfile",
          "An instance profile that exists, in place of a role.", RULE(.len_min = 1)),
    FIELD(ENUM, instance_store_policy, "instanceStorePolicy",
          "RAID0 joins the instance's own disks and puts pods' storage on them.",
          RULE(ENUMS("RAID0"))),
    FIELD(MAYBE_INT, ip_prefix_count, "ipPrefixCount",
          "How many IPv4 prefixes the first interface gets.", RULE(.format = "int32", AT_LEAST(0))),
    FIELD(JSON, kubelet, "kubelet",
          "Fields of kubelet.config.k8s.io/v1beta1 KubeletConfiguration for the nodes.",
          .flags = FIELD_PRESERVE_UNKNOWN),
    FIELD(STRUCT, metadata_options, "metadataOptions",
          "The instance metadata service of the nodes.", .sub = &metadata_options_schema,
          RULE(.dflt = "{\"httpEndpoint\": \"enabled\", \"httpProtocolIPv6\": \"disabled\", "
                       "\"httpPutResponseHopLimit\": 1, \"httpTokens\": \"required\"}")),
    FIELD(LIST, network_interfaces, "networkInterfaces",
          "The network interfaces of the instances; one when it is left out.",
          .sub = &network_interface_schema,
          RULE(.items_max = 150,
               CEL_RULES(
                   { "self.exists(n, n.networkCardIndex == 0 && n.deviceIndex == 0 && "
                     "n.interfaceType == 'interface')",
                     "expected an interface at networkCardIndex 0 and deviceIndex 0 of type "
                     "interface",
                     has_primary_interface },
                   { "self.all(a, self.exists_one(b, a.networkCardIndex == b.networkCardIndex && "
                     "a.deviceIndex == b.deviceIndex))",
                     "two interfaces have the same networkCardIndex and deviceIndex",
                     interfaces_differ },
                   { "self.all(a, a.interfaceType != 'efa-only' || self.exists_one(b, "
                     "b.interfaceType == 'efa-only' && a.networkCardIndex == b.networkCardIndex))",
                     "at most one efa-only interface per network card", one_efa_per_card }))),
    FIELD(OPTION, placement_group, "placementGroupSelector",
          "The placement group that nodes are launched into.", .sub = &placement_group_schema),
    FIELD(STR, role, "role",
          "The IAM role of the nodes; karve makes an instance profile for it. Either this or "
          "instanceProfile.",
          RULE(.len_min = 1)),
    FIELD(LIST, security_group_terms, "securityGroupSelectorTerms",
          "The security groups of the nodes.", .flags = FIELD_REQUIRED,
          .sub = &security_group_term_schema, RULE(.items_min = 1, .items_max = 30)),
    FIELD(LIST, subnet_terms, "subnetSelectorTerms",
          "The subnets that nodes are launched into, and with them the zones.",
          .flags = FIELD_REQUIRED, .sub = &subnet_term_schema,
          RULE(.items_min = 1, .items_max = 30)),
    FIELD(STR_MAP, tags, "tags",
          "Tags for everything that is made for the nodes: instances, volumes, launch templates.",
          RULE(CEL_RULES({ "!('' in self)", "a tag's key cannot be empty", tags_have_keys },
                         { "self.all(k, !(k in ['eks:eks-cluster-name', 'karpenter.sh/nodepool', "
                           "'karpenter.sh/nodeclaim', 'karpenter.k8s.aws/ec2nodeclass']) && "
                           "!k.startsWith('kubernetes.io/cluster'))",
                           "the tags eks:eks-cluster-name, kubernetes.io/cluster*, "
                           "karpenter.sh/nodepool, karpenter.sh/nodeclaim and "
                           "karpenter.k8s.aws/ec2nodeclass are karve's own",
                           tags_not_reserved }))),
    FIELD(STR, user_data, "userData",
          "What nodes run at boot besides what karve adds to it; plain text in the form of the "
          "family."),
};
#undef T
const struct schema ec2nodeclass_spec_schema =
    SCHEMA("EC2NodeClassSpec", struct ec2nodeclass_spec, spec_fields,
           .doc = "What EC2 needs to know to launch a node.",
           CEL_RULES({ "has(self.amiFamily) || self.amiSelectorTerms.exists(t, has(t.alias))",
                       "amiFamily is needed when no term has an alias", family_is_known },
                     { "!has(self.amiFamily) || self.amiFamily == 'Custom' || "
                       "self.amiSelectorTerms.all(t, !has(t.alias) || "
                       "t.alias.split('@')[0] == self.amiFamily.lowerAscii())",
                       "amiFamily must be the family of the alias, or Custom", family_fits_alias },
                     { "has(self.role) != has(self.instanceProfile)",
                       "expected exactly one of role and instanceProfile", one_identity }));
