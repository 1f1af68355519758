#include "cloud/catalogue.h"
#include "support/test.h"

static const struct catalogue_machine *find(const char *name)
{
    const struct catalogue_machine *m = catalogue_machine_find(str_of(name));
    if (!m)
        fail_msg("no %s in the catalogue", name);
    return m;
}

static struct str family_of_name(struct str name)
{
    struct str family, size;
    str_cut(name, '.', &family, &size);
    return family;
}

#define each_machine(m)                                                                            \
    for (const struct catalogue_machine *m = catalogue_machines(),                                 \
                                        *end_ = m + catalogue_machine_count();                     \
         m < end_; m++)

/* --- against the published list --- */

TEST(catalogue_has_the_list_prices_of_us_east_1)
{
    static const struct {
        const char *name, *price;
    } list[] = {
        { "t2.small", "0.023" },
        { "t3.nano", "0.0052" },
        { "t3.small", "0.0208" },
        { "t3a.2xlarge", "0.3008" },
        { "t4g.medium", "0.0336" },
        { "m4.10xlarge", "2" },
        { "m5.large", "0.096" },
        { "m5.metal", "4.608" },
        { "m5zn.xlarge", "0.3303" },
        { "m5zn.metal", "4.3605" },
        { "m6g.metal", "2.6112" },
        { "m6gd.metal", "3.0664" },
        { "m6idn.32xlarge", "10.18368" },
        { "m7a.medium", "0.05796" },
        { "m7gd.8xlarge", "1.7086" },
        { "m7gd.12xlarge", "2.5628" },
        { "m7i.metal-24xl", "5.32224" },
        { "m7i.metal-48xl", "9.6768" },
        { "m8g.metal-24xl", "4.73933" },
        { "m8i.metal-48xl", "10.16064" },
        { "m8i-flex.xlarge", "0.2011" },
        { "c4.8xlarge", "1.591" },
        { "c5.4xlarge", "0.68" },
        { "c5.9xlarge", "1.53" },
        { "c5n.18xlarge", "3.888" },
        { "c6g.metal", "2.3066" },
        { "c7g.medium", "0.0363" },
        { "c7i-flex.large", "0.08479" },
        { "c7i-flex.xlarge", "0.16958" },
        { "c8a.medium", "0.05389" },
        { "c8a.metal-24xl", "5.69026" },
        { "c8gn.medium", "0.0593" },
        { "c8gn.metal-24xl", "6.0293" },
        { "c8i.96xlarge", "17.99232" },
        { "hpc7g.4xlarge", "1.6832" },
        { "r5b.metal", "7.8672" },
        { "r6idn.large", "0.19539" },
        { "r7a.medium", "0.07608" },
        { "r7g.16xlarge", "3.4272" },
        { "r7iz.metal-16xl", "6.5472" },
        { "r8gn.48xlarge", "17.4893" },
        { "r8i.metal-48xl", "14.66995" },
        { "x1.16xlarge", "6.669" },
        { "x2gd.metal", "5.8784" },
        { "x2iedn.xlarge", "0.83363" },
        { "z1d.metal", "4.464" },
        { "u7in-32tb.224xlarge", "360.98695" },
        { "i3.metal", "4.992" },
        { "i4i.xlarge", "0.343" },
        { "i4i.32xlarge", "10.9824" },
        { "i4i.metal", "10.982" },
        { "i7i.8xlarge", "3.0202" },
        { "i7ie.metal-48xl", "26.5687" },
        { "im4gn.8xlarge", "2.91034" },
        { "is4gen.medium", "0.14408" },
        { "d3en.12xlarge", "6.30864" },
        { "g4dn.xlarge", "0.526" },
        { "g5.xlarge", "1.006" },
        { "g6e.48xlarge", "30.13118" },
        { "p3.2xlarge", "3.06" },
        { "p4d.24xlarge", "21.957642" },
        { "p5.48xlarge", "55.04" },
        { "inf2.48xlarge", "12.98127" },
        { "trn1.2xlarge", "1.34375" },
    };
    for (size_t i = 0; i < KV_COUNT_OF(list); i++) {
        char text[USD_HOUR_TEXT_MAX];
        usd_hour_format(find(list[i].name)->on_demand, text);
        if (strcmp(text, list[i].price) != 0)
            fail_msg("%s costs %s, not %s", list[i].name, list[i].price, text);
    }
}

