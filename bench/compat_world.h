/* bench/compat_world.h - images and nodes that were never anywhere, for the benchmark of image compatibility.
 *
 * An image is a number: its name, its digest and the spec that it has follow from it. So does a node: nodes of
 * one kind are machines of one instance type and image, and differ in what machines differ in (names, serial
 * numbers, network devices of pods).
 */
#pragma once

#include "api/nfd.h"
#include "compat/image_cache.h"

#define IMAGE_TEXT_MAX 64
#define NODE_KINDS 20

/* --- images --- */

/* Two sets, each of a CPU flag and a kernel version; so many different ones. */
struct image_world {
    struct compat_specs *pool;
    const struct compat_spec **specs;
    uint32_t spec_count;
};
void image_world_init(struct image_world *world, uint32_t spec_count);
void image_world_done(struct image_world *world);
struct str image_name(char out[IMAGE_TEXT_MAX], uint32_t number);
const struct image_facts *image_world_facts(const struct image_world *world, uint32_t number);
/* A registry that knows every image and answers at once. */
struct image_source image_world_source(struct image_world *world);
/* The text of one spec. */
void image_spec_text(uint32_t number, struct buf *out);

/* --- nodes --- */

struct node_world {
    struct object_pool *pool;
    uint32_t option_count;        /* of the kernel */
    struct buf kinds[NODE_KINDS]; /* what nodes of a kind have in common, JSON */
};
void node_world_init(struct node_world *world, struct object_pool *pool, uint32_t option_count);
void node_world_done(struct node_world *world);
struct str node_name(char out[IMAGE_TEXT_MAX], uint32_t number);
/* References, the caller's. */
const struct object *node_world_node(struct node_world *world, uint32_t number);
const struct object *node_world_claim(struct node_world *world, uint32_t number);
const struct object *node_world_feature(struct node_world *world, uint32_t number);

KV_PRINTF(2, 3) void bench_must(bool holds, const char *format, ...); /* or the program ends */
