/* sim/scenario_builtin.h - the files of scenarios/, as texts: written by scripts/embed.sh. */
#pragma once

extern const char scenario_black_friday[];
extern const char scenario_chaos[];
extern const char scenario_cooldown[];
extern const char scenario_security_group[];
extern const char scenario_transient[];
