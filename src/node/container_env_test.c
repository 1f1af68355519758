#include "node/configs_testing.h"

static const struct node_pod *pod_with(const char *container)
{
    AUTO_BUF yaml = { 0 };
    buf_addf(&yaml,
             "metadata: {name: web, namespace: shop}\nspec:\n  containers:\n"
             "  - name: c\n    image: i\n    resources: {limits: {cpu: 1500m}}\n%s"
             "  - {name: other, image: i, resources: {limits: {cpu: 3}}}\n",
             container);
    return pod_from_yaml(yaml.p);
}

static int env_of(struct place *p, const struct node_pod *pod, struct entries *out, struct err *err)
{
    *out = (struct entries){ 0 };
    struct container_config_input input = input_of(p, pod, "c");
    return container_env(&p->arena, &input, out, err);
}

/* "A=1 B=2", in order. */
static struct str shown(struct place *p, const struct entries *env)
{
    AUTO_BUF out = { 0 };
    for (size_t i = 0; i < env->count; i++)
        buf_addf(&out, "%s%s=%s", i ? " " : "", env->items[i]->key, env->items[i]->value);
    return arena_str(&p->arena, buf_str(&out));
}

TEST(references_are_replaced_as_kubernetes_replaces_them)
{
    AUTO(place) p = place_new();
    struct entries env = { 0 };
    struct err err;
    entries_add(&env, &p->arena, STR("A"), STR("a"));
    entries_add(&env, &p->arena, STR("EMPTY"), STR(""));
    entries_add(&env, &p->arena, STR("REF"), STR("$(A)"));
    static const char *const cases[][2] = {
        { "", "" },
        { "plain", "plain" },
        { "$(A)", "a" },
        { "x$(A)y$(A)", "xaya" },
        { "$(EMPTY)|", "|" },
        { "$(NONE)", "$(NONE)" },
        { "$$(A)", "$(A)" },
        { "$$$(A)", "$a" },
        { "$$$$(A)", "$$(A)" },
        { "$$", "$" },
        { "$", "$" },
        { "a$", "a$" },
        { "$A", "$A" },
        { "${A}", "${A}" },
        { "$(A", "$(A" },
        { "$(A$(A)", "$(A$(A)" }, /* the name is "A$(A" */
        { "$(A))", "a)" },
        { "$()", "$()" },
        { "$(REF)", "$(A)" }, /* once, not again in what came out */
        { "\xc3\xa9$\xc3\xa9", "\xc3\xa9$\xc3\xa9" },
    };
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        struct str out;
        EXPECT_OK(env_expand(&p->arena, &env, str_of(cases[i][0]), false, &out, &err), err);
        EXPECT_STR(out, cases[i][1]);
    }
    struct str out;
    EXPECT_ERR(env_expand(&p->arena, &env, STR("$(NONE)"), true, &out, &err), err, ERR_INVALID);
    EXPECT_HAS(str_of(err.text), "NONE");
}

TEST(env_from_comes_first_then_env_and_the_later_value_wins)
{
    AUTO(place) p = place_new();
    struct err err;
    struct entries env;
    place_have(p, "ConfigMap", "m", "{\"data\":{\"A\":\"map\",\"B\":\"map\",\"no=name\":\"x\"}}");
    place_have(p, "Secret", "s", "{\"data\":{\"B\":\"c2VjcmV0\"}}");
    AUTO_NODE_POD pod = pod_with("    envFrom: [{configMapRef: {name: m}},\n"
                                 "              {secretRef: {name: s}},\n"
                                 "              {prefix: P_, configMapRef: {name: m}},\n"
                                 "              {configMapRef: {name: gone, optional: true}}]\n"
                                 "    env: [{name: C, value: \"$(A)-$(B)-$(D)\"},\n"
                                 "          {name: A, value: own},\n"
                                 "          {name: D, value: \"$(A)\"},\n"
                                 "          {name: D, value: \"$(D)!\"}]\n");
    EXPECT_OK(env_of(p, pod, &env, &err), err);
    EXPECT_STR(shown(p, &env), "A=own B=secret P_A=map P_B=map C=map-secret-$(D) D=own!");
}

