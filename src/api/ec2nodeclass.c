/* EC2NodeClass: the table of its status, the kind, and what is checked beyond the schema. */
#include "api/ec2nodeclass.h"

/* --- status --- */

#define T struct expression
static const struct field ami_requirement_fields[] = {
    FIELD(STR, key, "key", "The label key.", .flags = FIELD_REQUIRED),
    FIELD(ENUM, op, "operator", "How the label's value relates to the values.",
          .flags = FIELD_REQUIRED,
          RULE(ENUMS("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Gte", "Lte"))),
    FIELD(STRS, values, "values", "The values.", RULE(.list_kind = LIST_ATOMIC)),
};
#undef T
static const struct schema ami_requirement_schema =
    SCHEMA("AMIRequirement", struct expression, ami_requirement_fields,
           .doc = "What an instance type must be to boot the image.");

#define T struct resolved_ami
static const struct field resolved_ami_fields[] = {
    FIELD(BOOL, deprecated, "deprecated", "Whether its owner has deprecated the image."),
    FIELD(STR, id, "id", "The image's id.", .flags = FIELD_REQUIRED),
    FIELD(STR, name, "name", "The image's name."),
    FIELD(LIST, requirements, "requirements", "Which instance types can boot the image.",
          .flags = FIELD_REQUIRED, .sub = &ami_requirement_schema),
};
#undef T
static const struct schema resolved_ami_schema =
    SCHEMA("AMI", struct resolved_ami, resolved_ami_fields, .doc = "A machine image.");

#define T struct resolved_reservation
static const struct field resolved_reservation_fields[] = {
    FIELD(STR, availability_zone, "availabilityZone", "The zone of the reservation.",
          .flags = FIELD_REQUIRED),
    FIELD(TIME, end_us, "endTime", "When the reservation ends, if it does.",
          RULE(.format = "date-time")),
    FIELD(STR, id, "id", "The reservation's id.", .flags = FIELD_REQUIRED,
          RULE(.pattern = "^cr-[0-9a-z]+$")),
    FIELD(ENUM, match_criteria, "instanceMatchCriteria", "How instances come into it.",
          .flags = FIELD_REQUIRED, RULE(ENUMS("open", "targeted"))),
    FIELD(STR, instance_type, "instanceType", "The instance type it reserves.",
          .flags = FIELD_REQUIRED),
    FIELD(BOOL, interruptible, "interruptible", "Whether its owner can take it back."),
    FIELD(STR, owner_id, "ownerID", "The account that owns it.", .flags = FIELD_REQUIRED,
          RULE(.pattern = "^[0-9]{12}$")),
    FIELD(ENUM, type, "reservationType", "A plain reservation or a capacity block.",
          RULE(ENUMS("default", "capacity-block"), .dflt = "\"default\"")),
    FIELD(ENUM, state, "state", "Whether it is about to end.",
          RULE(ENUMS("active", "expiring"), .dflt = "\"active\"")),
};
#undef T
static const struct schema resolved_reservation_schema =
    SCHEMA("CapacityReservation", struct resolved_reservation, resolved_reservation_fields,
           .doc = "A capacity reservation.");

#define T struct resolved_security_group
static const struct field resolved_security_group_fields[] = {
    FIELD(STR, id, "id", "The group's id.", .flags = FIELD_REQUIRED),
    FIELD(STR, name, "name", "The group's name."),
};
#undef T
static const struct schema resolved_security_group_schema =
    SCHEMA("SecurityGroup", struct resolved_security_group, resolved_security_group_fields,
           .doc = "A security group.");

#define T struct resolved_subnet
static const struct field resolved_subnet_fields[] = {
    FIELD(STR, id, "id", "The subnet's id.", .flags = FIELD_REQUIRED),
    FIELD(STR, zone, "zone", "Its zone, such as us-east-1a.", .flags = FIELD_REQUIRED),
    FIELD(STR, zone_id, "zoneID", "The zone's id, which is the same in every account."),
};
#undef T
static const struct schema resolved_subnet_schema =
    SCHEMA("Subnet", struct resolved_subnet, resolved_subnet_fields, .doc = "A subnet.");

