/* tests/kube/etcd_fill.h - many objects at once, put where an API server keeps them.
 *
 * For clusters of a size that would take longer to make through the server's door than what is then measured.
 * Nothing is checked: texts are what the server would have kept, in JSON. Restart the server afterwards. It is told
 * of them, but many share a version, as no writes through the server do: its cache is slow to take them in, and who
 * watches meanwhile misses some.
 */
#pragma once

#include "base/str.h"

struct etcd_fill;
struct etcd_fill *etcd_fill_new(const char *url);
void etcd_fill_free(struct etcd_fill *fill); /* what was put is there; NULL is fine */

/* `key` as the server names it: "/registry/pods/NAMESPACE/NAME". Ends the program if etcd refuses. */
void etcd_fill_put(struct etcd_fill *fill, const char *key, struct str text);
void etcd_fill_flush(struct etcd_fill *fill); /* on return everything is there */
