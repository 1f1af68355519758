/* One reading of a folder of manifests.
 *
 * Every file is read every time, and a hash of its bytes says whether there is anything new: then
 * nothing is parsed, and the pod of last time goes on. So half a minute of nothing costs a few
 * system calls a file. Pods are taken in the order of their paths; the second of a name, or of a
 * uid, is refused. */
#include "node/manifest_source.h"

#include "base/file.h"
#include "base/map.h"

#include <dirent.h>
#include <errno.h>
#include <sys/stat.h>

/* --- which files --- */

static bool is_passed_over(struct str name)
{
    return name.p[0] == '.' || str_ends(name, STR("~")) || str_ends(name, STR(".swp")) ||
           str_ends(name, STR(".tmp"));
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int list_folder(const char *folder, struct file_paths *out, struct err *err)
{
    DIR *dir = opendir(folder);
    if (!dir) {
        bool gone = errno == ENOENT || errno == ENOTDIR;
        return err_set(err, gone ? ERR_NOT_FOUND : ERR_UNAVAILABLE, "%s: %s", folder,
                       strerror(errno));
    }
    const struct dirent *entry;
    while (errno = 0, (entry = readdir(dir)) != NULL && out->items.count < FOLDER_NAMES_MAX) {
        if (is_passed_over(str_of(entry->d_name)))
            continue;
        AUTO_BUF path = { 0 };
        buf_addf(&path, "%s/%s", folder, entry->d_name);
        vec_push(&out->items, buf_take(&path));
    }
    int number = errno;
    closedir(dir);
    if (number)
        return err_set(err, ERR_UNAVAILABLE, "%s: %s", folder, strerror(number));
    if (out->items.count)
        qsort(out->items.items, out->items.count, sizeof *out->items.items, by_text);
    return 0;
}

/* --- one file --- */

struct reading {
    struct str node_name;
    int64_t now_us;
    const struct manifest_set *maybe_previous;
    struct log *log;
    struct manifest_set *out;
};

static const struct manifest_entry *entry_before(const struct reading *r, const char *path)
{
    const struct manifest_set *set = r->maybe_previous;
    size_t low = 0, high = set ? set->entry_count : 0;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int c = strcmp(path, set->entries[middle].path);
        if (c == 0)
            return &set->entries[middle];
        if (c < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

/* Told once for each content and reason; `before` is what was told of that file last time. */
static uint64_t tell(const struct reading *r, const struct manifest_entry *entry, uint64_t before,
                     const struct err *why)
{
    uint64_t told = kv_hash_salted(why->text, strlen(why->text), entry->content);
    if (told != before)
        log_warn(r->log, "manifest refused", LOG_Z("file", entry->path),
                 LOG_BOOL("keepsPod", entry->maybe_pod != NULL), LOG_ERR(why));
    return told;
}

static void keep(struct manifest_entry *entry, const struct manifest_entry *maybe_before)
{
    if (maybe_before && maybe_before->maybe_pod)
        entry->maybe_pod = node_pod_ref(maybe_before->maybe_pod);
}

/* A file whose comments changed gives an equal pod: then the old one goes on. */
static void parse(const struct reading *r, struct manifest_entry *entry,
                  const struct manifest_entry *maybe_before, struct str text)
{
    struct static_pod_options options = { .path = entry->path,
                                          .node_name = r->node_name,
                                          .seen_us = r->now_us };
    AUTO_NODE_POD pod = NULL;
    struct err why;
    if (node_pod_from_manifest(text, options, &pod, &why) < 0) {
        keep(entry, maybe_before);
        entry->wrong = tell(r, entry, maybe_before ? maybe_before->wrong : 0, &why);
    } else if (maybe_before && maybe_before->maybe_pod &&
               node_pod_same(pod, maybe_before->maybe_pod)) {
        keep(entry, maybe_before);
    } else {
        entry->maybe_pod = take(&pod);
    }
}

/* False: there is no file to read. */
static bool read_entry(const struct reading *r, const char *path, struct manifest_entry *entry)
{
    const struct manifest_entry *before = entry_before(r, path);
    AUTO_BUF text = { 0 };
    struct stat st;
    struct err why;
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
        return false;
    int rc = file_read(path, NODE_POD_BYTES_MAX, &text, &why);
    if (rc < 0 && why.kind == ERR_NOT_FOUND)
        return false; /* removed just now, or a link to nothing */

    *entry = (struct manifest_entry){ .path = kv_strdup(path) };
    if (rc < 0) {
        keep(entry, before);
        entry->wrong = tell(r, entry, before ? before->wrong : 0, &why);
        return true;
    }
    entry->content = kv_hash(text.p, text.len);
    if (before && before->content == entry->content) {
        entry->wrong = before->wrong;
        keep(entry, before);
    } else {
        parse(r, entry, before, buf_str(&text));
    }
    return true;
}

/* --- all of them --- */

static bool is_taken(struct str_table *owners, struct str key, const char *what,
                     const struct manifest_entry *entry, struct err *why)
{
    const struct manifest_entry *owner = str_table_get(owners, key);
    if (!owner)
        return false;
    err_set(why, ERR_EXISTS, "%s: %s %s is already that of the pod in %s", entry->path, what,
            STR_SHOWN(key), owner->path);
    return true;
}

static int by_uid(const void *a, const void *b)
{
    return str_cmp((*(const struct node_pod *const *)a)->uid,
                   (*(const struct node_pod *const *)b)->uid);
}

static void choose_pods(const struct reading *r)
{
    struct manifest_set *set = r->out;
    struct str_table names = { 0 }, uids = { 0 };
    set->pods = kv_calloc(set->entry_count + 1, sizeof(struct node_pod *));
    for (uint32_t i = 0; i < set->entry_count; i++) {
        struct manifest_entry *entry = &set->entries[i];
        const struct node_pod *pod = entry->maybe_pod;
        AUTO_BUF name = { 0 };
        struct err why;
        if (pod)
            buf_addf(&name, "%.*s/%.*s", STR_ARG(pod->namespace_), STR_ARG(pod->name));
        if (pod && (is_taken(&names, buf_str(&name), "the name", entry, &why) ||
                    is_taken(&uids, pod->uid, "the uid", entry, &why))) {
            const struct manifest_entry *before = entry_before(r, entry->path);
            entry->clash = tell(r, entry, before ? before->clash : 0, &why);
        } else if (pod) {
            str_table_put(&names, buf_str(&name), entry);
            str_table_put(&uids, pod->uid, entry);
            set->pods[set->count++] = pod;
        }
        set->problem_count += entry->wrong || entry->clash;
    }
    str_table_done(&names);
    str_table_done(&uids);
    if (set->count)
        qsort(set->pods, set->count, sizeof *set->pods, by_uid);
}

int manifest_set_read(const char *folder, struct str node_name, int64_t now_us,
                      const struct manifest_set *previous, struct log *log,
                      struct manifest_set *out, struct err *err)
{
    struct reading r = { node_name, now_us, previous, log, out };
    VEC(struct manifest_entry) entries = { 0 };
    struct file_paths paths = { 0 };
    int rc = list_folder(folder, &paths, err);
    for (size_t i = 0; rc == 0 && i < paths.items.count; i++) {
        struct manifest_entry entry;
        if (entries.count == MANIFEST_FILES_MAX) {
            if (!previous || previous->entry_count < MANIFEST_FILES_MAX)
                log_warn(log, "too many manifests", LOG_Z("folder", folder),
                         LOG_INT("read", MANIFEST_FILES_MAX), LOG_Z("left", paths.items.items[i]));
            break;
        }
        if (read_entry(&r, paths.items.items[i], &entry))
            vec_push(&entries, entry);
    }
    file_paths_done(&paths);
    if (rc < 0)
        return -1;
    *out =
        (struct manifest_set){ .entries = entries.items, .entry_count = (uint32_t)entries.count };
    choose_pods(&r);
    return 0;
}

void manifest_set_done(struct manifest_set *set)
{
    for (uint32_t i = 0; i < set->entry_count; i++) {
        node_pod_unref(set->entries[i].maybe_pod);
        free(set->entries[i].path);
    }
    free(set->entries);
    free(set->pods);
    *set = (struct manifest_set){ 0 };
}
