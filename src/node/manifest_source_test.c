#include "node/manifest_source.h"

#include "base/clock.h"
#include "support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* --- a folder of manifests, and a log to read --- */

struct folder {
    char root[32]; /* holds the folder, so that it can go away */
    char path[48];
    int log_fd;
    struct log *log;
};

static void folder_open(struct folder *f)
{
    *f = (struct folder){ 0 };
    snprintf(f->root, sizeof f->root, "/tmp/karve-manifests-XXXXXX");
    EXPECT_TRUE(mkdtemp(f->root) != NULL);
    snprintf(f->path, sizeof f->path, "%s/m", f->root);
    EXPECT_EQ(mkdir(f->path, 0700), 0);
    f->log_fd = open(f->root, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    EXPECT_TRUE(f->log_fd >= 0);
    f->log = log_new((struct log_options){
        .clock = clock_real(), .fd = f->log_fd, .format = LOG_JSON, .repeat_window_ns = -1 });
}

static void folder_done(struct folder *f)
{
    AUTO_BUF command = { 0 };
    log_free(f->log);
    close(f->log_fd);
    buf_addf(&command, "rm -rf %s", f->root);
    EXPECT_EQ(system(command.p), 0);
}
#define AUTO_FOLDER __attribute__((cleanup(folder_done))) struct folder

static const char *in(const struct folder *f, const char *name)
{
    static _Thread_local char path[2][128];
    static _Thread_local int turn;
    turn = !turn;
    snprintf(path[turn], sizeof path[turn], "%s/%s", f->path, name);
    return path[turn];
}

static void put(const struct folder *f, const char *name, const char *text)
{
    FILE *file = fopen(in(f, name), "we");
    EXPECT_TRUE(file != NULL);
    EXPECT_TRUE(fputs(text, file) >= 0);
    EXPECT_EQ(fclose(file), 0);
}

static void put_pod(const struct folder *f, const char *name, const char *pod, const char *image)
{
    AUTO_BUF text = { 0 };
    buf_addf(&text,
             "apiVersion: v1\nkind: Pod\nmetadata: {name: %s}\n"
             "spec: {containers: [{name: app, image: '%s'}]}\n",
             pod, image);
    put(f, name, text.p);
}

static void drop(const struct folder *f, const char *name)
{
    EXPECT_EQ(unlink(in(f, name)), 0);
}

static uint32_t logged(const struct folder *f, const char *words)
{
    AUTO_BUF text = { 0 };
    uint32_t count = 0;
    off_t len = lseek(f->log_fd, 0, SEEK_END);
    buf_reserve(&text, (size_t)len + 1);
    EXPECT_EQ(pread(f->log_fd, text.p, (size_t)len, 0), len);
    text.p[len] = '\0';
    for (const char *at = text.p; (at = strstr(at, words)) != NULL; at++)
        count++;
    return count;
}

/* --- one reading --- */

static struct manifest_set read_after(const struct folder *f, const struct manifest_set *previous)
{
    static int64_t now_us = 1000000;
    struct manifest_set set;
    struct err err;
    now_us += 1000000;
    EXPECT_OK(manifest_set_read(f->path, STR("n1"), now_us, previous, f->log, &set, &err), err);
    return set;
}
#define AUTO_SET __attribute__((cleanup(manifest_set_done))) struct manifest_set

static const struct node_pod *pod_named(const struct manifest_set *set, const char *name)
{
    for (uint32_t i = 0; i < set->count; i++) {
        if (str_eqz(set->pods[i]->name, name))
            return set->pods[i];
    }
    return NULL;
}

TEST(a_folder_gives_the_pods_of_its_files_sorted_by_uid)
{
    AUTO_FOLDER f;
    folder_open(&f);
    AUTO_SET none = read_after(&f, NULL);
    EXPECT_EQ(none.count, 0);

    put_pod(&f, "b.yaml", "b", "i:1");
    put_pod(&f, "a", "a", "i:1"); /* the name of the file says nothing */
    put_pod(&f, "c.json", "c", "i:1");
    AUTO_SET set = read_after(&f, &none);
    EXPECT_EQ(set.count, 3);
    EXPECT_EQ(set.problem_count, 0);
    EXPECT_TRUE(str_cmp(set.pods[0]->uid, set.pods[1]->uid) < 0);
    EXPECT_TRUE(str_cmp(set.pods[1]->uid, set.pods[2]->uid) < 0);
    EXPECT_TRUE(pod_named(&set, "a-n1") && pod_named(&set, "b-n1") && pod_named(&set, "c-n1"));
}

TEST(hidden_files_folders_and_what_editors_leave_are_passed_over)
{
    AUTO_FOLDER f;
    folder_open(&f);
    static const char *const names[] = { ".hidden.yaml", "a.yaml~",    ".a.yaml.swp",
                                         "a.swp",        "a.yaml.tmp", "..data" };
    for (size_t i = 0; i < KV_COUNT_OF(names); i++)
        put(&f, names[i], "no manifest");
    EXPECT_EQ(mkdir(in(&f, "sub"), 0700), 0);
    EXPECT_EQ(mkfifo(in(&f, "pipe"), 0600), 0);
    EXPECT_EQ(symlink("nowhere", in(&f, "dangling")), 0);
    AUTO_SET set = read_after(&f, NULL);
    EXPECT_EQ(set.count, 0);
    EXPECT_EQ(set.problem_count, 0);
}

TEST(links_are_followed_as_mounted_config_maps_lay_them_out)
{
    AUTO_FOLDER f;
    folder_open(&f);
    EXPECT_EQ(mkdir(in(&f, "..v1"), 0700), 0);
    EXPECT_EQ(mkdir(in(&f, "..v2"), 0700), 0);
    put_pod(&f, "..v1/a.yaml", "a", "i:1");
    put_pod(&f, "..v2/a.yaml", "a", "i:2");
    EXPECT_EQ(symlink("..v1", in(&f, "..data")), 0);
    EXPECT_EQ(symlink("..data/a.yaml", in(&f, "a.yaml")), 0);
    AUTO_SET one = read_after(&f, NULL);
    EXPECT_STR(pod_named(&one, "a-n1")->containers.items[0].image, "i:1");

    EXPECT_EQ(symlink("..v2", in(&f, "..data_tmp")), 0);
    EXPECT_EQ(rename(in(&f, "..data_tmp"), in(&f, "..data")), 0);
    AUTO_SET two = read_after(&f, &one);
    EXPECT_STR(pod_named(&two, "a-n1")->containers.items[0].image, "i:2");
}

TEST(what_did_not_change_is_the_very_same_pod)
{
    AUTO_FOLDER f;
    folder_open(&f);
    put_pod(&f, "a.yaml", "a", "i:1");
    put_pod(&f, "b.yaml", "b", "i:1");
    AUTO_SET one = read_after(&f, NULL);
    AUTO_SET two = read_after(&f, &one);
    EXPECT_EQ(two.count, 2);
    EXPECT_TRUE(two.pods[0] == one.pods[0]);
    EXPECT_TRUE(two.pods[1] == one.pods[1]);

    put(&f, "a.yaml",
        "# a word about it\napiVersion: v1\nkind: Pod\nmetadata: {name: a}\n"
        "spec: {containers: [{image: 'i:1', name: app}]}\n");
    put_pod(&f, "b.yaml", "b", "i:2");
    AUTO_SET three = read_after(&f, &two);
    EXPECT_TRUE(pod_named(&three, "a-n1") == pod_named(&two, "a-n1"));
    EXPECT_TRUE(pod_named(&three, "b-n1") != pod_named(&two, "b-n1"));
    EXPECT_FALSE(str_eq(pod_named(&three, "b-n1")->uid, pod_named(&two, "b-n1")->uid));

    drop(&f, "a.yaml");
    AUTO_SET four = read_after(&f, &three);
    EXPECT_EQ(four.count, 1);
    EXPECT_TRUE(pod_named(&four, "a-n1") == NULL);
}

TEST(a_file_that_turns_wrong_keeps_its_pod_and_is_told_of_once_per_content)
{
    AUTO_FOLDER f;
    folder_open(&f);
    put_pod(&f, "a.yaml", "a", "i:1");
    AUTO_SET good = read_after(&f, NULL);
    put(&f, "a.yaml", "apiVersion: v1\nkind: Pod\nmetad");
    AUTO_SET bad = read_after(&f, &good);
    AUTO_SET still = read_after(&f, &bad);
    EXPECT_TRUE(pod_named(&still, "a-n1") == pod_named(&good, "a-n1"));
    EXPECT_EQ(still.problem_count, 1);
    EXPECT_EQ(logged(&f, "manifest refused"), 1);
    EXPECT_EQ(logged(&f, "m/a.yaml:"), 1);

    put(&f, "a.yaml", "kind: Job\n");
    AUTO_SET worse = read_after(&f, &still);
    EXPECT_EQ(logged(&f, "manifest refused"), 2);
    EXPECT_EQ(worse.count, 1);

    put_pod(&f, "a.yaml", "a", "i:1");
    AUTO_SET mended = read_after(&f, &worse);
    EXPECT_EQ(mended.problem_count, 0);
    EXPECT_TRUE(pod_named(&mended, "a-n1") == pod_named(&good, "a-n1"));

    drop(&f, "a.yaml"); /* wrong or not, a file that is gone takes its pod with it */
    AUTO_SET gone = read_after(&f, &mended);
    EXPECT_EQ(gone.count, 0);
}

TEST(a_file_that_was_never_right_gives_no_pod)
{
    AUTO_FOLDER f;
    folder_open(&f);
    put(&f, "a.yaml", "nonsense");
    put_pod(&f, "b.yaml", "b", "i:1");
    AUTO_SET set = read_after(&f, NULL);
    EXPECT_EQ(set.count, 1);
    EXPECT_EQ(set.problem_count, 1);
}

TEST(a_file_that_is_too_long_keeps_its_pod_until_it_can_be_read_again)
{
    AUTO_FOLDER f;
    folder_open(&f);
    put_pod(&f, "a.yaml", "a", "i:1");
    AUTO_SET one = read_after(&f, NULL);
    EXPECT_EQ(truncate(in(&f, "a.yaml"), (off_t)NODE_POD_BYTES_MAX + 1), 0);
    AUTO_SET two = read_after(&f, &one);
    AUTO_SET three = read_after(&f, &two);
    EXPECT_EQ(three.problem_count, 1);
    EXPECT_TRUE(three.pods[0] == one.pods[0]);
    EXPECT_EQ(logged(&f, "manifest refused"), 1);
    put_pod(&f, "a.yaml", "a", "i:1");
    AUTO_SET four = read_after(&f, &three);
    EXPECT_EQ(four.problem_count, 0);
    EXPECT_TRUE(four.pods[0] == one.pods[0]);
}

TEST(the_second_file_of_a_name_is_refused_until_the_first_is_gone)
{
    AUTO_FOLDER f;
    folder_open(&f);
    put_pod(&f, "b.yaml", "web", "i:b");
    AUTO_SET alone = read_after(&f, NULL);
    EXPECT_STR(alone.pods[0]->containers.items[0].image, "i:b");

    put_pod(&f, "a.yaml", "web", "i:a");
    AUTO_SET both = read_after(&f, &alone);
    AUTO_SET again = read_after(&f, &both);
    EXPECT_EQ(again.count, 1);
    EXPECT_EQ(again.problem_count, 1);
    EXPECT_STR(again.pods[0]->containers.items[0].image, "i:a");
    EXPECT_EQ(logged(&f, "manifest refused"), 1);
    EXPECT_EQ(logged(&f, "m/a.yaml"), 1);
    EXPECT_TRUE(logged(&f, "m/b.yaml") >= 1);

    drop(&f, "a.yaml");
    AUTO_SET after = read_after(&f, &again);
    EXPECT_EQ(after.problem_count, 0);
    EXPECT_TRUE(after.pods[0] == alone.pods[0]);

    put_pod(&f, "a.yaml", "web", "i:a"); /* a new clash is told again */
    AUTO_SET clash = read_after(&f, &after);
    EXPECT_EQ(clash.problem_count, 1);
    EXPECT_EQ(logged(&f, "manifest refused"), 2);
}

TEST(the_second_file_of_a_uid_is_refused)
{
    AUTO_FOLDER f;
    folder_open(&f);
    for (int i = 0; i < 2; i++) {
        AUTO_BUF text = { 0 };
        buf_addf(&text,
                 "apiVersion: v1\nkind: Pod\nmetadata: {name: p%d, uid: same}\n"
                 "spec: {containers: [{name: app, image: i}]}\n",
                 i);
        put(&f, i ? "b" : "a", text.p);
    }
    AUTO_SET set = read_after(&f, NULL);
    EXPECT_EQ(set.count, 1);
    EXPECT_STR(set.pods[0]->name, "p0-n1");
    EXPECT_EQ(logged(&f, "the uid"), 1);
}

TEST(no_more_files_than_the_limit_are_read)
{
    AUTO_FOLDER f;
    folder_open(&f);
    for (int i = 0; i < MANIFEST_FILES_MAX + 2; i++) {
        char pod[16]; /* the file is called so too */
        snprintf(pod, sizeof pod, "p%04d", i);
        put_pod(&f, pod, pod, "i");
    }
    AUTO_SET set = read_after(&f, NULL);
    AUTO_SET again = read_after(&f, &set);
    EXPECT_EQ(again.count, MANIFEST_FILES_MAX);
    EXPECT_TRUE(pod_named(&set, "p0000-n1") && pod_named(&set, "p0999-n1"));
    EXPECT_EQ(logged(&f, "too many manifests"), 1);
}

TEST(a_folder_that_is_not_there_is_not_found)
{
    struct manifest_set set;
    struct err err;
    EXPECT_ERR(manifest_set_read("/tmp/karve-no-such", STR("n"), 0, NULL, NULL, &set, &err), err,
               ERR_NOT_FOUND);
    EXPECT_ERR(manifest_set_read("/etc/passwd", STR("n"), 0, NULL, NULL, &set, &err), err,
               ERR_NOT_FOUND);
}

/* --- the thread --- */

struct heard { /* what the source told, as "name=image name=image" sorted by name */
    pthread_mutex_t lock;
    uint32_t times;
    char pods[512];
};

static int by_name(const void *a, const void *b)
{
    return str_cmp((*(const struct node_pod *const *)a)->name,
                   (*(const struct node_pod *const *)b)->name);
}

static void hear(void *ctx, const struct node_pod *const *pods, uint32_t count)
{
    struct heard *h = ctx;
    const struct node_pod *sorted[16];
    AUTO_BUF text = { 0 };
    KV_ASSERT(count <= KV_COUNT_OF(sorted));
    if (count) {
        memcpy(sorted, pods, count * sizeof *pods);
        qsort(sorted, count, sizeof *sorted, by_name);
    }
    for (uint32_t i = 0; i < count; i++)
        buf_addf(&text, "%s%.*s=%.*s", i ? " " : "", STR_ARG(sorted[i]->name),
                 STR_ARG(sorted[i]->containers.items[0].image));
    pthread_mutex_lock(&h->lock);
    h->times++;
    snprintf(h->pods, sizeof h->pods, "%s", buf_str(&text).p);
    pthread_mutex_unlock(&h->lock);
}

static void nap(void)
{
    nanosleep(&(struct timespec){ .tv_nsec = 5000000 }, NULL);
}

/* Within 30 s: a loaded machine under a sanitizer is slow. */
static void expect_heard(struct heard *h, const char *want)
{
    char got[512] = "";
    uint32_t times = 0;
    for (int i = 0; i < 6000; i++) {
        pthread_mutex_lock(&h->lock);
        times = h->times;
        snprintf(got, sizeof got, "%s", h->pods);
        pthread_mutex_unlock(&h->lock);
        if (times && strcmp(got, want) == 0)
            return;
        nap();
    }
    EXPECT_Z(got, want);
    EXPECT_TRUE(times > 0);
}

static uint32_t times_heard(struct heard *h)
{
    pthread_mutex_lock(&h->lock);
    uint32_t times = h->times;
    pthread_mutex_unlock(&h->lock);
    return times;
}

static struct manifest_source *start_with(const struct folder *f, struct heard *h,
                                          int64_t reread_ns)
{
    struct manifest_source *source = NULL;
    struct err err;
    EXPECT_OK(manifest_source_start((struct manifest_source_options){ .folder = f->path,
                                                                      .node_name = STR("n1"),
                                                                      .clock = clock_real(),
                                                                      .log = f->log,
                                                                      .reread_ns = reread_ns,
                                                                      .pods = hear,
                                                                      .ctx = h },
                                    &source, &err),
              err);
    return source;
}

#define NEVER ((int64_t)3600 * 1000000000) /* only inotify helps */
#define OFTEN ((int64_t)20 * 1000000)

TEST(the_source_tells_of_an_empty_folder_too)
{
    AUTO_FOLDER f;
    folder_open(&f);
    struct heard h = { .lock = PTHREAD_MUTEX_INITIALIZER };
    AUTO(manifest_source) source KV_UNUSED = start_with(&f, &h, NEVER);
    expect_heard(&h, "");
}

TEST(the_source_follows_files_that_come_change_and_go)
{
    AUTO_FOLDER f;
    folder_open(&f);
    struct heard h = { .lock = PTHREAD_MUTEX_INITIALIZER };
    put_pod(&f, "a.yaml", "a", "i:1");
    AUTO(manifest_source) source KV_UNUSED = start_with(&f, &h, NEVER);
    expect_heard(&h, "a-n1=i:1");

    put_pod(&f, "b.yaml", "b", "i:1");
    expect_heard(&h, "a-n1=i:1 b-n1=i:1");
    put_pod(&f, "a.yaml", "a", "i:2"); /* in place */
    expect_heard(&h, "a-n1=i:2 b-n1=i:1");
    put_pod(&f, ".b.new", "b", "i:2"); /* renamed over */
    EXPECT_EQ(rename(in(&f, ".b.new"), in(&f, "b.yaml")), 0);
    expect_heard(&h, "a-n1=i:2 b-n1=i:2");
    EXPECT_EQ(rename(in(&f, "a.yaml"), in(&f, ".a.yaml")), 0);
    expect_heard(&h, "b-n1=i:2");
    drop(&f, "b.yaml");
    expect_heard(&h, "");
}

TEST(the_steps_of_an_editor_are_one_change)
{
    AUTO_FOLDER f;
    folder_open(&f);
    struct heard h = { .lock = PTHREAD_MUTEX_INITIALIZER };
    put_pod(&f, "a.yaml", "a", "i:1");
    AUTO(manifest_source) source KV_UNUSED = start_with(&f, &h, NEVER);
    expect_heard(&h, "a-n1=i:1");

    /* The old file aside, the new one empty, then half, then whole, then the old one removed. A
     * machine that stops us for long between two of them makes more of it than one change, so only
     * what comes of it is compared. */
    EXPECT_EQ(rename(in(&f, "a.yaml"), in(&f, "a.yaml~")), 0);
    put(&f, "a.yaml", "");
    put(&f, "a.yaml", "apiVersion: v1\nkind: Pod\n");
    put_pod(&f, "a.yaml", "a", "i:2");
    drop(&f, "a.yaml~");
    expect_heard(&h, "a-n1=i:2");
}

TEST(without_a_change_nothing_is_told)
{
    AUTO_FOLDER f;
    folder_open(&f);
    struct heard h = { .lock = PTHREAD_MUTEX_INITIALIZER };
    put_pod(&f, "a.yaml", "a", "i:1");
    AUTO(manifest_source) source KV_UNUSED = start_with(&f, &h, OFTEN);
    expect_heard(&h, "a-n1=i:1");
    put_pod(&f, ".a", "a", "i:1");
    put(&f, ".wrong", "x");
    EXPECT_EQ(rename(in(&f, ".a"), in(&f, "a.yaml")), 0);
    EXPECT_EQ(rename(in(&f, ".wrong"), in(&f, "wrong.yaml")), 0); /* it was seen when it is told */
    for (int i = 0; i < 6000 && logged(&f, "manifest refused") == 0; i++)
        nap();
    EXPECT_EQ(logged(&f, "manifest refused"), 1);
    EXPECT_EQ(times_heard(&h), 1);
}

TEST(a_folder_that_goes_and_comes_back_is_followed)
{
    AUTO_FOLDER f;
    folder_open(&f);
    struct heard h = { .lock = PTHREAD_MUTEX_INITIALIZER };
    char aside[64];
    snprintf(aside, sizeof aside, "%s/aside", f.root);
    put_pod(&f, "a.yaml", "a", "i:1");
    AUTO(manifest_source) source KV_UNUSED = start_with(&f, &h, OFTEN);
    expect_heard(&h, "a-n1=i:1");
    EXPECT_EQ(rename(f.path, aside), 0);
    expect_heard(&h, ""); /* gone for longer than the time of a reading */
    EXPECT_EQ(logged(&f, "manifest folder cannot be read"), 1);
    EXPECT_EQ(mkdir(f.path, 0700), 0);
    put_pod(&f, "b.yaml", "b", "i:1");
    expect_heard(&h, "b-n1=i:1");
}

TEST(a_folder_that_is_exchanged_for_another_stops_no_pod_and_is_watched)
{
    AUTO_FOLDER f, other;
    folder_open(&f);
    folder_open(&other);
    struct heard h = { .lock = PTHREAD_MUTEX_INITIALIZER };
    char aside[64];
    snprintf(aside, sizeof aside, "%s/aside", f.root);
    put_pod(&f, "a.yaml", "a", "i:1");
    put_pod(&other, "a.yaml", "a", "i:1");
    put_pod(&other, "b.yaml", "b", "i:1");
    AUTO(manifest_source) source KV_UNUSED = start_with(&f, &h, NEVER);
    expect_heard(&h, "a-n1=i:1");
    EXPECT_EQ(rename(f.path, aside), 0);
    EXPECT_EQ(rename(other.path, f.path), 0);
    expect_heard(&h, "a-n1=i:1 b-n1=i:1");
    put_pod(&f, ".b", "b", "i:2");
    EXPECT_EQ(rename(in(&f, ".b"), in(&f, "b.yaml")), 0); /* inotify sees the new folder */
    expect_heard(&h, "a-n1=i:1 b-n1=i:2");
    EXPECT_EQ(times_heard(&h), 3);
}

TEST(a_source_of_no_folder_does_not_start)
{
    struct manifest_source *source = NULL;
    struct err err;
    struct manifest_source_options options = {
        .folder = "/tmp/karve-no-such", .node_name = STR("n1"), .clock = clock_real(), .pods = hear
    };
    EXPECT_ERR(manifest_source_start(options, &source, &err), err, ERR_NOT_FOUND);
    options.folder = "/etc/passwd";
    EXPECT_ERR(manifest_source_start(options, &source, &err), err, ERR_NOT_FOUND);
}
