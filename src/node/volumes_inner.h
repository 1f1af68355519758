/* node/volumes_inner.h - what the files of volumes share, and container mounts with them. */
#pragma once

#include "node/host_files.h"
#include "node/volumes.h"

/* "<root>/pods/<uid>", NUL-terminated. */
struct str pod_folder(struct arena *arena, struct str uid, const struct node_facts *facts);
/* Make it, and the one of that name in it unless NULL. The uid is a file name, or ERR_INVALID. */
int pod_folder_make(struct arena *arena, struct str uid, const struct node_facts *facts,
                    const char *maybe_sub, struct err *err);

/* May containers only read it? Then its files are ours: nobody else writes below it. */
bool volume_is_content(const struct node_volume *volume);

/* --- files of a content volume --- */

#define VOLUME_CONTENT_BYTES_MAX ((size_t)16 << 20)
#define VOLUME_CONTENT_FILES_MAX 5000

struct volume_file {
    struct str path; /* relative */
    struct str content;
    mode_t mode;
};

struct volume_files {
    VEC(struct volume_file) items;
};

/* What shall be in it, from its sources; texts in `arena`. The caller frees the vec. */
int volume_content(struct arena *arena, const struct node_pod *pod,
                   const struct node_volume *volume, const struct node_facts *facts,
                   const struct object_source *objects, struct volume_files *out, struct err *err);
/* Turn the folder over to exactly these files. `group` owns and may read them, if set. */
int volume_files_write(const char *folder, const struct volume_files *files, struct maybe_int group,
                       struct err *err);

/* --- objects --- */

/* The ConfigMap or Secret. ERR_UNAVAILABLE also where there is no API server. */
int object_fetch(const struct object_source *objects, bool secret, struct str namespace_,
                 struct str name, struct doc *out, struct err *err);
/* One value of it: 1, or 0 if it has no such key. Of a Secret decoded; of a ConfigMap `binary` says
 * whether binaryData counts too. */
int object_value(const struct doc *object, bool secret, bool binary, struct str key,
                 struct arena *arena, struct str *out, struct err *err);
