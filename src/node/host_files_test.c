#include "node/volumes_testing.h"

#include <errno.h>
#include <sys/mount.h>

TEST(a_file_name_is_one_name_and_nothing_else)
{
    static const struct str bad[] = { STR(""),  STR("."),    STR(".."), STR("a/b"),
                                      STR("/"), STR("a\0b"), STR("a/"), STR("../x") };
    static const struct str good[] = { STR("a"), STR("..."), STR(".hidden"), STR("a b"),
                                       STR("..data") };
    for (size_t i = 0; i < KV_COUNT_OF(bad); i++)
        EXPECT_FALSE(host_name_ok(bad[i]));
    for (size_t i = 0; i < KV_COUNT_OF(good); i++)
        EXPECT_TRUE(host_name_ok(good[i]));
    char longest[HOST_NAME_BYTES_MAX + 1];
    memset(longest, 'a', sizeof longest);
    EXPECT_TRUE(host_name_ok((struct str){ longest, HOST_NAME_BYTES_MAX }));
    EXPECT_FALSE(host_name_ok((struct str){ longest, HOST_NAME_BYTES_MAX + 1 }));
}

TEST(a_path_inside_is_relative_and_never_steps_up)
{
    static const char *const bad[] = { "", "/a", "a/../b", "..", "a//b", "a/", "./a" };
    for (size_t i = 0; i < KV_COUNT_OF(bad); i++)
        EXPECT_FALSE(host_path_inside(str_of(bad[i])));
    EXPECT_TRUE(host_path_inside(STR("a")));
    EXPECT_TRUE(host_path_inside(STR("a/b/c.conf")));
    EXPECT_TRUE(host_path_absolute(STR("/")));
    EXPECT_TRUE(host_path_absolute(STR("/var/lib")));
    EXPECT_FALSE(host_path_absolute(STR("/var/../etc")));
    EXPECT_FALSE(host_path_absolute(STR("var")));
}

TEST(making_a_folder_twice_is_fine_and_a_file_in_the_way_is_told)
{
    AUTO(place) p = place_new();
    struct err err;
    EXPECT_OK(host_folder_make(place_path(p, "a/b/c"), 0750, &err), err);
    EXPECT_OK(host_folder_make(place_path(p, "a/b/c"), 0750, &err), err);
    EXPECT_EQ(mode_at(place_path(p, "a/b/c")), 0750);
    write_text(place_path(p, "file"), "x");
    EXPECT_TRUE(host_folder_make(place_path(p, "file"), 0750, &err) < 0);
    EXPECT_HAS(str_of(err.text), "Not a directory");
    EXPECT_ERR(host_folder_make("relative", 0750, &err), err, ERR_INVALID);
}

TEST(replacing_a_file_keeps_it_when_it_says_the_same)
{
    AUTO(place) p = place_new();
    struct err err;
    struct stat before, after;
    const char *path = place_path(p, "f");
    EXPECT_OK(host_file_replace(path, STR("one"), 0644, &err), err);
    EXPECT_EQ(stat(path, &before), 0);
    EXPECT_OK(host_file_replace(path, STR("one"), 0644, &err), err);
    EXPECT_EQ(stat(path, &after), 0);
    EXPECT_EQ(before.st_ino, after.st_ino);
    EXPECT_OK(host_file_replace(path, STR("two"), 0600, &err), err);
    EXPECT_STR(text_at(p, path), "two");
    EXPECT_EQ(mode_at(path), 0600);
}

TEST(the_tail_of_a_file_is_bounded_and_never_read_through_a_link_or_from_a_pipe)
{
    AUTO(place) p = place_new();
    bool whole;
    const char *path = place_path(p, "f");
    write_text(path, "0123456789");
    EXPECT_STR(host_file_tail(&p->arena, path, 4, &whole), "6789");
    EXPECT_FALSE(whole);
    EXPECT_STR(host_file_tail(&p->arena, path, 100, &whole), "0123456789");
    EXPECT_TRUE(whole);
    EXPECT_EQ(symlink(path, place_path(p, "link")), 0);
    EXPECT_STR(host_file_tail(&p->arena, place_path(p, "link"), 4, &whole), "");
    EXPECT_EQ(mkfifo(place_path(p, "pipe"), 0600), 0);
    EXPECT_STR(host_file_tail(&p->arena, place_path(p, "pipe"), 4, &whole), "");
    EXPECT_STR(host_file_tail(&p->arena, place_path(p, "none"), 4, &whole), "");
}