TEST(catalogue_has_the_published_pod_limits_of_network_interfaces)
{
    static const struct {
        const char *name;
        int64_t pods;
    } list[] = {
        { "t2.2xlarge", 44 },    { "t3.small", 11 },       { "t3a.small", 8 },
        { "m4.large", 20 },      { "m5.large", 29 },       { "m5.xlarge", 58 },
        { "m5.24xlarge", 737 },  { "m6in.32xlarge", 394 }, { "m8a.2xlarge", 158 },
        { "c5.4xlarge", 234 },   { "c8gn.48xlarge", 590 }, { "c8gn.24xlarge", 1178 },
        { "r8i.large", 59 },     { "r8i.96xlarge", 1514 }, { "d3.8xlarge", 59 },
        { "d3en.12xlarge", 89 }, { "g4ad.xlarge", 8 },     { "g4dn.16xlarge", 58 },
        { "g5.48xlarge", 345 },  { "g6e.12xlarge", 292 },  { "h1.16xlarge", 394 },
        { "i4i.24xlarge", 437 }, { "i7ie.12xlarge", 394 }, { "inf1.24xlarge", 321 },
        { "p5.48xlarge", 100 },  { "p5en.48xlarge", 198 }, { "trn1.32xlarge", 247 },
        { "x1e.8xlarge", 58 },   { "hpc7g.4xlarge", 198 }, { "u7in-16tb.224xlarge", 394 },
    };
    for (size_t i = 0; i < KV_COUNT_OF(list); i++) {
        int64_t pods = allocatable_eni_pods(&find(list[i].name)->machine, 0, 0);
        if (pods != list[i].pods)
            fail_msg("%s takes %ld pods, not %ld", list[i].name, (long)list[i].pods, (long)pods);
    }
}

TEST(catalogue_has_the_published_allocatable_of_nodes)
{
    static const struct {
        const char *name;
        int64_t pods, memory_mib, free_cpu_milli, free_memory_mib;
    } golden[] = {
        { "t3.small", 11, 1894, 1930, 1418 },
        { "m5.large", 29, 7577, 1930, 6903 },
        { "m6g.large", 29, 7518, 1930, 6844 },
        { "m5.xlarge", 58, 15155, 3920, 14162 },
        { "c5.4xlarge", 234, 30310, 15890, 27381 },
        { "r7g.16xlarge", 737, 484907, 63770, 476445 },
        { "m5.24xlarge", 737, 363724, 95690, 355262 },
    };
    struct allocatable_class class_ = { .family = AMI_FAMILY_AL2023 };
    for (size_t i = 0; i < KV_COUNT_OF(golden); i++) {
        AUTO_ARENA arena = { 0 };
        struct node_resources has;
        struct err err = { 0 };
        EXPECT_OK(allocatable_compute(&arena, &find(golden[i].name)->machine, &class_,
                                      &ALLOCATABLE_DEFAULTS, &has, &err),
                  err);
        EXPECT_EQ(has.pods, golden[i].pods);
        EXPECT_EQ(quantity_units(resources_get(&has.capacity, STR("memory"))) >> 20,
                  golden[i].memory_mib);
        EXPECT_EQ(quantity_milli(resources_get(&has.allocatable, STR("cpu"))),
                  golden[i].free_cpu_milli);
        EXPECT_EQ(quantity_units(resources_get(&has.allocatable, STR("memory"))) >> 20,
                  golden[i].free_memory_mib);
    }
}

TEST(catalogue_knows_devices_and_disks)
{
    const struct machine *m = &find("g5.48xlarge")->machine;
    EXPECT_EQ(m->gpu_count, 1);
    EXPECT_STR(m->gpus[0].name, "A10G");
    EXPECT_EQ(m->gpus[0].count, 8);
    EXPECT_EQ(m->gpus[0].memory_mib, 24576);
    EXPECT_EQ(m->local_nvme_gb, 7600);

    m = &find("inf1.24xlarge")->machine;
    EXPECT_EQ(m->accelerators[0].count, 16);
    EXPECT_EQ(m->accelerators[0].cores, 4);
    EXPECT_TRUE(m->accelerators[0].neuron);
    EXPECT_EQ(m->gpu_count, 0);

    m = &find("d2.8xlarge")->machine; /* spinning, and not NVMe */
    EXPECT_EQ(m->local_disk_gb, 49152);
    EXPECT_EQ(m->local_nvme_gb, 0);
    EXPECT_EQ(m->memory_mib, 244 * 1024);

    EXPECT_EQ(find("c5d.9xlarge")->machine.local_nvme_gb, 900);
    EXPECT_EQ(find("m8gd.metal-24xl")->machine.local_nvme_gb, 5700);
    EXPECT_EQ(find("c5n.large")->machine.memory_mib, 5376);
    EXPECT_EQ(find("t3.nano")->machine.memory_mib, 512);
    EXPECT_EQ(find("t2.nano")->machine.memory_mib, 512);
}

