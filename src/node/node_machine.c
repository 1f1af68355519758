/* What this machine is and has, as a Node says it: from /proc, /sys, /etc and statvfs. A file that is
 * not there (containers and small systems lack some) leaves its field empty; what a Node cannot be
 * without, processors and memory, is an error.
 */
#include "node/node_api_inner.h"

#include "api/resources.h"
#include "base/file.h"

#include <sys/statvfs.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <unistd.h>

#define MACHINE_FILE_BYTES_MAX ((size_t)64 << 10)

/* As kubelets have them unless told otherwise: memory.available<100Mi, nodefs.available<10%,
 * nodefs.inodesFree<5%. */
#define MEMORY_LOW_BYTES ((int64_t)100 << 20)
#define DISK_LOW_PERCENT 10
#define INODES_LOW_PERCENT 5

/* --- files --- */

static struct str file_text(struct arena *arena, const char *path)
{
    AUTO_BUF text = { 0 };
    if (file_read(path, MACHINE_FILE_BYTES_MAX, &text, NULL) < 0 || !str_is_utf8(buf_str(&text)))
        return STR("");
    return arena_str(arena, str_trim(buf_str(&text)));
}

/* PRETTY_NAME="Debian GNU/Linux 12 (bookworm)" */
static struct str os_image(struct arena *arena)
{
    struct str rest = file_text(arena, "/etc/os-release"), line;
    bool more = true;
    while (more) {
        struct str key, value, tail = STR("");
        more = str_cut(rest, '\n', &line, &tail);
        rest = tail;
        if (!str_cut(line, '=', &key, &value) || !str_eqz(key, "PRETTY_NAME"))
            continue;
        value = str_trim(value);
        if (value.len >= 2 && (value.p[0] == '"' || value.p[0] == '\''))
            value = str_sub(value, 1, value.len - 2);
        return value;
    }
    return STR("Linux");
}

static struct str architecture(struct arena *arena, const char *machine)
{
    static const char *const names[][2] = {
        { "x86_64", "amd64" }, { "aarch64", "arm64" }, { "armv7l", "arm" }, { "i686", "386" }
    };
    for (size_t i = 0; i < KV_COUNT_OF(names); i++)
        if (strcmp(machine, names[i][0]) == 0)
            return str_of(names[i][1]);
    return arena_str(arena, str_of(machine));
}

/* --- resources --- */

static int by_name(const void *a, const void *b)
{
    return str_cmp(((const struct resource *)a)->name, ((const struct resource *)b)->name);
}

int node_resources_parse(struct arena *arena, struct str text, struct resources *out,
                         struct err *err)
{
    VEC(struct resource) items = { 0 };
    struct str rest = text, pair;
    bool more = str_trim(text).len > 0;
    int rc = 0;
    while (more && rc == 0) {
        struct str name, value, tail = STR("");
        struct resource item = { 0 };
        more = str_cut(rest, ',', &pair, &tail);
        rest = tail;
        if (!str_cut(pair, '=', &name, &value) || label_key_problem(str_trim(name)))
            rc = err_set(err, ERR_INVALID, "%s: expected NAME=QUANTITY", STR_SHOWN(pair));
        else if (quantity_parse(str_trim(value), &item.amount, err) < 0)
            rc = err_wrap(err, "%s", STR_SHOWN(pair));
        else if (quantity_cmp(item.amount, quantity_of(0)) < 0)
            rc = err_set(err, ERR_INVALID, "%s: is negative", STR_SHOWN(pair));
        item.name = arena_str(arena, str_trim(name));
        for (size_t i = 0; rc == 0 && i < items.count; i++)
            if (str_eq(items.items[i].name, item.name))
                rc = err_set(err, ERR_INVALID, "%s: is there twice", STR_SHOWN(item.name));
        vec_push(&items, item);
    }
    if (rc == 0) {
        struct resource *kept = arena_array(arena, struct resource, items.count);
        if (items.count) {
            memcpy(kept, items.items, items.count * sizeof *kept);
            qsort(kept, items.count, sizeof *kept, by_name);
        }
        *out = (struct resources){ kept, (uint32_t)items.count };
    }
    vec_done(&items);
    return rc;
}

static struct quantity binary(int64_t bytes)
{
    struct quantity q = quantity_of(bytes);
    q.format = QUANTITY_BINARY;
    return q;
}

