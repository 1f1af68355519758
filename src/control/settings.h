/* control/settings.h - what users may choose about the control plane, by name.
 *
 * One table: the flags of `karve controller` and the `controller:` part of a scenario are read and
 * written with it. Names and words are upstream's where upstream has them. A second one has what
 * upstream lets its users choose and karve does not: a Deployment of upstream's, with its environment,
 * keeps working as long as it asks for what karve does anyway, and is told where it does not.
 */
#pragma once

#include "control/control.h"

struct control_setting {
    const char *name; /* "batch-idle-duration" */
    const char *arg;  /* what its value looks like, for --help: "DURATION", "Respect|Ignore" */
    const char *doc;
    bool karpenter; /* upstream has it too: its environment variable counts (control_variable) */
};
extern const struct control_setting control_setting_table[];
extern const uint32_t control_setting_count;

/* Take one choice over into `settings`. ERR_NOT_FOUND: no such setting (with the nearest name);
 * ERR_INVALID: not a value of it. Nothing is changed then. */
int control_setting_parse(struct control_settings *settings, struct str name, struct str value,
                          struct err *err);
/* The value as control_setting_parse takes it; `ix` into the table. */
void control_setting_format(const struct control_settings *settings, uint32_t ix, struct buf *out);

/* The environment variable that upstream reads for a setting: "BATCH_IDLE_DURATION". */
void control_variable(const char *name, struct buf *out);

struct karpenter_only_setting { /* upstream has it, karve does not */
    const char *name;           /* "enable-profiling" */
    const char *fits;           /* values that karve does anyway, "false|0"; NULL: any, it has no
                                   meaning here */
    const char *instead;        /* what karve does */
};
extern const struct karpenter_only_setting karpenter_only_table[];
extern const uint32_t karpenter_only_count;
/* Is that what karve does? ERR_INVALID: no, and what it does, to be told and gone on from. */
int karpenter_only_check(uint32_t ix, struct str value, struct err *err);
