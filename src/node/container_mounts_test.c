#include "node/configs_testing.h"

static const struct node_pod *pod_with(const char *spec, const char *container)
{
    AUTO_BUF yaml = { 0 };
    buf_addf(&yaml,
             "metadata: {name: web, namespace: shop, uid: u-1}\nspec:\n%s  containers:\n"
             "  - name: c\n    image: i\n%s",
             spec, container);
    return pod_from_yaml(yaml.p);
}

/* The mounts of container c, its volumes set up before. */
static int mounts_of(struct place *p, const struct node_pod *pod, Cri__ContainerConfig **out,
                     struct err *err)
{
    struct container_config_input input = input_of(p, pod, "c");
    struct entries env = { 0 };
    *out = MESSAGE(&p->arena, container_config, ContainerConfig);
    if (volumes_set_up(pod, &p->facts, &p->objects, err) < 0 ||
        container_env(&p->arena, &input, &env, err) < 0)
        return -1;
    return container_mounts(&p->arena, &input, &env, *out, err);
}

#define DATA "  volumes: [{name: data, emptyDir: {}}]\n"

TEST(volumes_are_mounted_as_the_container_asks)
{
    AUTO(place) p = place_new();
    struct err err;
    Cri__ContainerConfig *config;
    place_have(p, "ConfigMap", "m", "{\"data\":{\"k\":\"v\"}}");
    AUTO_NODE_POD pod =
        pod_with("  volumes: [{name: data, emptyDir: {}}, {name: conf, configMap: {name: m}},\n"
                 "            {name: host, hostPath: {path: /tmp}}]\n",
                 "    securityContext: {privileged: true}\n"
                 "    volumeMounts:\n"
                 "    - {name: data, mountPath: /data}\n"
                 "    - {name: data, mountPath: relative, readOnly: true}\n"
                 "    - {name: conf, mountPath: /etc/conf}\n"
                 "    - {name: host, mountPath: /host, mountPropagation: Bidirectional}\n");
    EXPECT_OK(mounts_of(p, pod, &config, &err), err);
    EXPECT_Z(mount_at(config, "/data")->host_path, place_volume(p, pod, "data", NULL));
    EXPECT_FALSE(mount_at(config, "/data")->readonly);
    EXPECT_TRUE(mount_at(config, "/relative")->readonly);
    EXPECT_TRUE(mount_at(config, "/etc/conf")->readonly); /* always */
    EXPECT_Z(mount_at(config, "/host")->host_path, "/tmp");
    EXPECT_EQ(mount_at(config, "/host")->propagation, CRI__MOUNT_PROPAGATION__BIDIRECTIONAL);
    EXPECT_FALSE(mount_at(config, "/host")->selinux_relabel);
    EXPECT_TRUE(mount_at(config, "/data")->selinux_relabel);
}

TEST(a_sub_path_is_made_with_the_volumes_mode_and_shows_that_folder)
{
    AUTO(place) p = place_new();
    struct err err;
    Cri__ContainerConfig *config;
    AUTO_NODE_POD pod =
        pod_with(DATA, "    env: [{name: NUM, value: seven}]\n"
                       "    volumeMounts:\n"
                       "    - {name: data, mountPath: /a, subPath: x/y}\n"
                       "    - {name: data, mountPath: /b, subPathExpr: \"n-$(NUM)\"}\n");
    EXPECT_OK(mounts_of(p, pod, &config, &err), err);
    EXPECT_EQ(mode_at(place_volume(p, pod, "data", "x/y")), 0777);
    write_text(place_volume(p, pod, "data", "x/y/f"), "in the volume");
    EXPECT_STR(text_at(p, arena_strf(&p->arena, "%s/f", mount_at(config, "/a")->host_path).p),
               "in the volume");
    EXPECT_TRUE(is_there(place_volume(p, pod, "data", "n-seven")));

    /* A new instance, another kind of thing at that place. */
    EXPECT_EQ(unlink(place_volume(p, pod, "data", "x/y/f")), 0);
    EXPECT_EQ(rmdir(place_volume(p, pod, "data", "x/y")), 0);
    write_text(place_volume(p, pod, "data", "x/y"), "a file now");
    EXPECT_OK(mounts_of(p, pod, &config, &err), err);
    EXPECT_STR(text_at(p, mount_at(config, "/a")->host_path), "a file now");

    EXPECT_OK(volumes_remove(STR("u-1"), &p->facts, &err), err);
    EXPECT_FALSE(is_there(place_path(p, "root/pods/u-1")));
}

