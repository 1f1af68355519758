/* Regions, and what the same machine costs in each of them.
 *
 * The list has a price for every (type, region). We keep us-east-1's and one factor per region,
 * that of its m5.large: prices of other families there are within a few percent of it.
 *
 * Spot prices move by the hour. We keep a typical share of the on-demand price per family, and
 * spread the zones around it by a hash, up to a tenth either way: zones differ, as they do in EC2,
 * and the same question always has the same answer.
 */
#include "cloud/catalogue.h"

/* clang-format off */
const struct catalogue_region catalogue_regions[] = {
    { "af-south-1", 1323, 3, { "af-south-1a", "af-south-1b", "af-south-1c" },
      { "afs1-az1", "afs1-az2", "afs1-az3" } },
    { "ap-east-1", 1375, 3, { "ap-east-1a", "ap-east-1b", "ap-east-1c" },
      { "ape1-az1", "ape1-az2", "ape1-az3" } },
    { "ap-northeast-1", 1292, 3, { "ap-northeast-1a", "ap-northeast-1c", "ap-northeast-1d" },
      { "apne1-az4", "apne1-az1", "apne1-az2" } },
    { "ap-northeast-2", 1229, 4,
      { "ap-northeast-2a", "ap-northeast-2b", "ap-northeast-2c", "ap-northeast-2d" },
      { "apne2-az1", "apne2-az2", "apne2-az3", "apne2-az4" } },
    { "ap-northeast-3", 1292, 3, { "ap-northeast-3a", "ap-northeast-3b", "ap-northeast-3c" },
      { "apne3-az3", "apne3-az1", "apne3-az2" } },
    { "ap-south-1", 1052, 3, { "ap-south-1a", "ap-south-1b", "ap-south-1c" },
      { "aps1-az1", "aps1-az3", "aps1-az2" } },
    { "ap-southeast-1", 1250, 3, { "ap-southeast-1a", "ap-southeast-1b", "ap-southeast-1c" },
      { "apse1-az1", "apse1-az2", "apse1-az3" } },
    { "ap-southeast-2", 1250, 3, { "ap-southeast-2a", "ap-southeast-2b", "ap-southeast-2c" },
      { "apse2-az1", "apse2-az3", "apse2-az2" } },
    { "ca-central-1", 1115, 3, { "ca-central-1a", "ca-central-1b", "ca-central-1d" },
      { "cac1-az1", "cac1-az2", "cac1-az4" } },
    { "eu-central-1", 1198, 3, { "eu-central-1a", "eu-central-1b", "eu-central-1c" },
      { "euc1-az2", "euc1-az3", "euc1-az1" } },
    { "eu-north-1", 1063, 3, { "eu-north-1a", "eu-north-1b", "eu-north-1c" },
      { "eun1-az1", "eun1-az2", "eun1-az3" } },
    { "eu-south-1", 1167, 3, { "eu-south-1a", "eu-south-1b", "eu-south-1c" },
      { "eus1-az1", "eus1-az2", "eus1-az3" } },
    { "eu-west-1", 1115, 3, { "eu-west-1a", "eu-west-1b", "eu-west-1c" },
      { "euw1-az3", "euw1-az1", "euw1-az2" } },
    { "eu-west-2", 1156, 3, { "eu-west-2a", "eu-west-2b", "eu-west-2c" },
      { "euw2-az2", "euw2-az3", "euw2-az1" } },
    { "eu-west-3", 1167, 3, { "eu-west-3a", "eu-west-3b", "eu-west-3c" },
      { "euw3-az1", "euw3-az2", "euw3-az3" } },
    { "me-south-1", 1229, 3, { "me-south-1a", "me-south-1b", "me-south-1c" },
      { "mes1-az1", "mes1-az2", "mes1-az3" } },
    { "sa-east-1", 1594, 3, { "sa-east-1a", "sa-east-1b", "sa-east-1c" },
      { "sae1-az1", "sae1-az2", "sae1-az3" } },
    { "us-east-1", 1000, 6,
      { "us-east-1a", "us-east-1b", "us-east-1c", "us-east-1d", "us-east-1e", "us-east-1f" },
      { "use1-az4", "use1-az6", "use1-az1", "use1-az2", "use1-az3", "use1-az5" } },
    { "us-east-2", 1000, 3, { "us-east-2a", "us-east-2b", "us-east-2c" },
      { "use2-az1", "use2-az2", "use2-az3" } },
    { "us-west-1", 1167, 2, { "us-west-1a", "us-west-1b" }, { "usw1-az3", "usw1-az1" } },
    { "us-west-2", 1000, 4, { "us-west-2a", "us-west-2b", "us-west-2c", "us-west-2d" },
      { "usw2-az1", "usw2-az2", "usw2-az3", "usw2-az4" } },
};
/* clang-format on */
const uint32_t catalogue_region_count = KV_COUNT_OF(catalogue_regions);

const struct catalogue_region *catalogue_region_find(struct str name)
{
    for (uint32_t i = 0; i < catalogue_region_count; i++) {
        if (str_eqz(name, catalogue_regions[i].name))
            return &catalogue_regions[i];
    }
    return NULL;
}

/* Rounded half up to so many parts of a dollar, at least one of them. */
static usd_hour share(usd_hour price, uint64_t per_million, usd_hour parts)
{
    usd_hour unit = USD_HOUR_ONE / parts;
    usd_hour exact = price / 1000000 * (usd_hour)per_million; /* prices are whole millionths */
    usd_hour rounded = (exact + unit / 2) / unit * unit;
    return rounded ? rounded : unit;
}

usd_hour catalogue_on_demand(const struct catalogue_machine *m, const struct catalogue_region *r)
{
    return share(m->on_demand, (uint64_t)r->price_permille * 1000, 1000000);
}

/* FNV-1a. Written down here because prices follow from it. */
static uint64_t add_hash(uint64_t hash, struct str s)
{
    for (size_t i = 0; i < s.len; i++)
        hash = (hash ^ (unsigned char)s.p[i]) * 0x100000001b3;
    return hash;
}

usd_hour catalogue_spot(const struct catalogue_machine *m, const struct catalogue_region *r,
                        uint32_t zone_ix)
{
    uint64_t hash = add_hash(0xcbf29ce484222325, m->machine.name);
    hash = kv_mix64(add_hash(hash, str_of(r->zones[zone_ix])));
    uint64_t zone_permille = 900 + hash % 201;
    return share(catalogue_on_demand(m, r), m->spot_permille * zone_permille, 10000);
}
