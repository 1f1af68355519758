/* On folders that look like hierarchies: an empty group is an empty folder. */
#include "node/pod_cgroup.h"
#include "tests/support/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[64];

static const char *at(const char *path)
{
    static char full[4][160];
    static int next;
    char *out = full[next++ % 4];
    snprintf(out, sizeof full[0], "%s/%s", root, path);
    return out;
}

static void set_up(void)
{
    snprintf(root, sizeof root, "/tmp/karve-cgroup-XXXXXX");
    EXPECT_TRUE(mkdtemp(root) != NULL);
}

static void make(const char *path)
{
    EXPECT_EQ(mkdir(at(path), 0755), 0);
}

TEST(a_group_goes_from_every_hierarchy_of_version_1)
{
    struct err err;
    set_up();
    static const char *const folders[] = {
        "cpu",    "cpu/kubepods",    "cpu/kubepods/podx",    "cpu/kubepods/podx/c1",
        "memory", "memory/kubepods", "memory/kubepods/podx", "pids"
    };
    for (size_t i = 0; i < KV_COUNT_OF(folders); i++)
        make(folders[i]);
    EXPECT_OK(pod_cgroup_remove(root, STR("/kubepods/podx"), &err), err);
    EXPECT_EQ(access(at("cpu/kubepods/podx"), F_OK), -1);
    EXPECT_EQ(access(at("memory/kubepods/podx"), F_OK), -1);
    EXPECT_EQ(access(at("cpu/kubepods"), F_OK), 0);
    EXPECT_OK(pod_cgroup_remove(root, STR("/kubepods/podx"), &err), err); /* again: fine */
    rmdir(at("cpu/kubepods"));
    rmdir(at("memory/kubepods"));
    rmdir(at("cpu"));
    rmdir(at("memory"));
    rmdir(at("pids"));
    EXPECT_EQ(rmdir(root), 0);
}

TEST(a_group_goes_from_the_one_hierarchy_of_version_2)
{
    struct err err;
    set_up();
    int fd = open(at("cgroup.procs"), O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
    EXPECT_TRUE(fd >= 0);
    close(fd);
    make("kubepods");
    make("kubepods/podx");
    EXPECT_OK(pod_cgroup_remove(root, STR("/kubepods/podx"), &err), err);
    EXPECT_EQ(access(at("kubepods/podx"), F_OK), -1);
    rmdir(at("kubepods"));
    unlink(at("cgroup.procs"));
    EXPECT_EQ(rmdir(root), 0);
}

TEST(a_group_in_use_is_left_and_told)
{
    struct err err;
    set_up();
    make("cpu");
    make("cpu/podx");
    int fd = open(at("cpu/podx/task"), O_CREAT | O_WRONLY | O_CLOEXEC, 0644); /* keeps it */
    EXPECT_TRUE(fd >= 0);
    close(fd);
    EXPECT_ERR(pod_cgroup_remove(root, STR("/podx"), &err), err, ERR_UNAVAILABLE);
    unlink(at("cpu/podx/task"));
    EXPECT_OK(pod_cgroup_remove(root, STR("/podx"), &err), err);
    rmdir(at("cpu"));
    EXPECT_EQ(rmdir(root), 0);
}

TEST(a_machine_without_control_groups_is_fine)
{
    struct err err;
    EXPECT_OK(pod_cgroup_remove("/nowhere", STR("/podx"), &err), err);
}
