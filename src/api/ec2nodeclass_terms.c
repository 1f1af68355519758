/* The selector terms of EC2NodeClass: how images, subnets, security groups and capacity
 * reservations are chosen. Terms are checked one by one: a term that breaks a rule is refused even
 * when others in the list keep it. */
#include "api/ec2nodeclass_spec.h"

#include "codec/regex.h"

static bool tags_not_empty(const json_val *self, const json_val *old KV_UNUSED)
{
    json_each_member(self, key, value) {
        if (json_str(key).len == 0 || json_str(value).len == 0)
            return false;
    }
    return true;
}

#define TERM_TAGS_FIELD                                                                            \
    FIELD(STR_MAP, tags, "tags",                                                                   \
          "Tags that it must have, all of them. The value `*` stands for any value.",              \
          RULE(.items_max = 20,                                                                    \
               CEL_RULES({ "self.all(k, k != '' && self[k] != '')",                                \
                           "a tag's key and value cannot be empty", tags_not_empty })))

static bool subnet_has_any(const json_val *self, const json_val *old KV_UNUSED)
{
    return PRESENT_ANY(self, "tags", "id");
}

static bool subnet_id_alone(const json_val *self, const json_val *old KV_UNUSED)
{
    return !present(self, "id") || !present(self, "tags");
}

#define T struct subnet_term
static const struct field subnet_term_fields[] = {
    FIELD(STR, id, "id", "The id of one subnet.", RULE(.pattern = "subnet-[0-9a-z]+")),
    TERM_TAGS_FIELD,
};
#undef T
const struct schema subnet_term_schema =
    SCHEMA("SubnetSelectorTerm", struct subnet_term, subnet_term_fields,
           .doc = "Selects subnets. The class has those of all its terms together.",
           CEL_RULES({ "has(self.tags) || has(self.id)", "expected tags or id", subnet_has_any },
                     { "!has(self.id) || !has(self.tags)", "id excludes tags", subnet_id_alone }));

static bool group_has_any(const json_val *self, const json_val *old KV_UNUSED)
{
    return PRESENT_ANY(self, "tags", "id", "name");
}

static bool group_id_alone(const json_val *self, const json_val *old KV_UNUSED)
{
    return !present(self, "id") || !PRESENT_ANY(self, "tags", "name");
}

static bool group_name_alone(const json_val *self, const json_val *old KV_UNUSED)
{
    return !present(self, "name") || !PRESENT_ANY(self, "tags", "id");
}

#define T struct security_group_term
static const struct field security_group_term_fields[] = {
    FIELD(STR, id, "id", "The id of one security group.", RULE(.pattern = "sg-[0-9a-z]+")),
    FIELD(STR, name, "name", "The name of a security group: its own, not a tag called Name."),
    TERM_TAGS_FIELD,
};
#undef T
const struct schema security_group_term_schema =
    SCHEMA("SecurityGroupSelectorTerm", struct security_group_term, security_group_term_fields,
           .doc = "Selects security groups. The class has those of all its terms together.",
           CEL_RULES({ "has(self.tags) || has(self.id) || has(self.name)",
                       "expected tags, id or name", group_has_any },
                     { "!has(self.id) || (!has(self.tags) && !has(self.name))",
                       "id excludes tags and name", group_id_alone },
                     { "!has(self.name) || (!has(self.tags) && !has(self.id))",
                       "name excludes tags and id", group_name_alone }));

static bool reservation_has_any(const json_val *self, const json_val *old KV_UNUSED)
{
    return PRESENT_ANY(self, "tags", "id", "instanceMatchCriteria");
}

static bool reservation_id_alone(const json_val *self, const json_val *old KV_UNUSED)
{
    return !present(self, "id") || !PRESENT_ANY(self, "tags", "ownerID", "instanceMatchCriteria");
}

#define T struct reservation_term
static const struct field reservation_term_fields[] = {
    FIELD(STR, id, "id", "The id of one capacity reservation.", RULE(.pattern = "^cr-[0-9a-z]+$")),
    FIELD(ENUM, match_criteria, "instanceMatchCriteria",
          "How instances come into the reservation: open takes any that matches, targeted only "
          "those that name it.",
          RULE(ENUMS("open", "targeted"))),
    FIELD(STR, owner_id, "ownerID", "The account that owns the reservation.",
          RULE(.pattern = "^[0-9]{12}$")),
    TERM_TAGS_FIELD,
};
#undef T
const struct schema reservation_term_schema = SCHEMA(
    "CapacityReservationSelectorTerm", struct reservation_term, reservation_term_fields,
    .doc = "Selects capacity reservations. The class has those of all its terms together.",
    CEL_RULES({ "has(self.tags) || has(self.id) || has(self.instanceMatchCriteria)",
                "expected tags, id or instanceMatchCriteria", reservation_has_any },
              { "!has(self.id) || (!has(self.tags) && !has(self.ownerID) && "
                "!has(self.instanceMatchCriteria))",
                "id excludes tags, ownerID and instanceMatchCriteria", reservation_id_alone }));

/* --- AMIs --- */

static const char *const alias_families[] = { "al2",         "al2023",      "bottlerocket",
                                              "windows2019", "windows2022", "windows2025" };