TEST(catalogue_knows_hypervisors)
{
    EXPECT_STR(find("m5.large")->machine.hypervisor, "nitro");
    EXPECT_STR(find("r4.large")->machine.hypervisor, "xen");
    EXPECT_STR(find("i3.large")->machine.hypervisor, "xen");
    EXPECT_STR(find("i3.metal")->machine.hypervisor, "");
    EXPECT_FALSE(find("m5.large")->machine.nitro_enclaves); /* one core: none to spare */
    EXPECT_TRUE(find("m5.xlarge")->machine.nitro_enclaves);
    EXPECT_TRUE(find("m7g.large")->machine.nitro_enclaves);
    EXPECT_FALSE(find("m7g.metal")->machine.nitro_enclaves);
    EXPECT_FALSE(find("t3.2xlarge")->machine.nitro_enclaves);
    EXPECT_FALSE(find("u7i-12tb.224xlarge")->machine.spot);
}

/* --- what holds of every type --- */

TEST(catalogue_has_at_least_850_types_sorted_and_unique)
{
    const struct catalogue_machine *machines = catalogue_machines();
    uint32_t count = catalogue_machine_count();
    EXPECT_TRUE(count >= 850);
    for (uint32_t i = 1; i < count; i++)
        EXPECT_TRUE(str_cmp(machines[i - 1].machine.name, machines[i].machine.name) < 0);
    for (uint32_t i = 0; i < count; i++)
        EXPECT_TRUE(catalogue_machine_find(machines[i].machine.name) == &machines[i]);
    EXPECT_TRUE(catalogue_machine_find(STR("m5.huge")) == NULL);
    EXPECT_TRUE(catalogue_machine_find(STR("")) == NULL);
}

TEST(catalogue_memory_is_of_the_class_that_the_family_letter_promises)
{
    uint32_t seen = 0;
    each_machine(m)
    {
        uint64_t mib = m->machine.memory_mib / m->machine.vcpus;
        struct str name = m->machine.name;
        uint64_t low, high;
        if (name.p[0] == 'c')
            low = 1700, high = 2800;
        else if (name.p[0] == 'm')
            low = high = 4096;
        else if (name.p[0] == 'r')
            low = 7808, high = 8192;
        else if (name.p[0] == 'x')
            low = 15616, high = 32768;
        else
            continue;
        if (mib < low || mib > high)
            fail_msg("%.*s has %lu MiB per vCPU", STR_ARG(name), (unsigned long)mib);
        seen++;
    }
    EXPECT_TRUE(seen > 700);
}

TEST(catalogue_prices_grow_with_the_size_within_a_family)
{
    const struct catalogue_machine *machines = catalogue_machines();
    uint32_t count = catalogue_machine_count();
    for (uint32_t i = 0; i < count; i++) {
        const struct catalogue_machine *a = &machines[i];
        for (uint32_t j = 0; j < count; j++) {
            const struct catalogue_machine *b = &machines[j];
            bool alike = str_eq(family_of_name(a->machine.name), family_of_name(b->machine.name)) &&
                         a->machine.gpus[0].count == b->machine.gpus[0].count &&
                         !str_starts(a->machine.name, STR("hpc")); /* one price for all */
            bool metal = !a->machine.hypervisor.len || !b->machine.hypervisor.len;
            if (alike && !metal && a->machine.vcpus < b->machine.vcpus &&
                a->on_demand >= b->on_demand)
                fail_msg("%.*s costs no less than %.*s", STR_ARG(a->machine.name),
                         STR_ARG(b->machine.name));
        }
    }
}

TEST(catalogue_types_are_plausible_machines)
{
    each_machine(m)
    {
        const struct machine *k = &m->machine;
        bool metal = str_find(k->name, '.') >= 0 && k->hypervisor.len == 0;
        bool whole = k->vcpus >= 1 && k->vcpus <= 896 && k->memory_mib >= 512 && k->enis >= 2 &&
                     k->ipv4_per_eni >= 2 && k->card_count >= 1 && k->clock_mhz >= 1900 &&
                     k->clock_mhz <= 4500 && k->cpu_manufacturer.len && k->on_demand;
        bool arm = str_eqz(k->cpu_manufacturer, "AWS") == (k->arch == MACHINE_ARM64);
        bool offered = (m->zones & 7) != 0 && m->zones < 1u << CATALOGUE_ZONES_MAX;
        bool spot =
            k->spot ? m->spot_permille >= 250 && m->spot_permille <= 700 : m->spot_permille == 0;
        bool disks = k->local_nvme_gb <= k->local_disk_gb;
        bool trunks = !(k->branch_interfaces && str_eqz(k->hypervisor, "xen"));
        bool isolated = !(metal && (k->nitro_enclaves || k->nested_virtualization));
        if (!whole || !arm || !offered || !spot || !disks || !trunks || !isolated)
            fail_msg("%.*s is no plausible machine", STR_ARG(k->name));
    }
}

