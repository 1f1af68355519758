#include "node/volumes_testing.h"

#include <errno.h>
#include <sys/mount.h>
#include <sys/vfs.h>

#define HEAD "metadata: {name: web, uid: u-1, labels: {app: web}}\nspec:\n"
#define TAIL "  containers: [{name: c, image: i, resources: {limits: {memory: 64Mi}}}]\n"

static const struct node_pod *pod_with(const char *volumes)
{
    AUTO_BUF yaml = { 0 };
    buf_addf(&yaml, HEAD "  volumes:\n%s" TAIL, volumes);
    return pod_from_yaml(yaml.p);
}

static int set_up(struct place *p, const struct node_pod *pod, struct err *err)
{
    return volumes_set_up(pod, &p->facts, &p->objects, err);
}

/* --- emptyDir --- */

TEST(an_empty_folder_is_for_everybody_and_survives_being_set_up_again)
{
    AUTO(place) p = place_new();
    struct err err;
    AUTO_NODE_POD pod = pod_with("  - {name: data, emptyDir: {}}\n");
    EXPECT_OK(set_up(p, pod, &err), err);
    const char *folder = place_volume(p, pod, "data", NULL);
    EXPECT_STR(str_of(folder), place_path(p, "root/pods/u-1/volumes/kubernetes.io~empty-dir/data"));
    EXPECT_EQ(mode_at(folder), 0777);
    EXPECT_EQ(mode_at(place_path(p, "root/pods/u-1")), 0750);

    write_text(place_volume(p, pod, "data", "kept"), "x");
    EXPECT_EQ(chmod(folder, 0700), 0); /* a container's own choice stays */
    EXPECT_OK(set_up(p, pod, &err), err);
    EXPECT_STR(text_at(p, place_volume(p, pod, "data", "kept")), "x");
    EXPECT_EQ(mode_at(folder), 0700);
}

TEST(an_empty_folder_belongs_to_the_fs_group)
{
    if (geteuid() != 0)
        SKIP("needs root to give folders away");
    AUTO(place) p = place_new();
    struct err err;
    AUTO_NODE_POD pod = pod_from_yaml(HEAD "  securityContext: {fsGroup: 2000}\n"
                                           "  volumes: [{name: d, emptyDir: {}}]\n" TAIL);
    EXPECT_OK(set_up(p, pod, &err), err);
    struct stat st;
    EXPECT_EQ(stat(place_volume(p, pod, "d", NULL), &st), 0);
    EXPECT_EQ(st.st_gid, 2000);
    EXPECT_EQ(st.st_mode & 07777, 02777);
}

TEST(a_folder_in_memory_has_the_smallest_of_its_limits_and_comes_back_after_a_reboot)
{
    if (geteuid() != 0)
        SKIP("needs root to mount");
    AUTO(place) p = place_new();
    struct err err;
    AUTO_NODE_POD pod = pod_with("  - {name: small, emptyDir: {medium: Memory, sizeLimit: 1Mi}}\n"
                                 "  - {name: large, emptyDir: {medium: Memory, sizeLimit: 1Gi}}\n");
    EXPECT_OK(set_up(p, pod, &err), err);
    EXPECT_OK(set_up(p, pod, &err), err); /* once is enough */
    struct statfs fs;
    EXPECT_EQ(statfs(place_volume(p, pod, "small", NULL), &fs), 0);
    EXPECT_EQ(fs.f_blocks * (uint64_t)fs.f_bsize, 1 << 20);
    EXPECT_EQ(statfs(place_volume(p, pod, "large", NULL), &fs), 0);
    EXPECT_EQ(fs.f_blocks * (uint64_t)fs.f_bsize, 64 << 20); /* the pod's own limit */
    EXPECT_EQ(mode_at(place_volume(p, pod, "small", NULL)), 0777);

    EXPECT_EQ(umount(place_volume(p, pod, "small", NULL)), 0);
    EXPECT_FALSE(host_is_mounted(place_volume(p, pod, "small", NULL)));
    EXPECT_OK(set_up(p, pod, &err), err);
    EXPECT_TRUE(host_is_mounted(place_volume(p, pod, "small", NULL)));
}

