/* The rights that `karve crds --rbac` gives: enough, and no more. The other tests of this program ran the
 * controller as a user with exactly these rights, and a dry run with those of them that are for reading;
 * the audit log tells what came of it. */
#include "kube/audit.h"
#include "kube/life.h"

#include "codec/json.h"

#include <stdio.h>

/* Given, and asked for by no request of these tests. */
static const struct {
    const char *group, *resource, *verb;
    const char *why;
} unasked[] = {
    { "karpenter.sh", "nodepools/finalizers", "update", "an admission plugin asks, not a request" },
    { "karpenter.sh", "nodeclaims/finalizers", "update",
      "an admission plugin asks, not a request" },
};

static bool may_be_unasked(struct str group, struct str resource, struct str verb)
{
    for (size_t i = 0; i < KV_COUNT_OF(unasked); i++) {
        if (str_eqz(group, unasked[i].group) && str_eqz(resource, unasked[i].resource) &&
            str_eqz(verb, unasked[i].verb))
            return true;
    }
    return false;
}

/* How many rights of one rule were never used; each is printed. */
static uint32_t unused_of_rule(const json_val *rule, const struct audit *audit)
{
    struct str group = json_str(json_at(json_get(rule, STR("apiGroups")), 0));
    uint32_t unused = 0;
    json_each_item(json_get(rule, STR("resources")), resource) {
        json_each_item(json_get(rule, STR("verbs")), verb) {
            if (audit_find(audit, group, json_str(resource), json_str(verb)) ||
                may_be_unasked(group, json_str(resource), json_str(verb)))
                continue;
            print_error("never used: %.*s %.*s.%.*s\n", STR_ARG(json_str(verb)),
                        STR_ARG(json_str(resource)), STR_ARG(group));
            unused++;
        }
    }
    return unused;
}

static uint32_t unused_rights(struct plane *p, const char *role, const struct audit *audit)
{
    struct doc doc;
    struct err err;
    uint32_t unused = 0;
    EXPECT_OK(json_read(life_get(p, "%s -o json", role), &doc, &err), err);
    json_each_item(json_get(doc.root, STR("rules")), rule)
        unused += unused_of_rule(rule, audit);
    doc_done(&doc);
    return unused;
}

TEST(the_controllers_rights_were_enough_and_each_was_used)
{
    struct plane *p = life_plane();
    struct audit audit = { 0 };
    uint32_t denied = 0, requests = 0;
    audit_read(life_audit_log(p), LIFE_USER, &p->arena, &audit);
    audit_read(life_audit_log(p), LIFE_READER, &p->arena, &audit);
    for (size_t i = 0; i < audit.uses.count; i++) {
        const struct audit_use *use = &audit.uses.items[i];
        requests += use->count;
        denied += use->denied;
        if (use->denied)
            print_error("denied %u times: %.*s %.*s\n", use->denied, STR_ARG(use->verb),
                        STR_ARG(use->example));
    }
    printf("# %u requests in %zu ways\n", requests, (size_t)audit.uses.count);
    uint32_t unused = unused_rights(p, "clusterrole karve", &audit) +
                      unused_rights(p, "role karve -n kube-system", &audit);
    audit_done(&audit);
    EXPECT_TRUE(requests > 0);
    EXPECT_EQ(denied, 0);
    EXPECT_EQ(unused, 0);
}
