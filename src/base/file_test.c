#include "base/file.h"
#include "support/test.h"

#include <ftw.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const yaml_only[] = { ".yaml", NULL };

static void write_file(const char *folder, const char *name, const char *text)
{
    AUTO_BUF path = { 0 };
    buf_addf(&path, "%s/%s", folder, name);
    FILE *f = fopen(path.p, "w");
    if (!f)
        fail_msg("cannot write %s", path.p);
    fputs(text, f);
    fclose(f);
}

static char *folder_new(void)
{
    char template[] = "/tmp/karve-file-XXXXXX";
    return kv_strdup(mkdtemp(template));
}

static int remove_one(const char *path, const struct stat *st KV_UNUSED, int type KV_UNUSED,
                      struct FTW *at KV_UNUSED)
{
    return remove(path);
}

static void folder_remove(const char *folder)
{
    EXPECT_EQ(nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}

TEST(file_read_appends_the_whole_file)
{
    AUTO_FREE char *folder = folder_new();
    AUTO_BUF text = { 0 }, path = { 0 };
    struct err err;
    write_file(folder, "a", "two\nlines\n");
    buf_addf(&path, "%s/a", folder);
    buf_addz(&text, "before ");
    EXPECT_OK(file_read(path.p, 100, &text, &err), err);
    EXPECT_STR(buf_str(&text), "before two\nlines\n");
    folder_remove(folder);
}

TEST(file_read_refuses_a_file_over_the_limit_and_keeps_nothing)
{
    AUTO_FREE char *folder = folder_new();
    AUTO_BUF text = { 0 }, path = { 0 };
    struct err err;
    write_file(folder, "a", "0123456789");
    buf_addf(&path, "%s/a", folder);
    EXPECT_ERR(file_read(path.p, 9, &text, &err), err, ERR_INVALID);
    EXPECT_HAS(str_of(err.text), "longer than the limit of 9 bytes");
    EXPECT_Z(text.p, ""); /* also behind its end */
    EXPECT_OK(file_read(path.p, 10, &text, &err), err);
    EXPECT_STR(buf_str(&text), "0123456789");
    folder_remove(folder);
}

TEST(file_read_tells_a_missing_file_from_one_it_cannot_read)
{
    AUTO_BUF text = { 0 };
    struct err err;
    EXPECT_ERR(file_read("/no/such/file", 10, &text, &err), err, ERR_NOT_FOUND);
    EXPECT_HAS(str_of(err.text), "/no/such/file");
    EXPECT_ERR(file_read("/tmp", 10, &text, &err), err, ERR_UNAVAILABLE);
}

TEST(file_expand_walks_folders_in_order_and_passes_over_hidden_and_other_files)
{
    AUTO_FREE char *folder = folder_new();
    AUTO_BUF sub = { 0 };
    struct file_paths paths = { 0 };
    struct err err;
    buf_addf(&sub, "%s/b", folder);
    mkdir(sub.p, 0700);
    write_file(folder, "c.yaml", "");
    write_file(folder, "b-.yaml", ""); /* a name after "b", though '-' comes before '/' */
    write_file(folder, "a.yaml", "");
    write_file(folder, "notes.txt", "");
    write_file(folder, ".hidden.yaml", "");
    write_file(sub.p, "z.yaml", "");

    EXPECT_OK(file_expand(folder, yaml_only, &paths, &err), err);
    static const char *const want[] = { "/a.yaml", "/b/z.yaml", "/b-.yaml", "/c.yaml" };
    EXPECT_EQ(paths.items.count, KV_COUNT_OF(want));
    for (size_t i = 0; i < KV_COUNT_OF(want); i++)
        EXPECT_Z(paths.items.items[i] + strlen(folder), want[i]);
    file_paths_done(&paths);
    folder_remove(folder);
}

TEST(file_expand_takes_a_named_file_whatever_its_suffix)
{
    AUTO_FREE char *folder = folder_new();
    AUTO_BUF path = { 0 };
    struct file_paths paths = { 0 };
    struct err err;
    write_file(folder, "pools.txt", "");
    buf_addf(&path, "%s/pools.txt", folder);
    EXPECT_OK(file_expand(path.p, yaml_only, &paths, &err), err);
    EXPECT_EQ(paths.items.count, 1);
    file_paths_done(&paths);
    folder_remove(folder);
}

static void link_to(const char *folder, const char *name, const char *target)
{
    AUTO_BUF path = { 0 };
    buf_addf(&path, "%s/%s", folder, name);
    EXPECT_EQ(symlink(target, path.p), 0);
}

TEST(file_expand_passes_over_what_is_no_file_and_dangling_links_to_other_names)
{
    AUTO_FREE char *folder = folder_new();
    AUTO_BUF pipe = { 0 };
    struct file_paths paths = { 0 };
    struct err err;
    buf_addf(&pipe, "%s/pipe.yaml", folder); /* opening it would wait for a writer */
    EXPECT_EQ(mkfifo(pipe.p, 0600), 0);
    link_to(folder, "notes.txt", "gone");
    EXPECT_OK(file_expand(folder, yaml_only, &paths, &err), err);
    EXPECT_EQ(paths.items.count, 0);

    link_to(folder, "pool.yaml", "gone"); /* this one was meant to be read */
    EXPECT_ERR(file_expand(folder, yaml_only, &paths, &err), err, ERR_NOT_FOUND);
    EXPECT_HAS(str_of(err.text), "/pool.yaml");
    file_paths_done(&paths);
    folder_remove(folder);
}

/* Each level holds two links to the next: eighteen of them are half a million names. */
TEST(file_expand_gives_up_on_a_maze_of_links)
{
    AUTO_FREE char *root = folder_new();
    struct file_paths paths = { 0 };
    struct err err;
    for (int level = 0; level < 18; level++) {
        AUTO_BUF folder = { 0 }, next = { 0 };
        buf_addf(&folder, "%s/%d", root, level);
        buf_addf(&next, "../%d", level + 1);
        mkdir(folder.p, 0700);
        link_to(folder.p, "a", next.p);
        link_to(folder.p, "b", next.p);
    }
    AUTO_BUF first = { 0 }, last = { 0 };
    buf_addf(&first, "%s/0", root);
    buf_addf(&last, "%s/18", root);
    mkdir(last.p, 0700);
    EXPECT_ERR(file_expand(first.p, yaml_only, &paths, &err), err, ERR_INVALID);
    EXPECT_HAS(str_of(err.text), "more than 200000 files and folders");
    file_paths_done(&paths);
    folder_remove(root);
}

TEST(file_expand_refuses_a_folder_linked_into_itself)
{
    AUTO_FREE char *folder = folder_new();
    struct file_paths paths = { 0 };
    struct err err;
    link_to(folder, "loop", folder);
    EXPECT_ERR(file_expand(folder, yaml_only, &paths, &err), err, ERR_INVALID);
    file_paths_done(&paths);
    folder_remove(folder);
}
