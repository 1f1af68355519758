/* api/kinds.h - the name of every kind that karve reads; api/kinds.c has them in one list. */
#pragma once

#include "api/object.h"

extern const struct kind cron_job_kind;
extern const struct kind csi_node_kind;
extern const struct kind daemon_set_kind;
extern const struct kind deployment_kind;
extern const struct kind ec2nodeclass_kind;
extern const struct kind event_kind;
extern const struct kind job_kind;
extern const struct kind kwoknodeclass_kind;
extern const struct kind lease_kind;
extern const struct kind namespace_kind;
extern const struct kind node_feature_group_kind;
extern const struct kind node_feature_kind;
extern const struct kind node_kind;
extern const struct kind nodeclaim_kind;
extern const struct kind nodeoverlay_kind;
extern const struct kind nodepool_kind;
extern const struct kind pdb_kind;
extern const struct kind pod_kind;
extern const struct kind priority_class_kind;
extern const struct kind pv_kind;
extern const struct kind pvc_kind;
extern const struct kind replica_set_kind;
extern const struct kind service_kind;
extern const struct kind stateful_set_kind;
extern const struct kind storage_class_kind;
extern const struct kind volume_attachment_kind;