/* --- hostPath --- */

TEST(a_host_path_is_checked_by_its_type_or_made)
{
    AUTO(place) p = place_new();
    struct err err;
    write_text(place_path(p, "file"), "x");
    EXPECT_EQ(mkdir(place_path(p, "folder"), 0700), 0);
    static const struct {
        const char *path, *type;
        enum err_kind kind; /* NONE: fine */
    } cases[] = {
        { "none", "", ERR_NONE },
        { "folder", "Directory", ERR_NONE },
        { "file", "Directory", ERR_UNAVAILABLE },
        { "none", "Directory", ERR_NOT_FOUND },
        { "new/folder", "DirectoryOrCreate", ERR_NONE },
        { "folder", "DirectoryOrCreate", ERR_NONE },
        { "file", "DirectoryOrCreate", ERR_UNAVAILABLE },
        { "file", "File", ERR_NONE },
        { "folder", "File", ERR_UNAVAILABLE },
        { "folder/made", "FileOrCreate", ERR_NONE },
        { "nowhere/made", "FileOrCreate", ERR_NOT_FOUND },
        { "file", "Socket", ERR_UNAVAILABLE },
        { "../../../dev/null", "CharDevice", ERR_INVALID },
        { "none", "BlockDevice", ERR_NOT_FOUND },
    };
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        struct node_volume volume = { .name = STR("h"),
                                      .kind = NODE_VOLUME_HOST_PATH,
                                      .host_path = str_of(place_path(p, cases[i].path)),
                                      .host_path_type = str_of(cases[i].type) };
        struct node_pod pod = { .uid = STR("u-1"), .volumes = { &volume, 1 } };
        int rc = set_up(p, &pod, &err);
        if (cases[i].kind == ERR_NONE)
            EXPECT_OK(rc, err);
        else
            EXPECT_ERR(rc, err, cases[i].kind);
    }
    EXPECT_EQ(mode_at(place_path(p, "new/folder")), 0755);
    EXPECT_EQ(mode_at(place_path(p, "folder/made")), 0644);
    EXPECT_FALSE(is_there(place_path(p, "none")));

    AUTO_NODE_POD null = pod_with("  - {name: h, hostPath: {path: /dev/null, type: CharDevice}}\n");
    EXPECT_OK(set_up(p, null, &err), err);
}

/* --- content --- */

TEST(a_config_map_becomes_files_with_their_modes)
{
    AUTO(place) p = place_new();
    struct err err;
    place_have(p, "ConfigMap", "conf",
               "{\"data\":{\"a.conf\":\"one\",\"empty\":\"\"},\"binaryData\":{\"b\":\"AAEC\"}}");
    AUTO_NODE_POD pod = pod_with("  - {name: all, configMap: {name: conf}}\n"
                                 "  - name: some\n"
                                 "    configMap:\n"
                                 "      name: conf\n"
                                 "      defaultMode: 0440\n"
                                 "      items: [{key: a.conf, path: etc/deep/x},\n"
                                 "              {key: b, path: z, mode: 0400}]\n");
    EXPECT_OK(set_up(p, pod, &err), err);
    EXPECT_STR(text_at(p, place_volume(p, pod, "all", "a.conf")), "one");
    EXPECT_STR(text_at(p, place_volume(p, pod, "all", "empty")), "");
    EXPECT_TRUE(str_eq(text_at(p, place_volume(p, pod, "all", "b")), STR("\0\1\2")));
    EXPECT_EQ(mode_at(place_volume(p, pod, "all", "a.conf")), 0644);
    EXPECT_STR(text_at(p, place_volume(p, pod, "some", "etc/deep/x")), "one");
    EXPECT_EQ(mode_at(place_volume(p, pod, "some", "etc/deep/x")), 0440);
    EXPECT_EQ(mode_at(place_volume(p, pod, "some", "z")), 0400);
    EXPECT_FALSE(is_there(place_volume(p, pod, "some", "a.conf")));
}