TEST(a_sub_path_of_content_is_the_file_behind_its_link)
{
    AUTO(place) p = place_new();
    struct err err;
    Cri__ContainerConfig *config;
    place_have(p, "ConfigMap", "m", "{\"data\":{\"k\":\"v\"}}");
    AUTO_NODE_POD pod =
        pod_with("  volumes: [{name: conf, configMap: {name: m}}]\n",
                 "    volumeMounts: [{name: conf, mountPath: /etc/k, subPath: k}]\n");
    EXPECT_OK(mounts_of(p, pod, &config, &err), err);
    EXPECT_STR(text_at(p, mount_at(config, "/etc/k")->host_path), "v");

    AUTO_NODE_POD none =
        pod_with("  volumes: [{name: conf, configMap: {name: m}}]\n",
                 "    volumeMounts: [{name: conf, mountPath: /etc/k, subPath: none}]\n");
    EXPECT_ERR(mounts_of(p, none, &config, &err), err, ERR_NOT_FOUND);
}

TEST(a_sub_path_that_leaves_the_volume_is_refused_however_it_leaves)
{
    AUTO(place) p = place_new();
    struct err err;
    Cri__ContainerConfig *config;
    EXPECT_EQ(mkdir(place_path(p, "host"), 0700), 0);
    AUTO_NODE_POD pod =
        pod_with(DATA, "    volumeMounts: [{name: data, mountPath: /a, subPath: way/in}]\n");
    EXPECT_OK(volumes_set_up(pod, &p->facts, &p->objects, &err), err);
    const char *way = place_volume(p, pod, "data", "way");

    const char *const targets[] = { place_path(p, "host"), "/", "../../../../../host", "..",
                                    "/proc/self/root" };
    for (size_t i = 0; i < KV_COUNT_OF(targets); i++) {
        EXPECT_EQ(symlink(targets[i], way), 0);
        EXPECT_ERR(mounts_of(p, pod, &config, &err), err, ERR_DENIED);
        EXPECT_HAS(str_of(err.text), "leads out of the volume");
        EXPECT_EQ(unlink(way), 0);
    }
    EXPECT_FALSE(is_there(place_path(p, "host/in"))); /* nothing was made there */

    EXPECT_EQ(symlink("way", way), 0); /* a link to itself */
    EXPECT_TRUE(mounts_of(p, pod, &config, &err) < 0);
    EXPECT_EQ(unlink(way), 0);

    EXPECT_EQ(mkdir(place_volume(p, pod, "data", "real"), 0755),
              0); /* inside it may lead anywhere */
    EXPECT_EQ(symlink("real", way), 0);
    EXPECT_OK(mounts_of(p, pod, &config, &err), err);
    EXPECT_TRUE(is_there(place_volume(p, pod, "data", "real/in")));
}

TEST(a_sub_path_expression_may_not_step_up_or_name_what_is_not_there)
{
    AUTO(place) p = place_new();
    struct err err;
    Cri__ContainerConfig *config;
    AUTO_NODE_POD up = pod_with(
        DATA, "    env: [{name: NUM, value: ../..}]\n"
              "    volumeMounts: [{name: data, mountPath: /a, subPathExpr: \"$(NUM)\"}]\n");
    EXPECT_ERR(mounts_of(p, up, &config, &err), err, ERR_INVALID);
    AUTO_NODE_POD none = pod_with(
        DATA, "    volumeMounts: [{name: data, mountPath: /a, subPathExpr: \"$(NUM)\"}]\n");
    EXPECT_ERR(mounts_of(p, none, &config, &err), err, ERR_INVALID);
    EXPECT_HAS(str_of(err.text), "\"NUM\" is not in the environment");
}