struct str ami_alias_family(struct str alias)
{
    struct str family, version;
    str_cut(alias, '@', &family, &version);
    return family;
}

#define PATTERN_ALIAS "^[a-z0-9]+@.+$"

static const char *alias_words(struct str text)
{
    if (regex_match_static(PATTERN_ALIAS, text))
        return NULL;
    return "is not an alias, expected family@version such as al2023@latest";
}

static bool alias_is_known(const json_val *self, const json_val *old KV_UNUSED)
{
    struct str family = ami_alias_family(json_str(self));
    for (size_t i = 0; i < KV_COUNT_OF(alias_families); i++) {
        if (str_eqz(family, alias_families[i]))
            return true;
    }
    return false;
}

static bool windows_is_latest(const json_val *self, const json_val *old KV_UNUSED)
{
    struct str family, version = STR("");
    str_cut(json_str(self), '@', &family, &version);
    return !str_starts(family, STR("windows")) || str_eqz(version, "latest");
}

static bool ami_has_any(const json_val *self, const json_val *old KV_UNUSED)
{
    return PRESENT_ANY(self, "tags", "id", "name", "alias", "ssmParameter");
}

static bool ami_id_alone(const json_val *self, const json_val *old KV_UNUSED)
{
    return !present(self, "id") || !PRESENT_ANY(self, "alias", "tags", "name", "owner");
}

static bool ami_alias_alone(const json_val *self, const json_val *old KV_UNUSED)
{
    return !present(self, "alias") || !PRESENT_ANY(self, "id", "tags", "name", "owner");
}

#define T struct ami_term
static const struct field ami_term_fields[] = {
    FIELD(STR, alias, "alias",
          "An image family and version, such as al2023@latest or bottlerocket@v1.46.0. Windows "
          "families have only latest.",
          RULE(.len_max = 30, .pattern = PATTERN_ALIAS, .check = alias_words,
               CEL_RULES({ "self.split('@')[0] in ['al2', 'al2023', 'bottlerocket', 'windows2019', "
                           "'windows2022', 'windows2025']",
                           "the family must be one of al2, al2023, bottlerocket, windows2019, "
                           "windows2022, windows2025",
                           alias_is_known },
                         { "!self.startsWith('windows') || self.matches('^windows[0-9]+@latest$')",
                           "windows families have only the version latest", windows_is_latest }))),
    FIELD(STR, id, "id", "The id of one image.", RULE(.pattern = "ami-[0-9a-z]+")),
    FIELD(STR, name, "name", "The image's name; `*` and `?` are wildcards."),
    FIELD(STR, owner, "owner",
          "The account id or alias that owns the image: self and amazon when it is left out and a "
          "name is given."),
    FIELD(STR, ssm_parameter, "ssmParameter", "An SSM parameter that holds the image's id."),
    TERM_TAGS_FIELD,
};
#undef T
const struct schema ami_term_schema =
    SCHEMA("AMISelectorTerm", struct ami_term, ami_term_fields,
           .doc = "Selects machine images. The newest that fits an instance type is launched.",
           CEL_RULES({ "has(self.tags) || has(self.id) || has(self.name) || has(self.alias) || "
                       "has(self.ssmParameter)",
                       "expected tags, id, name, alias or ssmParameter", ami_has_any },
                     { "!has(self.id) || (!has(self.alias) && !has(self.tags) && !has(self.name) "
                       "&& !has(self.owner))",
                       "id excludes alias, tags, name and owner", ami_id_alone },
                     { "!has(self.alias) || (!has(self.id) && !has(self.tags) && !has(self.name) "
                       "&& !has(self.owner))",
                       "alias excludes id, tags, name and owner", ami_alias_alone }));

const char *const ami_family_names[] = { "AL2",         "AL2023",      "Bottlerocket", "Custom",
                                         "Windows2019", "Windows2022", "Windows2025",  NULL };

const char *ami_family_name(enum ami_family family)
{
    return family == AMI_FAMILY_UNSET ? "" : ami_family_names[family - 1];
}

enum ami_family ec2nodeclass_ami_family(const struct ec2nodeclass_spec *spec)
{
    static const enum ami_family of_alias[] = { AMI_FAMILY_AL2,          AMI_FAMILY_AL2023,
                                                AMI_FAMILY_BOTTLEROCKET, AMI_FAMILY_WINDOWS2019,
                                                AMI_FAMILY_WINDOWS2022,  AMI_FAMILY_WINDOWS2025 };
    _Static_assert(KV_COUNT_OF(of_alias) == KV_COUNT_OF(alias_families), "one family per alias");

    if (spec->ami_family != AMI_FAMILY_UNSET)
        return (enum ami_family)spec->ami_family;
    for (uint32_t t = 0; t < spec->ami_terms.count; t++) {
        struct str family = ami_alias_family(spec->ami_terms.items[t].alias);
        for (size_t i = 0; i < KV_COUNT_OF(alias_families); i++) {
            if (str_eqz(family, alias_families[i]))
                return of_alias[i];
        }
    }
    return AMI_FAMILY_CUSTOM;
}