static struct str link_at(struct place *p, const char *path)
{
    char target[256];
    ssize_t n = readlink(path, target, sizeof target);
    return n < 0 ? STR("(none)") : arena_str(&p->arena, (struct str){ target, (size_t)n });
}

TEST(content_is_turned_over_at_once_and_only_when_it_changed)
{
    AUTO(place) p = place_new();
    struct err err;
    place_have(p, "ConfigMap", "conf", "{\"data\":{\"a\":\"1\",\"b\":\"1\"}}");
    AUTO_NODE_POD pod = pod_with("  - {name: v, configMap: {name: conf}}\n");
    EXPECT_OK(set_up(p, pod, &err), err);
    struct str first = link_at(p, place_volume(p, pod, "v", "..data"));
    EXPECT_TRUE(str_starts(first, STR("..")));
    EXPECT_STR(link_at(p, place_volume(p, pod, "v", "a")), "..data/a");
    EXPECT_OK(set_up(p, pod, &err), err);
    EXPECT_TRUE(str_eq(link_at(p, place_volume(p, pod, "v", "..data")), first));

    /* Who holds the folder that was, still sees all of it as it was until it is let go. */
    place_have(p, "ConfigMap", "conf", "{\"data\":{\"a\":\"2\",\"c\":\"2\"}}");
    EXPECT_OK(set_up(p, pod, &err), err);
    struct str second = link_at(p, place_volume(p, pod, "v", "..data"));
    EXPECT_FALSE(str_eq(first, second));
    EXPECT_STR(text_at(p, place_volume(p, pod, "v", "a")), "2");
    EXPECT_STR(text_at(p, place_volume(p, pod, "v", "c")), "2");
    EXPECT_FALSE(is_there(place_volume(p, pod, "v", "b"))); /* and no link to nothing */
    EXPECT_FALSE(is_there(place_volume(p, pod, "v", first.p)));

    /* A key less, nothing else: also a change. */
    place_have(p, "ConfigMap", "conf", "{\"data\":{\"a\":\"2\"}}");
    EXPECT_OK(set_up(p, pod, &err), err);
    EXPECT_FALSE(is_there(place_volume(p, pod, "v", "c")));
    EXPECT_STR(text_at(p, place_volume(p, pod, "v", "a")), "2");
}

TEST(what_a_crash_left_is_mended)
{
    AUTO(place) p = place_new();
    struct err err;
    place_have(p, "ConfigMap", "conf", "{\"data\":{\"a\":\"1\"}}");
    AUTO_NODE_POD pod = pod_with("  - {name: v, configMap: {name: conf}}\n");
    EXPECT_OK(set_up(p, pod, &err), err);

    /* Written but not turned over; turned over but not linked; half a file behind the link. */
    EXPECT_OK(host_folder_make(place_volume(p, pod, "v", "..half/x"), 0755, &err), err);
    EXPECT_EQ(symlink("..nowhere", place_volume(p, pod, "v", "..data_new")), 0);
    EXPECT_EQ(unlink(place_volume(p, pod, "v", "a")), 0);
    EXPECT_OK(set_up(p, pod, &err), err);
    EXPECT_FALSE(is_there(place_volume(p, pod, "v", "..half")));
    EXPECT_FALSE(is_there(place_volume(p, pod, "v", "..data_new")));
    EXPECT_STR(text_at(p, place_volume(p, pod, "v", "a")), "1");

    write_text(place_volume(p, pod, "v", "a"), "");
    EXPECT_OK(set_up(p, pod, &err), err);
    EXPECT_STR(text_at(p, place_volume(p, pod, "v", "a")), "1");
    EXPECT_EQ(unlink(place_volume(p, pod, "v", "..data")), 0);
    EXPECT_OK(set_up(p, pod, &err), err);
    EXPECT_STR(text_at(p, place_volume(p, pod, "v", "a")), "1");
}