static int read_capacity(struct arena *arena, const struct node_api_options *options,
                         struct resources *out, struct err *err)
{
    struct sysinfo info;
    struct statvfs fs;
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    if (cpus < 1 || sysinfo(&info) < 0)
        return err_set(err, ERR_UNAVAILABLE, "this machine does not tell its processors or memory");
    /* The folder may be made later: its parents are on the same file system, most likely. */
    const char *path = options->root;
    while (statvfs(path, &fs) < 0) {
        const char *slash = strrchr(path, '/');
        if (!slash || strcmp(path, "/") == 0)
            return err_set(err, ERR_UNAVAILABLE, "the size of the file system of %s is not known",
                           options->root);
        path =
            slash == path ? "/" : arena_str(arena, (struct str){ path, (size_t)(slash - path) }).p;
    }
    struct resource *items = arena_array(arena, struct resource, 4);
    items[0] = (struct resource){ STR("cpu"), quantity_of(cpus) };
    items[1] =
        (struct resource){ STR("ephemeral-storage"), binary((int64_t)(fs.f_blocks * fs.f_frsize)) };
    items[2] = (struct resource){ STR("memory"), binary((int64_t)info.totalram * info.mem_unit) };
    items[3] = (struct resource){ STR("pods"), quantity_of(options->pods_max) };
    *out = (struct resources){ items, 4 };
    return 0;
}

static int read_allocatable(struct arena *arena, const struct node_api_options *options,
                            const struct resources *capacity, struct resources *out,
                            struct err *err)
{
    *out = *capacity;
    for (size_t i = 0; i < KV_COUNT_OF(options->reserved); i++) {
        struct resources reserved;
        if (!options->reserved[i])
            continue;
        if (node_resources_parse(arena, str_of(options->reserved[i]), &reserved, err) < 0 ||
            resources_subtract(arena, out, &reserved, out, err) < 0)
            return err_wrap(err, "reserved resources");
    }
    for (uint32_t i = 0; i < out->count; i++)
        if (quantity_cmp(out->items[i].amount, quantity_of(0)) < 0)
            return err_set(err, ERR_INVALID, "reserved resources: more %.*s than this machine has",
                           STR_ARG(out->items[i].name));
    return 0;
}

int node_machine_read(struct arena *arena, const struct node_api_options *options,
                      struct node_machine *out, struct err *err)
{
    struct utsname uts;
    if (uname(&uts) < 0)
        return err_set(err, ERR_UNAVAILABLE, "this machine does not tell its kernel");
    *out = (struct node_machine){
        .kernel = arena_str(arena, str_of(uts.release)),
        .os_image = os_image(arena),
        .architecture = architecture(arena, uts.machine),
        .machine_id = file_text(arena, "/etc/machine-id"),
        .system_uuid = file_text(arena, "/sys/class/dmi/id/product_uuid"),
        .boot_id = file_text(arena, "/proc/sys/kernel/random/boot_id"),
    };
    if (out->system_uuid.len == 0)
        out->system_uuid = out->machine_id;
    if (read_capacity(arena, options, &out->capacity, err) < 0)
        return -1;
    return read_allocatable(arena, options, &out->capacity, &out->allocatable, err);
}

/* --- pressure --- */

static bool memory_is_low(void)
{
    AUTO_BUF text = { 0 };
    static const char name[] = "MemAvailable:";
    int64_t kib;
    if (file_read("/proc/meminfo", MACHINE_FILE_BYTES_MAX, &text, NULL) < 0)
        return false;
    const char *at = strstr(text.p, name);
    if (!at)
        return false;
    struct str rest = str_trim(str_of(at + strlen(name)));
    return str_to_i64(str_take_digits(&rest), &kib) && kib < MEMORY_LOW_BYTES >> 10;
}

static bool disk_is_low(const char *root)
{
    struct statvfs fs;
    if (statvfs(root, &fs) < 0)
        return false;
    return (fs.f_blocks && fs.f_bavail * 100 < fs.f_blocks * DISK_LOW_PERCENT) ||
           (fs.f_files && fs.f_favail * 100 < fs.f_files * INODES_LOW_PERCENT);
}

struct node_pressure node_pressure_now(const char *root)
{
    return (struct node_pressure){ .memory = memory_is_low(), .disk = disk_is_low(root) };
}
