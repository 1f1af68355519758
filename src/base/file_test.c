#include "base/file.h"
#include "support/test.h"

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

static void folder_remove(const char *folder)
{
    AUTO_BUF command = { 0 };
    buf_addf(&command, "rm -rf '%s'", folder);
    EXPECT_EQ(system(command.p), 0);
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
    EXPECT_EQ(text.len, 0);
    EXPECT_OK(file_read(path.p, 10, &text, &err), err);
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
    write_file(folder, "a.yaml", "");
    write_file(folder, "notes.txt", "");
    write_file(folder, ".hidden.yaml", "");
    write_file(sub.p, "z.yaml", "");

    EXPECT_OK(file_expand(folder, yaml_only, &paths, &err), err);
    EXPECT_EQ(paths.items.count, 3);
    size_t prefix = strlen(folder);
    EXPECT_Z(paths.items.items[0] + prefix, "/a.yaml");
    EXPECT_Z(paths.items.items[1] + prefix, "/b/z.yaml");
    EXPECT_Z(paths.items.items[2] + prefix, "/c.yaml");
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

TEST(file_expand_refuses_a_folder_linked_into_itself)
{
    AUTO_FREE char *folder = folder_new();
    AUTO_BUF link = { 0 };
    struct file_paths paths = { 0 };
    struct err err;
    buf_addf(&link, "%s/loop", folder);
    EXPECT_EQ(symlink(folder, link.p), 0);
    EXPECT_ERR(file_expand(folder, yaml_only, &paths, &err), err, ERR_INVALID);
    file_paths_done(&paths);
    folder_remove(folder);
}
