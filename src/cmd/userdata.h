/* cmd/userdata.h - what the files of `karve userdata` share.
 *
 * Functions that can fail return an enum exit_code and say why in `err`: whether a mistake is one
 * of usage or of the manifests is known where it is found.
 */
#pragma once

#include "cmd/inputs.h"

#include "bootstrap/allocatable.h"
#include "bootstrap/ami.h"
#include "bootstrap/boot.h"
#include "cloud/instance_types.h"

/* From the flags; the same for both sides of a comparison. */
struct userdata_settings {
    struct boot_cluster cluster;
    struct str capacity_type; /* absent: the pool's, else on-demand */
    struct str_map labels;    /* of --label */
    taint_list taints;        /* of --taint */
    struct maybe_int max_pods;
    const struct machine *maybe_machine;           /* the instance type, of the built-in list */
    const struct instance_type_draft *maybe_draft; /* or of a catalogue file */
    const char *nodeclass, *nodepool;              /* NULL: the only one */
    /* What is missing of the cluster is written as a word in its place: for a comparison it does not
     * matter. */
    bool stand_ins;
};

int userdata_settings_read(const struct invocation *inv, struct arena *arena,
                           struct userdata_settings *out, struct err *err);

/* One rendering, from its manifests on. */
struct userdata {
    struct arena arena;
    struct manifests manifests;
    const struct manifest *class_item, *maybe_pool_item;
    const json_val *class_json; /* as written */
    struct text_pos user_data_pos;
    bool user_data_literal; /* each of its lines is a line of the manifest */
    const struct ec2nodeclass *class_;
    const struct nodepool *maybe_pool;
    struct kubelet_config kubelet;
    struct boot boot;
    struct boot_text text;
    struct maybe_int max_pods;       /* what the node gets */
    bool has_resources;              /* the instance type is known */
    struct node_resources resources; /* then */
    ami_parameters parameters;       /* when alias and cluster version are known */
    VEC(struct str) warnings;        /* those of the text, and what was left out */
};

int userdata_render(struct userdata *u, const struct userdata_settings *settings,
                    const char *const *paths, size_t path_count, struct err *err);
void userdata_done(struct userdata *u);
#define AUTO_USERDATA __attribute__((cleanup(userdata_done))) struct userdata

/* Who set each line or key, and what that overrode. */
void userdata_explain(const struct userdata *u, struct buf *out, bool colour);

/* What an edit changes: `changed` is the answer, and the report goes to `out`. */
void userdata_diff(const struct userdata *old, const struct userdata *new, struct str ca, bool json,
                   bool colour, struct buf *out, bool *changed);

/* --- helpers --- */

int userdata_fail(struct err *err, enum exit_code code, const char *fmt, ...) KV_PRINTF(3, 4);
