/* compat/predict_table.h - what instance families of EC2 are known to have: processor and devices.
 *
 * Of a listed family the vector extensions are known completely: those that it does not have are said to be
 * absent. Where a family comes with different processors, what only some have is unsure. Of a family that is not
 * listed, and of types that have none, only what the architecture guarantees is known.
 */
#pragma once

#include "compat/predict.h"

enum table_feature { TABLE_CPUID, TABLE_MODEL, TABLE_TOPOLOGY, TABLE_PCI, TABLE_FEATURE_COUNT };
extern const struct str table_feature_names[TABLE_FEATURE_COUNT];

/* What the tables say of one feature, with no doubt about what the machine's user declares. False: nothing, and
 * nothing is added. Only constants are borrowed. */
bool predict_table_draft(const struct machine_kind *machine, enum table_feature feature,
                         struct feature_draft *draft);
