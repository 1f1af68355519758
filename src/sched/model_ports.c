/* Host ports: what kube-scheduler counts are those of containers and of sidecars, which run all the
 * time. Another init container is gone before anything else listens.
 */
#include "sched/model_inner.h"

static uint32_t port_intern(struct compile *c, struct str ip, int64_t port, uint8_t protocol)
{
    buf_clear(&c->text);
    buf_addf(&c->text, "%d %lld ", protocol, (long long)port);
    buf_add(&c->text, ip);
    uintptr_t found = (uintptr_t)str_table_get(&c->port_ids, buf_str(&c->text));
    if (!found) {
        vec_push(&c->ports, (struct host_port){ .ip = ip, .port = port, .protocol = protocol });
        found = c->ports.count;
        str_table_put(&c->port_ids, buf_str(&c->text), (void *)found);
    }
    return (uint32_t)(found - 1);
}

static uint32_t add_ports(struct compile *c, const struct pod_spec *spec,
                          const struct container *of, uint32_t *items, uint32_t count)
{
    for (uint32_t i = 0; i < of->ports.count; i++) {
        const struct container_port *p = &of->ports.items[i];
        int64_t number = pod_host_port(spec, p);
        if (number <= 0)
            continue;
        struct str ip = p->host_ip.len ? p->host_ip : STR("0.0.0.0");
        uint8_t protocol = p->protocol == PROTOCOL_UNSET ? PROTOCOL_TCP : p->protocol;
        items[count++] = port_intern(c, ip, number, protocol);
    }
    return count;
}

const uint32_t *pod_ports(struct compile *c, const struct pod_spec *spec, uint32_t *count)
{
    size_t room = 0;
    for (uint32_t i = 0; i < spec->init_containers.count; i++)
        room += spec->init_containers.items[i].ports.count;
    for (uint32_t i = 0; i < spec->containers.count; i++)
        room += spec->containers.items[i].ports.count;
    *count = 0;
    if (!room)
        return NULL;

    uint32_t *items = arena_array(c->arena, uint32_t, room), found = 0;
    for (uint32_t i = 0; i < spec->init_containers.count; i++) {
        if (container_is_sidecar(&spec->init_containers.items[i]))
            found = add_ports(c, spec, &spec->init_containers.items[i], items, found);
    }
    for (uint32_t i = 0; i < spec->containers.count; i++)
        found = add_ports(c, spec, &spec->containers.items[i], items, found);
    *count = numbers_sort_unique(items, found);
    return items;
}

static bool ports_conflict(const struct host_port *a, const struct host_port *b)
{
    return a->port == b->port && a->protocol == b->protocol &&
           (str_eq(a->ip, b->ip) || str_eq(a->ip, STR("0.0.0.0")) || str_eq(b->ip, STR("0.0.0.0")));
}

void ports_settle(struct compile *c)
{
    vec_each(&c->ports, struct host_port, port) {
        port->conflicts = bitset_new(c->arena, (uint32_t)c->ports.count);
        for (uint32_t i = 0; i < c->ports.count; i++) {
            if (ports_conflict(port, &c->ports.items[i]))
                bitset_set(&port->conflicts, i);
        }
    }
}
