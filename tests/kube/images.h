/* tests/kube/images.h - a cluster whose kube-scheduler asks our extender, and a registry with images.
 *
 * The scheduler is configured by what `karve extender --print-config` prints, with TLS and a client's
 * certificate. The extender and the controller are users with exactly the rights that `karve crds --rbac`
 * gives them. Nodes are in classes, and are named after theirs: who knows which classes can run an image
 * can tell from a pod's node whether the pod may be there.
 */
#pragma once

#include "kube/fixture.h"
#include "registry/registry_fixture.h"

#define IMAGES_LIMIT_S 120    /* for all pods of a test to be where they go */
#define IMAGES_NFD "nfd-test" /* the namespace of NodeFeatures and groups */

/* Bits, for sets of classes. */
enum node_class {
    CLASS_PLAIN = 1 << 0,  /* amd64 */
    CLASS_AVX512 = 1 << 1, /* with AVX-512 */
    CLASS_AMX = 1 << 2,    /* with AVX-512 and AMX */
    CLASS_ARM = 1 << 3,    /* arm64 */
    /* Nobody has looked at the machine: judged by its instance type. */
    CLASS_M7I = 1 << 4, /* has AVX-512 and AMX */
    CLASS_M6A = 1 << 5, /* has neither */
    CLASS_COUNT = 6,
};
#define CLASSES_AMD64 (CLASS_PLAIN | CLASS_AVX512 | CLASS_AMX | CLASS_M7I | CLASS_M6A)
#define CLASSES_AVX512 (CLASS_AVX512 | CLASS_AMX | CLASS_M7I)
#define CLASSES_AMX (CLASS_AMX | CLASS_M7I)
#define CLASSES_ALL (CLASSES_AMD64 | CLASS_ARM)

/* Images of the registry, and where they run. */
struct image_case {
    const char *name; /* "app/amd64:1" */
    uint32_t may;     /* classes */
};
extern const struct image_case image_amd64, image_arm64, image_both, image_avx512, image_two_sets,
    image_nowhere, image_untrusted;

/* A spec with one set per word, each of which asks for that cpuid flag; words end with NULL. */
struct str images_spec(struct arena *arena, const char *const *flags);

struct images {
    struct plane *plane;
    struct registry_fixture *registry;
    struct registry *client;    /* to push with */
    const struct store *store;  /* as the administrator */
    uint32_t pods;              /* made so far in this test */
    pid_t extender, controller; /* 0: it does not run */
};
/* The plane with `nodes` of all classes in `classes`, no pods and no groups; images are in the registry. No
 * program of ours runs. */
struct images *images_start(uint32_t nodes, uint32_t classes);

/* Start the extender with further flags, ending with NULL, or NULL; returns when it answers the scheduler. */
void images_extender(struct images *s, const char *const *maybe_flags);
/* Of a program that is about to be ended: it is not ended again before the next test. */
pid_t images_let_go(pid_t *pid);
/* How long its answers took, as its metrics tell; a comment. */
void images_print_durations(struct images *s);

/* One more pod with these images, NULL at the end; it may be on nodes of the classes. */
void images_pod_at(struct images *s, const char *name, uint32_t may, const char *const *images);
void images_pod(struct images *s, const struct image_case *image);
void images_pod_of_two(struct images *s, const struct image_case *a, const struct image_case *b);

struct images_seen {
    uint32_t bound, wrong; /* pods; those on a wrong node are told as comments */
};
struct images_seen images_look(struct images *s);
/* All but `left` of the pods get bound, and each to a node where it may be. */
void images_expect_bound(struct images *s, uint32_t left);
/* The class of the node that the pod is on; 0: it is not bound. */
uint32_t images_class_of(struct images *s, const char *pod);
/* Why the scheduler says it is not, as the pod's condition tells; "" if it does not. The arena's. */
struct str images_why_not(struct images *s, const char *pod);
