/* bench/kube_read.h - the reading half of bench/kube, in a process of its own: so that what the system says
 * of its memory and its processor time is of reading alone.
 */
#pragma once

#include <stdint.h>

struct kube_read {
    uint64_t count; /* objects or events */
    double s;       /* without the start of the process */
    double
        reader_s;  /* processor time of the thread that decodes; the rest is TLS and the network */
    uint64_t hash; /* of what was read, in any order */
    uint64_t version; /* of the list, or of the last event */
    long rss_kb;      /* when all is read and kept; a watch keeps nothing */
    long peak_kb;
};

#define KUBE_READ_FORMAT "%lu %lf %lf %lx %lu %ld %ld"

/* The children's main: prints one line of KUBE_READ_FORMAT. Ends the program if it fails. */
void kube_read_list(const char *kubeconfig); /* all pods, and keeps them */
/* So many events of pods after that version, each decoded and dropped. */
void kube_read_watch(const char *kubeconfig, uint64_t version, uint64_t count);