TEST(removing_a_tree_leaves_what_its_links_point_at)
{
    AUTO(place) p = place_new();
    struct err err;
    EXPECT_OK(host_folder_make(place_path(p, "kept"), 0755, &err), err);
    write_text(place_path(p, "kept/file"), "x");
    EXPECT_OK(host_folder_make(place_path(p, "tree/sub"), 0755, &err), err);
    EXPECT_EQ(symlink(place_path(p, "kept"), place_path(p, "tree/sub/link")), 0);
    EXPECT_EQ(symlink("../../kept/file", place_path(p, "tree/sub/up")), 0);
    EXPECT_OK(host_tree_remove(AT_FDCWD, place_path(p, "tree"), &err), err);
    EXPECT_FALSE(is_there(place_path(p, "tree")));
    EXPECT_STR(text_at(p, place_path(p, "kept/file")), "x");

    EXPECT_EQ(symlink(place_path(p, "kept"), place_path(p, "root-link")), 0);
    EXPECT_OK(host_tree_remove(AT_FDCWD, place_path(p, "root-link"), &err), err);
    EXPECT_TRUE(is_there(place_path(p, "kept/file")));
    EXPECT_OK(host_tree_remove(AT_FDCWD, place_path(p, "root-link"), &err), err);
}

TEST(a_tree_far_deeper_than_a_path_can_say_is_removed_with_few_open_files)
{
    AUTO(place) p = place_new();
    struct err err;
    EXPECT_OK(host_folder_make(place_path(p, "tree"), 0755, &err), err);
    int fd = open(place_path(p, "tree"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int depth = 0; depth < 3000; depth++) {
        EXPECT_EQ(mkdirat(fd, "some-folder", 0755), 0);
        EXPECT_EQ(symlinkat("/", fd, "link"), 0);
        int next = openat(fd, "some-folder", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        close(fd);
        fd = next;
        EXPECT_TRUE(fd >= 0);
    }
    close(fd);
    EXPECT_OK(host_tree_remove(AT_FDCWD, place_path(p, "tree"), &err), err);
    EXPECT_FALSE(is_there(place_path(p, "tree")));
}

TEST(removal_stops_at_a_mount_and_unmounting_below_clears_the_way)
{
    if (geteuid() != 0)
        SKIP("needs root to mount");
    AUTO(place) p = place_new();
    struct err err;
    EXPECT_OK(host_folder_make(place_path(p, "tree/a b/m"), 0755, &err), err);
    EXPECT_EQ(mount("tmpfs", place_path(p, "tree/a b/m"), "tmpfs", 0, NULL), 0);
    EXPECT_EQ(mount("tmpfs", place_path(p, "tree/a b/m"), "tmpfs", 0, NULL), 0); /* over it */
    write_text(place_path(p, "tree/a b/m/f"), "x");
    EXPECT_TRUE(host_is_mounted(place_path(p, "tree/a b/m")));

    EXPECT_ERR(host_tree_remove(AT_FDCWD, place_path(p, "tree"), &err), err, ERR_UNAVAILABLE);
    EXPECT_HAS(str_of(err.text), "mounted");
    EXPECT_STR(text_at(p, place_path(p, "tree/a b/m/f")), "x");

    EXPECT_OK(host_folder_make(place_path(p, "tree-two"), 0755, &err), err);
    EXPECT_EQ(mount("tmpfs", place_path(p, "tree-two"), "tmpfs", 0, NULL), 0);
    EXPECT_OK(host_unmount_below(place_path(p, "tree"), &err), err);
    EXPECT_TRUE(host_is_mounted(place_path(p, "tree-two"))); /* its name only starts the same */
    EXPECT_OK(host_tree_remove(AT_FDCWD, place_path(p, "tree"), &err), err);
}