TEST(secrets_are_decoded_and_kept_in_memory)
{
    AUTO(place) p = place_new();
    struct err err;
    place_have(p, "Secret", "s", "{\"data\":{\"password\":\"aHVudGVyMg==\"}}");
    AUTO_NODE_POD pod = pod_with("  - {name: v, secret: {secretName: s, defaultMode: 0400}}\n");
    EXPECT_OK(set_up(p, pod, &err), err);
    EXPECT_STR(text_at(p, place_volume(p, pod, "v", "password")), "hunter2");
    EXPECT_EQ(mode_at(place_volume(p, pod, "v", "password")), 0400);
    if (geteuid() == 0)
        EXPECT_TRUE(host_is_mounted(place_volume(p, pod, "v", NULL)));

    place_have(p, "Secret", "s", "{\"data\":{\"password\":\"not base64!\"}}");
    EXPECT_ERR(set_up(p, pod, &err), err, ERR_INVALID);
    EXPECT_STR(text_at(p, place_volume(p, pod, "v", "password")), "hunter2"); /* as it was */
}

TEST(files_belong_to_the_fs_group_which_may_read_them)
{
    if (geteuid() != 0)
        SKIP("needs root to give files away");
    AUTO(place) p = place_new();
    struct err err;
    place_have(p, "Secret", "s", "{\"data\":{\"k\":\"eA==\"}}");
    AUTO_NODE_POD pod =
        pod_from_yaml(HEAD "  securityContext: {fsGroup: 2000}\n"
                           "  volumes: [{name: v, secret: {secretName: s, defaultMode: 0400,\n"
                           "             items: [{key: k, path: in/k}]}}]\n" TAIL);
    EXPECT_OK(set_up(p, pod, &err), err);
    struct stat st;
    EXPECT_EQ(stat(place_volume(p, pod, "v", "in/k"), &st), 0);
    EXPECT_EQ(st.st_gid, 2000);
    EXPECT_EQ(st.st_mode & 07777, 0440);
    EXPECT_EQ(mode_at(place_volume(p, pod, "v", "in")), 02755);
    struct str before = link_at(p, place_volume(p, pod, "v", "..data"));
    EXPECT_OK(set_up(p, pod, &err), err);
    EXPECT_TRUE(str_eq(before, link_at(p, place_volume(p, pod, "v", "..data"))));
}

TEST(projected_volumes_gather_all_their_sources)
{
    AUTO(place) p = place_new();
    struct err err;
    place_have(p, "ConfigMap", "conf", "{\"data\":{\"a\":\"map\",\"both\":\"map\"}}");
    place_have(p, "Secret", "s", "{\"data\":{\"both\":\"c2VjcmV0\"}}");
    AUTO_NODE_POD pod = pod_with(
        "  - name: v\n"
        "    projected:\n"
        "      sources:\n"
        "      - configMap: {name: conf}\n"
        "      - secret: {name: s}\n"
        "      - downwardAPI:\n"
        "          items:\n"
        "          - {path: labels, fieldRef: {fieldPath: metadata.labels}}\n"
        "          - {path: mem, resourceFieldRef: {containerName: c, resource: limits.memory,\n"
        "                                           divisor: 1Mi}}\n"
        "      - serviceAccountToken: {path: token, audience: vault, expirationSeconds: 700}\n");
    EXPECT_OK(set_up(p, pod, &err), err);
    EXPECT_STR(text_at(p, place_volume(p, pod, "v", "a")), "map");
    EXPECT_STR(text_at(p, place_volume(p, pod, "v", "both")), "secret"); /* the later one */
    EXPECT_STR(text_at(p, place_volume(p, pod, "v", "labels")), "app=\"web\"");
    EXPECT_STR(text_at(p, place_volume(p, pod, "v", "mem")), "64");
    EXPECT_HAS(text_at(p, place_volume(p, pod, "v", "token")), "token:");
    EXPECT_HAS(text_at(p, place_volume(p, pod, "v", "token")), ":u-1:vault:700");
}

