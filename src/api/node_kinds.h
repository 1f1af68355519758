/* api/node_kinds.h - what only a node asks the API for: the objects that volumes and variables of
 * its pods come from.
 *
 * Their contents are read as JSON (store_get_json) and not kept in structs. They are not in the
 * list of kinds that karve reads: manifests with them are nobody's to check here.
 */
#pragma once

#include "api/object.h"

extern const struct kind config_map_kind;
extern const struct kind secret_kind;
extern const struct kind service_account_kind;
