/* api/ec2nodeclass_spec.h - what the files of EC2NodeClass's spec share; for ec2nodeclass_*.c
 * only. */
#pragma once

#include "api/ec2nodeclass.h"

extern const struct schema ami_term_schema, reservation_term_schema, security_group_term_schema,
    subnet_term_schema;
extern const char *const ami_family_names[];   /* NULL-terminated, in enum order from AL2 */
struct str ami_alias_family(struct str alias); /* what stands before the @ */

static inline bool present(const json_val *self, const char *name)
{
    return json_member(self, name) != NULL;
}

static inline bool any_present(const json_val *self, const char *const *names)
{
    for (; *names; names++) {
        if (present(self, *names))
            return true;
    }
    return false;
}

#define PRESENT_ANY(self, ...) any_present(self, (const char *const[]){ __VA_ARGS__, NULL })
