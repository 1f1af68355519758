/* What is known of a machine: from where it is offered, and from the Node that it became. */
#include "compat/predict.h"

#include "api/labels.h"
#include "api/node.h"
#include "api/resources.h"
#include "cloud/catalogue_labels.h"
#include "cloud/instance_types.h"

#define LABEL_CPU_MAKER LABEL_AWS("instance-cpu-manufacturer")
#define LABEL_GPU_NAME LABEL_AWS("instance-gpu-name")
#define LABEL_GPU_MAKER LABEL_AWS("instance-gpu-manufacturer")
#define LABEL_ACCELERATOR_NAME LABEL_AWS("instance-accelerator-name")

/* The only value that a type allows; "" if there are several, or none. */
static struct str type_label(const struct instance_types *types, uint32_t type, const char *key)
{
    const struct requirement *r = instance_type_requirement(types, type, str_of(key));
    return r && !r->complement && r->values.count == 1 ? r->values.items[0] : STR("");
}

void machine_of_type(const struct instance_types *types, uint32_t row, struct machine_kind *out)
{
    uint32_t type = types->row_type[row];
    const struct resource_column *cpu = instance_types_resource(types, STR("cpu"));
    *out = (struct machine_kind){
        .instance_type = types->names[type],
        .architecture = type_label(types, type, LABEL_ARCH),
        .os = type_label(types, type, LABEL_OS),
        .image = STR(""),
        .cpu_manufacturer = type_label(types, type, LABEL_CPU_MAKER),
        .gpu_name = type_label(types, type, LABEL_GPU_NAME),
        .gpu_manufacturer = type_label(types, type, LABEL_GPU_MAKER),
        .accelerator_name = type_label(types, type, LABEL_ACCELERATOR_NAME),
        .cpu = cpu ? cpu->capacity[row] / 1000 : 0,
    };
}

static struct str node_label(const struct node *node, const char *key)
{
    struct str value = str_map_get(&node->object.meta.labels, str_of(key));
    return value.p ? value : STR("");
}

void machine_of_node(const struct node *node, struct machine_kind *out)
{
    const struct node_info *info = node->status.maybe_info;
    *out = (struct machine_kind){
        .instance_type = node_label(node, LABEL_INSTANCE_TYPE),
        .architecture = node_label(node, LABEL_ARCH),
        .os = node_label(node, LABEL_OS),
        .image = STR(""),
        .cpu_manufacturer = node_label(node, LABEL_CPU_MAKER),
        .gpu_name = node_label(node, LABEL_GPU_NAME),
        .gpu_manufacturer = node_label(node, LABEL_GPU_MAKER),
        .accelerator_name = node_label(node, LABEL_ACCELERATOR_NAME),
        .cpu = milli_floor(resources_get(&node->status.capacity, STR("cpu"))) / 1000,
    };
    /* The kubelet's own report, where somebody took the labels away. */
    if (info && out->architecture.len == 0 && info->architecture.p)
        out->architecture = info->architecture;
    if (info && out->os.len == 0 && info->operating_system.p)
        out->os = info->operating_system;
}