TEST(values_come_from_fields_resources_and_keys_and_are_not_expanded)
{
    AUTO(place) p = place_new();
    struct err err;
    struct entries env;
    p->facts.pod_ips = place_strs(p, "10.1.0.7", NULL);
    place_have(p, "ConfigMap", "m", "{\"data\":{\"k\":\"$(NAME)\"}}");
    place_have(p, "Secret", "s", "{\"data\":{\"k\":\"aHVudGVyMg==\"}}");
    AUTO_NODE_POD pod = pod_with(
        "    env:\n"
        "    - {name: NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}\n"
        "    - {name: IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}\n"
        "    - {name: CPU, valueFrom: {resourceFieldRef: {resource: limits.cpu}}}\n"
        "    - {name: OTHER, valueFrom: {resourceFieldRef: {containerName: other,\n"
        "                                                   resource: limits.cpu}}}\n"
        "    - {name: KEY, valueFrom: {configMapKeyRef: {name: m, key: k}}}\n"
        "    - {name: PASS, valueFrom: {secretKeyRef: {name: s, key: k}}}\n"
        "    - {name: MAYBE, valueFrom: {secretKeyRef: {name: s, key: none, optional: true}}}\n"
        "    - {name: GONE, valueFrom: {secretKeyRef: {name: none, key: k, optional: true}}}\n"
        "    - {name: ALL, value: \"$(PASS)@$(IP)\"}\n");
    EXPECT_OK(env_of(p, pod, &env, &err), err);
    EXPECT_STR(shown(p, &env),
               "NAME=web IP=10.1.0.7 CPU=2 OTHER=3 KEY=$(NAME) PASS=hunter2 ALL=hunter2@10.1.0.7");
}

TEST(what_is_missing_is_named_with_object_and_key)
{
    AUTO(place) p = place_new();
    struct err err;
    struct entries env;
    place_have(p, "ConfigMap", "m", "{\"data\":{\"k\":\"v\"}}");
    static const struct {
        const char *yaml, *words;
        enum err_kind kind;
    } cases[] = {
        { "    env: [{name: A, valueFrom: {configMapKeyRef: {name: m, key: none}}}]\n",
          "env \"A\": configmap \"m\" has no key \"none\"", ERR_NOT_FOUND },
        { "    env: [{name: A, valueFrom: {secretKeyRef: {name: gone, key: k}}}]\n",
          "env \"A\": secret \"gone\"", ERR_NOT_FOUND },
        { "    envFrom: [{secretRef: {name: gone}}]\n", "envFrom: secret \"gone\"", ERR_NOT_FOUND },
    };
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        AUTO_NODE_POD pod = pod_with(cases[i].yaml);
        EXPECT_ERR(env_of(p, pod, &env, &err), err, cases[i].kind);
        EXPECT_HAS(str_of(err.text), cases[i].words);
    }
    p->objects = (struct object_source){ 0 };
    AUTO_NODE_POD pod = pod_with(cases[0].yaml);
    EXPECT_ERR(env_of(p, pod, &env, &err), err, ERR_UNAVAILABLE);
    EXPECT_HAS(str_of(err.text), "needs an API server");
}

TEST(a_value_that_no_process_can_have_is_refused)
{
    AUTO(place) p = place_new();
    struct err err;
    struct entries env;
    place_have(p, "Secret", "s", "{\"data\":{\"k\":\"YQBi\"}}"); /* a NUL in the middle */
    AUTO_NODE_POD nul = pod_with("    envFrom: [{secretRef: {name: s}}]\n");
    EXPECT_ERR(env_of(p, nul, &env, &err), err, ERR_INVALID);
    EXPECT_HAS(str_of(err.text), "NUL");

    /* Each doubles the one before: forty of them would be a terabyte. */
    AUTO_BUF yaml = { 0 };
    buf_addz(&yaml, "    env:\n    - {name: V0, value: xxxxxxxx}\n");
    for (int i = 1; i <= 40; i++)
        buf_addf(&yaml, "    - {name: V%d, value: \"$(V%d)$(V%d)\"}\n", i, i - 1, i - 1);
    AUTO_NODE_POD bomb = pod_with(yaml.p);
    EXPECT_ERR(env_of(p, bomb, &env, &err), err, ERR_INVALID);

    /* Many that each quote a long one stop somewhere too. */
    buf_clear(&yaml);
    buf_addz(&yaml, "    env:\n    - {name: L, value: ");
    for (int i = 0; i < 100000; i++)
        buf_addc(&yaml, 'x');
    buf_addz(&yaml, "}\n");
    for (int i = 0; i < 100; i++)
        buf_addf(&yaml, "    - {name: V%d, value: \"$(L)\"}\n", i);
    AUTO_NODE_POD many = pod_with(yaml.p);
    EXPECT_ERR(env_of(p, many, &env, &err), err, ERR_INVALID);
    EXPECT_HAS(str_of(err.text), "more than 4 MiB");
}