#define T struct ec2nodeclass_status
static const struct field status_fields[] = {
    FIELD(LIST, amis, "amis", "The images that the terms select, the newest first.",
          .sub = &resolved_ami_schema),
    FIELD(LIST, reservations, "capacityReservations",
          "The capacity reservations that the terms select.", .sub = &resolved_reservation_schema),
    CONDITIONS_FIELD(status_condition_schema),
    FIELD(STR, instance_profile, "instanceProfile", "The instance profile that nodes get."),
    FIELD(LIST, security_groups, "securityGroups", "The security groups that the terms select.",
          .sub = &resolved_security_group_schema),
    FIELD(LIST, subnets, "subnets",
          "The subnets that the terms select, the one with the most free addresses first.",
          .sub = &resolved_subnet_schema),
};
#undef T
const struct schema ec2nodeclass_status_schema =
    SCHEMA("EC2NodeClassStatus", struct ec2nodeclass_status, status_fields,
           .doc = "What the class's terms select, and whether nodes can be launched with it.");

/* --- the kind --- */

#define T struct ec2nodeclass
static const struct field ec2nodeclass_fields[] = {
    OBJECT_FIELDS(struct ec2nodeclass),
    FIELD(STRUCT, spec, "spec", "What EC2 needs to know to launch a node.", .flags = FIELD_REQUIRED,
          .sub = &ec2nodeclass_spec_schema),
    FIELD(STRUCT, status, "status",
          "What the class's terms select, and whether nodes can be launched with it.",
          .sub = &ec2nodeclass_status_schema),
};
#undef T
static const struct schema ec2nodeclass_schema =
    SCHEMA("EC2NodeClass", struct ec2nodeclass, ec2nodeclass_fields,
           .doc = "An EC2NodeClass says what EC2 needs to know to launch a node: images, subnets, "
                  "security groups, role, disks, user data.");

static const struct crd_column columns[] = {
    { "Ready", "string", ".status.conditions[?(@.type==\"Ready\")].status",
      "Whether nodes can be launched with the class.", 0 },
    { "Age", "date", ".metadata.creationTimestamp", "How old the class is.", 0 },
    { "Role", "string", ".spec.role", "The IAM role of the nodes.", 0 },
};

static const struct crd ec2nodeclass_crd = {
    .short_names = (const char *const[]){ "ec2nc", "ec2ncs", NULL },
    .categories = (const char *const[]){ "karpenter", NULL },
    .columns = columns,
    .column_count = KV_COUNT_OF(columns),
};

static const struct annotation_rule annotations[] = {
    { "karve.io/prefix-delegation", (const char *const[]){ "true", "false", NULL } },
    { "karve.io/userdata-order",
      (const char *const[]){ "managed-user-managed", "user-managed", NULL } },
};

static void ec2nodeclass_check(const struct object *object, const json_val *root,
                               struct report *report)
{
    const struct ec2nodeclass_spec *s = &ec2nodeclass_of(object)->spec;
    struct place top = place_root(root), spec = place_member(&top, "spec"),
                 kubelet = place_member(&spec, "kubelet");

    if (ec2nodeclass_ami_family(s) == AMI_FAMILY_CUSTOM && !s->user_data.p)
        place_warning(report, &spec,
                      "userData is missing: nodes of a custom image are not launched without it "
                      "(\"\" says that the image needs none)");
    if (kubelet.found)
        kubelet_check(kubelet.at, ec2nodeclass_ami_family(s), &kubelet, report);
    annotations_check(object, root, annotations, KV_COUNT_OF(annotations), report);
}

const struct kind ec2nodeclass_kind = {
    .group = AWS_GROUP,
    .version = "v1",
    .name = "EC2NodeClass",
    .plural = "ec2nodeclasses",
    .singular = "ec2nodeclass",
    .has_status = true,
    .schema = &ec2nodeclass_schema,
    .doc = "What EC2 needs to know to launch a node.",
    .crd = &ec2nodeclass_crd,
    .check = ec2nodeclass_check,
};