TEST(catalogue_accelerated_families_all_have_devices)
{
    static const char *const letters[] = { "g4", "g5", "g6", "gr6", "p3",
                                           "p4", "p5", "p6", "inf", "trn" };
    uint32_t with = 0, without = 0;
    each_machine(m)
    {
        bool should = false;
        for (size_t i = 0; i < KV_COUNT_OF(letters); i++)
            should = should || str_starts(m->machine.name, str_of(letters[i]));
        bool has = m->machine.gpu_count + m->machine.accelerator_count > 0;
        if (has != should)
            fail_msg("%.*s has %s device", STR_ARG(m->machine.name), has ? "a" : "no");
        with += has;
        without += !has;
    }
    EXPECT_TRUE(with > 50);
    EXPECT_TRUE(without > 800);
}

/* --- regions and prices --- */

TEST(catalogue_regions_have_distinct_zones_named_after_them)
{
    EXPECT_TRUE(catalogue_region_count >= 15);
    for (uint32_t i = 0; i < catalogue_region_count; i++) {
        const struct catalogue_region *r = &catalogue_regions[i];
        EXPECT_TRUE(catalogue_region_find(str_of(r->name)) == r);
        EXPECT_TRUE(r->price_permille >= 1000 && r->price_permille < 2000);
        EXPECT_TRUE(r->zone_count >= 2 && r->zone_count <= CATALOGUE_ZONES_MAX);
        for (uint32_t z = 0; z < r->zone_count; z++) {
            EXPECT_TRUE(str_starts(str_of(r->zones[z]), str_of(r->name)));
            EXPECT_EQ(strlen(r->zones[z]), strlen(r->name) + 1);
            for (uint32_t other = 0; other < z; other++) {
                EXPECT_TRUE(strcmp(r->zones[other], r->zones[z]) < 0);
                EXPECT_TRUE(strcmp(r->zone_ids[other], r->zone_ids[z]) != 0);
            }
        }
    }
    EXPECT_EQ(catalogue_region_find(STR("us-east-1"))->zone_count, 6);
    EXPECT_TRUE(catalogue_region_find(STR("us-moon-1")) == NULL);
}

TEST(catalogue_prices_elsewhere_follow_the_region_factor)
{
    char text[USD_HOUR_TEXT_MAX];
    const struct catalogue_machine *m = find("m5.large");
    usd_hour_format(catalogue_on_demand(m, catalogue_region_find(STR("eu-west-1"))), text);
    EXPECT_Z(text, "0.10704"); /* 0.096 * 1.115 */
    usd_hour_format(catalogue_on_demand(m, catalogue_region_find(STR("sa-east-1"))), text);
    EXPECT_Z(text, "0.153024");
    EXPECT_EQ(catalogue_on_demand(m, catalogue_region_find(STR("us-west-2"))), m->on_demand);
    m = find("p4d.24xlarge"); /* six decimals are kept */
    EXPECT_EQ(catalogue_on_demand(m, catalogue_region_find(STR("us-east-1"))), m->on_demand);
}

TEST(catalogue_spot_prices_stay_near_the_family_share_and_differ_between_zones)
{
    const struct catalogue_region *r = catalogue_region_find(STR("us-east-1"));
    uint32_t different = 0, pairs = 0;
    each_machine(m)
    {
        if (!m->machine.spot)
            continue;
        for (uint32_t z = 0; z < r->zone_count; z++) {
            usd_hour spot = catalogue_spot(m, r, z);
            usd_hour low = m->on_demand / 1000 * m->spot_permille / 10 * 9;
            usd_hour high = m->on_demand / 1000 * m->spot_permille / 10 * 11;
            usd_hour half_unit = USD_HOUR_ONE / 20000;
            EXPECT_TRUE(spot >= low - half_unit);
            EXPECT_TRUE(spot <= high + half_unit);
            EXPECT_TRUE(spot > 0);
            EXPECT_TRUE(spot < m->on_demand);
            EXPECT_EQ(spot, catalogue_spot(m, r, z));
            pairs += z > 0;
            different += z > 0 && spot != catalogue_spot(m, r, z - 1);
        }
    }
    EXPECT_TRUE(different > pairs * 9 / 10);
}

TEST(catalogue_spot_prices_do_not_change_between_builds)
{
    char text[USD_HOUR_TEXT_MAX];
    const struct catalogue_region *r = catalogue_region_find(STR("us-east-1"));
    usd_hour_format(catalogue_spot(find("m5.large"), r, 0), text);
    EXPECT_Z(text, "0.0355");
    usd_hour_format(catalogue_spot(find("c7g.4xlarge"), r, 3), text);
    EXPECT_Z(text, "0.2271");
}