/* --- /etc/hosts --- */

TEST(etc_hosts_has_the_pods_addresses_and_aliases)
{
    AUTO(place) p = place_new();
    struct err err;
    Cri__ContainerConfig *config;
    AUTO_NODE_POD pod = pod_with("  subdomain: db\n"
                                 "  hostAliases: [{ip: 1.2.3.4, hostnames: [one, two]}]\n",
                                 "");
    EXPECT_OK(mounts_of(p, pod, &config, &err), err);
    EXPECT_TRUE(mount_at(config, "/etc/hosts") == NULL); /* no address yet */

    p->facts.pod_ips = place_strs(p, "10.1.0.7", "fd00::7");
    EXPECT_OK(mounts_of(p, pod, &config, &err), err);
    struct str hosts = text_at(p, mount_at(config, "/etc/hosts")->host_path);
    EXPECT_HAS(hosts, "127.0.0.1\tlocalhost\n");
    EXPECT_HAS(hosts, "\n10.1.0.7\tweb.db.shop.svc.cluster.local\tweb\n");
    EXPECT_HAS(hosts, "\nfd00::7\tweb.db.shop.svc.cluster.local\tweb\n");
    EXPECT_HAS(hosts, "\n1.2.3.4\tone\ttwo\n");
    EXPECT_EQ(mode_at(mount_at(config, "/etc/hosts")->host_path), 0644);
}

TEST(etc_hosts_is_left_to_the_host_or_to_a_volume_that_brings_it)
{
    AUTO(place) p = place_new();
    struct err err;
    Cri__ContainerConfig *config;
    p->facts.pod_ips = place_strs(p, "10.1.0.7", NULL);
    AUTO_NODE_POD host = pod_with("  hostNetwork: true\n", "");
    EXPECT_OK(mounts_of(p, host, &config, &err), err);
    EXPECT_TRUE(mount_at(config, "/etc/hosts") == NULL);

    AUTO_NODE_POD aliases = pod_with("  hostNetwork: true\n"
                                     "  hostAliases: [{ip: 1.2.3.4, hostnames: [one]}]\n",
                                     "");
    EXPECT_OK(mounts_of(p, aliases, &config, &err), err);
    EXPECT_HAS(text_at(p, mount_at(config, "/etc/hosts")->host_path), "\n1.2.3.4\tone\n");

    AUTO_NODE_POD own =
        pod_with(DATA, "    volumeMounts: [{name: data, mountPath: /etc/hosts, subPath: h}]\n");
    EXPECT_OK(mounts_of(p, own, &config, &err), err);
    EXPECT_EQ(config->n_mounts, 2); /* it and the termination message */
}

/* --- last words --- */

TEST(each_instance_has_an_empty_file_for_its_last_words_that_anybody_may_write)
{
    AUTO(place) p = place_new();
    struct err err;
    AUTO_NODE_POD pod = pod_with("", "    terminationMessagePath: /dev/last\n");
    struct container_config_input input = input_of(p, pod, "c");
    struct entries env = { 0 };
    for (uint32_t count = 0; count < 5; count++) {
        input.restart_count = count;
        for (int twice = 0; twice < 2; twice++) {
            Cri__ContainerConfig *config = MESSAGE(&p->arena, container_config, ContainerConfig);
            EXPECT_OK(container_mounts(&p->arena, &input, &env, config, &err), err);
            const char *file = mount_at(config, "/dev/last")->host_path;
            EXPECT_STR(text_at(p, file), "");
            EXPECT_EQ(mode_at(file), 0666);
            write_text(file, "words");
        }
    }
    EXPECT_FALSE(is_there(place_path(p, "root/pods/u-1/containers/c/1")));
    EXPECT_STR(text_at(p, place_path(p, "root/pods/u-1/containers/c/2")), "words");
    EXPECT_STR(text_at(p, place_path(p, "root/pods/u-1/containers/c/4")), "words");
}