TEST(what_is_missing_is_named_unless_it_is_optional)
{
    AUTO(place) p = place_new();
    struct err err;
    place_have(p, "ConfigMap", "conf", "{\"data\":{\"a\":\"1\"}}");
    AUTO_NODE_POD no_map = pod_with("  - {name: v, configMap: {name: gone}}\n");
    EXPECT_ERR(set_up(p, no_map, &err), err, ERR_NOT_FOUND);
    EXPECT_HAS(str_of(err.text), "volume v: configmap \"gone\"");
    AUTO_NODE_POD no_key =
        pod_with("  - {name: v, configMap: {name: conf, items: [{key: zz, path: z}]}}\n");
    EXPECT_ERR(set_up(p, no_key, &err), err, ERR_NOT_FOUND);
    EXPECT_HAS(str_of(err.text), "configmap \"conf\": it has no key \"zz\"");
    AUTO_NODE_POD optional = pod_with(
        "  - {name: v, configMap: {name: gone, optional: true}}\n"
        "  - {name: w, secret: {secretName: gone, optional: true}}\n"
        "  - {name: x, configMap: {name: conf, optional: true, items: [{key: zz, path: z}]}}\n");
    EXPECT_OK(set_up(p, optional, &err), err);
    EXPECT_TRUE(is_there(place_volume(p, optional, "v", NULL)));
    EXPECT_FALSE(is_there(place_volume(p, optional, "x", "z")));
}

TEST(without_an_api_server_objects_are_unavailable_even_if_optional)
{
    AUTO(place) p = place_new();
    struct err err;
    p->objects = (struct object_source){ 0 };
    static const char *const volumes[] = {
        "  - {name: v, configMap: {name: conf, optional: true}}\n",
        "  - {name: v, secret: {secretName: s}}\n",
        "  - {name: v, projected: {sources: [{serviceAccountToken: {path: t}}]}}\n",
    };
    for (size_t i = 0; i < KV_COUNT_OF(volumes); i++) {
        AUTO_NODE_POD pod = pod_with(volumes[i]);
        EXPECT_ERR(set_up(p, pod, &err), err, ERR_UNAVAILABLE);
        EXPECT_HAS(str_of(err.text), "needs an API server");
    }
    AUTO_NODE_POD downward =
        pod_with("  - name: v\n    downwardAPI: {items: [{path: name, fieldRef: "
                 "{fieldPath: metadata.name}}]}\n");
    EXPECT_OK(set_up(p, downward, &err), err);
    EXPECT_STR(text_at(p, place_volume(p, downward, "v", "name")), "web");
}

TEST(keys_and_paths_that_leave_the_volume_are_refused)
{
    static const char *const keys[] = { "..",     "../x",  "a/../../x", "/etc/x",
                                        "..data", "..x/y", "a//b",      "" };
    for (size_t i = 0; i < KV_COUNT_OF(keys); i++) {
        AUTO(place) p = place_new();
        struct err err;
        place_have(p, "ConfigMap", "conf", "{\"data\":{\"k\":\"1\"}}");
        struct key_path item = { .key = STR("k"), .path = str_of(keys[i]) };
        struct volume_source source = { .kind = NODE_VOLUME_CONFIG_MAP,
                                        .object = STR("conf"),
                                        .items = { &item, 1 } };
        struct node_volume volume = { .name = STR("v"),
                                      .kind = NODE_VOLUME_CONFIG_MAP,
                                      .sources = { &source, 1 } };
        struct node_pod pod = { .uid = STR("u-1"), .volumes = { &volume, 1 } };
        EXPECT_ERR(set_up(p, &pod, &err), err, ERR_INVALID);
    }
    AUTO(place) p = place_new(); /* and so is a key that an object brings */
    struct err err;
    place_have(p, "ConfigMap", "conf", "{\"data\":{\"../../../../escaped\":\"1\"}}");
    AUTO_NODE_POD pod = pod_with("  - {name: v, configMap: {name: conf}}\n");
    EXPECT_ERR(set_up(p, pod, &err), err, ERR_INVALID);
}

TEST(one_path_cannot_be_a_file_and_a_folder)
{
    AUTO(place) p = place_new();
    struct err err;
    place_have(p, "ConfigMap", "conf", "{\"data\":{\"a\":\"1\",\"b\":\"2\"}}");
    AUTO_NODE_POD pod = pod_with("  - {name: v, configMap: {name: conf, items: [{key: a, path: x},"
                                 " {key: b, path: x/y}]}}\n");
    EXPECT_ERR(set_up(p, pod, &err), err, ERR_INVALID);
    EXPECT_HAS(str_of(err.text), "a file and a folder");
}

