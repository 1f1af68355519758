/* control/settings.h - what users may choose about the control plane, by name.
 *
 * One table: the flags of `karve controller` and the `controller:` part of a scenario are read and
 * written with it. Names and words are upstream's where upstream has them.
 */
#pragma once

#include "control/control.h"

struct control_setting {
    const char *name; /* "batch-idle-duration" */
    const char *arg;  /* what its value looks like, for --help: "DURATION", "Respect|Ignore" */
    const char *doc;
};
extern const struct control_setting control_setting_table[];
extern const uint32_t control_setting_count;

/* Take one choice over into `settings`. ERR_NOT_FOUND: no such setting (with the nearest name);
 * ERR_INVALID: not a value of it. Nothing is changed then. */
int control_setting_parse(struct control_settings *settings, struct str name, struct str value,
                          struct err *err);
/* The value as control_setting_parse takes it; `ix` into the table. */
void control_setting_format(const struct control_settings *settings, uint32_t ix, struct buf *out);