TEST(volumes_of_other_kinds_and_names_that_are_no_file_names_are_refused)
{
    AUTO(place) p = place_new();
    struct err err;
    AUTO_NODE_POD pod = pod_with("  - {name: v, persistentVolumeClaim: {claimName: c}}\n");
    EXPECT_ERR(set_up(p, pod, &err), err, ERR_INVALID);
    EXPECT_HAS(str_of(err.text), "persistentVolumeClaim");

    struct node_volume volume = { .name = STR("../../x"), .kind = NODE_VOLUME_EMPTY_DIR };
    struct node_pod bad = { .uid = STR("u-1"), .volumes = { &volume, 1 } };
    EXPECT_ERR(set_up(p, &bad, &err), err, ERR_INVALID);
    struct node_pod bad_uid = { .uid = STR("..") };
    EXPECT_ERR(set_up(p, &bad_uid, &err), err, ERR_INVALID);
    EXPECT_ERR(volumes_remove(STR("../x"), &p->facts, &err), err, ERR_INVALID);
    EXPECT_ERR(volumes_remove(STR(""), &p->facts, &err), err, ERR_INVALID);
}

/* --- removing and listing --- */

TEST(removing_takes_all_of_the_pod_and_nothing_else_and_can_be_repeated)
{
    AUTO(place) p = place_new();
    struct err err;
    write_text(place_path(p, "on-the-host"), "kept");
    place_have(p, "Secret", "s", "{\"data\":{\"k\":\"eA==\"}}");
    bool root = geteuid() == 0;
    AUTO_NODE_POD pod =
        pod_with(root ? "  - {name: m, emptyDir: {medium: Memory}}\n"
                        "  - {name: e, emptyDir: {}}\n  - {name: s, secret: {secretName: s}}\n"
                      : "  - {name: e, emptyDir: {}}\n  - {name: s, secret: {secretName: s}}\n");
    AUTO_NODE_POD other = pod_from_yaml("metadata: {name: other, uid: u-2}\n"
                                        "spec: {volumes: [{name: e, emptyDir: {}}],\n"
                                        "       containers: [{name: c, image: i}]}");
    EXPECT_OK(set_up(p, pod, &err), err);
    EXPECT_OK(set_up(p, other, &err), err);
    EXPECT_EQ(symlink(place_path(p, "on-the-host"), place_volume(p, pod, "e", "link")), 0);
    EXPECT_EQ(symlink(p->path.p, place_volume(p, pod, "e", "up")), 0);

    struct str_list uids;
    EXPECT_OK(volumes_list(&p->facts, &p->arena, &uids, &err), err);
    EXPECT_EQ(uids.count, 2);
    EXPECT_STR(uids.items[0], "u-1");
    EXPECT_STR(uids.items[1], "u-2");

    EXPECT_OK(volumes_remove(STR("u-1"), &p->facts, &err), err);
    EXPECT_OK(volumes_remove(STR("u-1"), &p->facts, &err), err);
    EXPECT_FALSE(is_there(place_path(p, "root/pods/u-1")));
    EXPECT_STR(text_at(p, place_path(p, "on-the-host")), "kept");
    EXPECT_OK(volumes_list(&p->facts, &p->arena, &uids, &err), err);
    EXPECT_EQ(uids.count, 1);
    EXPECT_TRUE(is_there(place_volume(p, other, "e", NULL)));
}

TEST(before_the_first_pod_there_is_nothing_to_list_or_remove)
{
    AUTO(place) p = place_new();
    struct err err;
    struct str_list uids;
    EXPECT_OK(volumes_list(&p->facts, &p->arena, &uids, &err), err);
    EXPECT_EQ(uids.count, 0);
    EXPECT_OK(volumes_remove(STR("u-1"), &p->facts, &err), err);
}
