/* The program as users and scripts meet it: arguments, exit codes, what is printed where. */
#include "cli_testing.h"

#include <dirent.h>
#include <fcntl.h>

/* --- help and usage --- */

TEST(without_arguments_it_shows_the_overview_and_exits_2)
{
    AUTO_RESULT r = karve("");
    EXPECT_EQ(r.code, 2);
    EXPECT_HAS(buf_str(&r.err), "validate");
    EXPECT_EQ(r.out.len, 0);
}

TEST(help_lists_every_command)
{
    AUTO_RESULT r = karve("--help");
    EXPECT_EQ(r.code, 0);
    EXPECT_HAS(buf_str(&r.out), "validate");
    EXPECT_HAS(buf_str(&r.out), "crds");
    EXPECT_HAS(buf_str(&r.out), "completion");
    EXPECT_HAS(buf_str(&r.out), "Exit codes");
}

TEST(help_of_a_command_describes_its_flags)
{
    AUTO_RESULT r = karve("validate --help");
    EXPECT_EQ(r.code, 0);
    EXPECT_HAS(buf_str(&r.out), "-f, --filename PATH");
    EXPECT_HAS(buf_str(&r.out), "Examples");
    AUTO_RESULT same = karve("help validate");
    EXPECT_TRUE(str_eq(buf_str(&r.out), buf_str(&same.out)));
}

TEST(a_misspelt_command_is_a_usage_error_with_a_suggestion)
{
    AUTO_RESULT r = karve("valdate -f x");
    EXPECT_EQ(r.code, 2);
    EXPECT_HAS(buf_str(&r.err), "did you mean 'validate'?");
}

TEST(a_misspelt_flag_is_a_usage_error_with_a_suggestion)
{
    AUTO_RESULT r = karve("validate --filname x");
    EXPECT_EQ(r.code, 2);
    EXPECT_HAS(buf_str(&r.err), "did you mean --filename?");
}

TEST(a_value_outside_the_choices_is_a_usage_error_that_names_them)
{
    AUTO_RESULT r = karve("validate -f examples -o xml");
    EXPECT_EQ(r.code, 2);
    EXPECT_HAS(buf_str(&r.err), "'xml' is not one of text, json");
}

TEST(flags_can_be_set_in_the_environment_and_the_command_line_wins)
{
    AUTO_RESULT from_environment =
        sh("KARVE_OUTPUT=json; export KARVE_OUTPUT; karve version", STR(""));
    EXPECT_EQ(from_environment.code, 0);
    EXPECT_HAS(buf_str(&from_environment.out), "{\"version\":");
    AUTO_RESULT overridden =
        sh("KARVE_OUTPUT=json; export KARVE_OUTPUT; karve version -o text", STR(""));
    EXPECT_HAS(buf_str(&overridden.out), "karve ");
    AUTO_RESULT wrong = sh("KARVE_OUTPUT=xml; export KARVE_OUTPUT; karve version", STR(""));
    EXPECT_EQ(wrong.code, 2);
    EXPECT_HAS(buf_str(&wrong.err), "KARVE_OUTPUT");
}

TEST(a_switch_in_the_environment_is_true_or_false_and_nothing_else)
{
    AUTO_RESULT on = sh("KARVE_HELP=True karve version", STR(""));
    EXPECT_HAS(buf_str(&on.out), "Usage");
    AUTO_RESULT off = sh("KARVE_HELP=off karve version", STR(""));
    EXPECT_EQ(off.code, 0);
    EXPECT_HAS(buf_str(&off.out), "karve ");
    AUTO_RESULT wrong = sh("KARVE_DRY_RUN=enabled karve controller", STR(""));
    EXPECT_EQ(wrong.code, 2);
    EXPECT_HAS(buf_str(&wrong.err), "KARVE_DRY_RUN: \"enabled\" is neither true nor false");
}

TEST(completion_scripts_are_accepted_by_the_shell)
{
    AUTO_RESULT bash = sh("karve completion bash | bash -n", STR(""));
    EXPECT_EQ(bash.code, 0);
    EXPECT_EQ(bash.err.len, 0);
    AUTO_RESULT zsh = karve("completion zsh");
    EXPECT_HAS(buf_str(&zsh.out), "#compdef karve");
    AUTO_RESULT fish = karve("completion fish");
    EXPECT_HAS(buf_str(&fish.out), "complete -c karve");
    AUTO_RESULT other = karve("completion tcsh");
    EXPECT_EQ(other.code, 2);
}

TEST(bash_completion_offers_commands_and_flag_values)
{
    AUTO_RESULT r =
        sh("bash -c '. <(\"$KARVE\" completion bash); COMP_WORDS=(karve val); COMP_CWORD=1; "
           "_karve; echo ${COMPREPLY[@]}; COMP_WORDS=(karve validate -o \"\"); COMP_CWORD=3; "
           "_karve; echo ${COMPREPLY[@]}'",
           STR(""));
    EXPECT_STR(buf_str(&r.out), "validate\ntext json\n");
}

TEST(the_man_page_covers_every_command)
{
    AUTO_RESULT r = karve("man");
    EXPECT_EQ(r.code, 0);
    EXPECT_HAS(buf_str(&r.out), ".TH KARVE 1");
    EXPECT_HAS(buf_str(&r.out), ".SS \"karve validate [flags] [PATH...]\"");
    EXPECT_HAS(buf_str(&r.out), ".SS \"karve crds [flags] [KIND...]\"");
    EXPECT_HAS(buf_str(&r.out), "EXIT STATUS");
}

/* --- validate --- */

TEST(the_examples_are_valid)
{
    AUTO_RESULT r = karve("validate -f examples");
    EXPECT_STR(buf_str(&r.err), "");
    EXPECT_EQ(r.code, 0);
    EXPECT_HAS(buf_str(&r.out), "valid");
}

TEST(validate_lists_what_every_object_asks_for)
{
    AUTO_RESULT r = karve("validate --list -f examples/shop");
    EXPECT_HAS(buf_str(&r.out), "80 pods of 500m cpu, 768Mi memory");
    EXPECT_HAS(buf_str(&r.out), "6 pods of 3 cpu, 12Gi memory, 1 nvidia.com/gpu until 12 succeed");
    EXPECT_HAS(buf_str(&r.out), "at 30 2 * * *: 8 pods of 2 cpu, 6Gi memory");
    EXPECT_HAS(buf_str(&r.out), "on every node: 100m cpu, 160Mi memory");
    EXPECT_HAS(buf_str(&r.out), "weight 50, up to 600 cpu, 2400Gi memory, tainted");
    EXPECT_HAS(buf_str(&r.out), "200Gi storage of zonal-ssd, bound to orders-db-0");
    EXPECT_HAS(buf_str(&r.out), "image al2023@v20260714, role ShopNodeRole");
    EXPECT_HAS(buf_str(&r.out), "keeps 80%");
    EXPECT_HAS(buf_str(&r.out), "price -18%");
    EXPECT_HAS(buf_str(&r.out), "examples/shop/web.yaml:2\n");
}

TEST(validate_reads_files_folders_and_several_of_them)
{
    AUTO_RESULT r = karve("validate -f examples/shop/web.yaml -f examples/shop/api.yaml -o json");
    EXPECT_EQ(r.code, 0);
    EXPECT_HAS(buf_str(&r.out), "examples/shop/web.yaml");
    EXPECT_HAS(buf_str(&r.out), "examples/shop/api.yaml");
    AUTO_RESULT from_environment =
        sh("KARVE_FILENAME=examples/shop/web.yaml,examples/shop/api.yaml karve validate", STR(""));
    EXPECT_HAS(buf_str(&from_environment.out), "in 2 files");
}

TEST(validate_names_file_line_column_object_and_field)
{
    AUTO_RESULT r = sh("karve validate -f -", STR("apiVersion: karpenter.sh/v1\n"
                                                  "kind: NodePool\n"
                                                  "metadata: {name: web}\n"
                                                  "spec:\n"
                                                  "  wieght: 10\n"
                                                  "  template:\n"
                                                  "    spec:\n"
                                                  "      requirements: []\n"
                                                  "      nodeClassRef: {group: karpenter.k8s.aws, "
                                                  "kind: EC2NodeClass, name: default}\n"));
    EXPECT_EQ(r.code, 1);
    EXPECT_HAS(buf_str(&r.err), "stdin:5:3: NodePool/web: spec.wieght: unknown field");
    EXPECT_HAS(buf_str(&r.err), "weight");
}

TEST(validate_prints_json_for_scripts)
{
    AUTO_RESULT r =
        sh("karve validate -o json -f -",
           STR("apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: 3}\n"));
    EXPECT_EQ(r.code, 1);
    EXPECT_EQ(r.err.len, 0);
    struct doc doc;
    struct err err;
    EXPECT_OK(json_read(buf_str(&r.out), &doc, &err), err);
    EXPECT_FALSE(json_bool(json_get(doc.root, STR("valid"))));
    const json_val *first = json_at(json_get(doc.root, STR("problems")), 0);
    EXPECT_STR(json_str(json_get(first, STR("path"))), "spec.containers");
    EXPECT_STR(json_str(json_get(first, STR("kind"))), "Pod");
    int64_t line = 0;
    EXPECT_TRUE(json_i64(json_get(first, STR("line")), &line));
    EXPECT_EQ(line, 4);
    doc_done(&doc);
}

TEST(validate_finds_a_name_used_twice)
{
    AUTO_RESULT r =
        sh("karve validate -f -", STR("apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n---\n"
                                      "apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n"));
    EXPECT_EQ(r.code, 1);
    EXPECT_HAS(buf_str(&r.err),
               "stdin:5:1: Namespace/a: metadata.name: this name is already used at stdin:1");
}

TEST(validate_finds_a_pool_that_can_never_match)
{
    AUTO_RESULT r = sh(
        "karve validate -f -",
        STR("apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: never}\nspec:\n  template:\n    spec:\n"
            "      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}\n"
            "      requirements:\n"
            "      - {key: kubernetes.io/arch, operator: In, values: [arm64]}\n"
            "      - {key: kubernetes.io/arch, operator: In, values: [amd64]}\n"));
    EXPECT_EQ(r.code, 1);
    EXPECT_HAS(buf_str(&r.err), "kubernetes.io/arch");
}

TEST(validate_warns_of_a_budget_whose_schedule_leaves_a_gap)
{
    const struct str pool = STR(
        "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: gap}\nspec:\n  template:\n    spec:\n"
        "      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}\n"
        "      requirements: []\n"
        "  disruption:\n    budgets:\n    - {nodes: \"0\", schedule: \"0 9 * * mon-fri\", duration: 8h}\n");
    AUTO_RESULT r = sh("karve validate -f -", pool);
    EXPECT_EQ(r.code, 0);
    EXPECT_HAS(buf_str(&r.err), "warning");
    EXPECT_HAS(buf_str(&r.err), "spec.disruption.budgets");
    AUTO_RESULT strict = sh("karve validate --strict -f -", pool);
    EXPECT_EQ(strict.code, 1);
}

TEST(validate_opens_the_lists_that_kubectl_prints)
{
    AUTO_RESULT r = sh(
        "karve validate -f -",
        STR("{\"apiVersion\":\"v1\",\"kind\":\"List\",\"items\":[\n"
            "{\"apiVersion\":\"v1\",\"kind\":\"Namespace\",\"metadata\":{\"name\":\"a\"}},\n"
            "{\"apiVersion\":\"v1\",\"kind\":\"Namespace\",\"metadata\":{\"name\":\"B_\"}}]}\n"));
    EXPECT_EQ(r.code, 1);
    EXPECT_HAS(buf_str(&r.err), "stdin:3:");
    EXPECT_HAS(buf_str(&r.err), "Namespace/B_: metadata.name");
}

TEST(validate_counts_kinds_that_karve_does_not_read)
{
    AUTO_RESULT r = sh("karve validate -f -",
                       STR("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {x: y}\n"));
    EXPECT_EQ(r.code, 0);
    EXPECT_HAS(buf_str(&r.out), "not checked: 1 ConfigMap");
}

TEST(validate_tells_an_old_version_and_a_misspelt_kind_of_its_own_groups)
{
    AUTO_RESULT r =
        sh("karve validate -f -",
           STR("apiVersion: karpenter.sh/v1beta1\nkind: NodePool\nmetadata: {name: a}\n---\n"
               "apiVersion: karpenter.sh/v1\nkind: NodePol\nmetadata: {name: b}\n"));
    EXPECT_EQ(r.code, 1);
    EXPECT_HAS(buf_str(&r.err), "use karpenter.sh/v1");
    EXPECT_HAS(buf_str(&r.err), "did you mean NodePool?");
}

TEST(validate_of_a_missing_file_is_an_environment_failure)
{
    AUTO_RESULT r = karve("validate -f no/such/file.yaml");
    EXPECT_EQ(r.code, 3);
    EXPECT_HAS(buf_str(&r.err), "no/such/file.yaml: No such file");
    AUTO_RESULT nothing = karve("validate");
    EXPECT_EQ(nothing.code, 2);
}

/* --- the hostile set --- */

/* tests/bad/EXPECTED: "name: line:col: words" or "name: semantic: words"; '#' starts a comment. */
TEST(every_hostile_file_gets_its_error_and_exit_code_1)
{
    AUTO_BUF expected = { 0 };
    struct err err;
    size_t checked = 0;
    EXPECT_OK(file_read("tests/bad/EXPECTED", 1 << 20, &expected, &err), err);
    struct str rest = buf_str(&expected), line;
    while (rest.len) {
        str_cut(rest, '\n', &line, &rest);
        struct str name, place, words;
        if (!line.len || line.p[0] == '#' || !str_cut(line, ':', &name, &place))
            continue;
        place = str_trim(place);
        bool semantic = str_starts(place, STR("semantic"));
        ptrdiff_t space = str_find(place, ' ');
        words = str_trim(str_sub(place, space < 0 ? place.len : (size_t)space, place.len));
        place = str_sub(place, 0, space < 0 ? place.len : (size_t)space);

        AUTO_BUF command = { 0 };
        buf_addf(&command, "validate -f tests/bad/%.*s", STR_ARG(name));
        AUTO_RESULT r = karve(command.p);
        if (r.code != 1)
            print_error("tests/bad/%.*s: exit code %d\n%s\n", STR_ARG(name), r.code,
                        r.err.p ? r.err.p : "");
        EXPECT_EQ(r.code, 1);
        AUTO_BUF want = { 0 };
        if (!semantic)
            buf_addf(&want, "tests/bad/%.*s:%.*s", STR_ARG(name), STR_ARG(place));
        EXPECT_HAS(buf_str(&r.err), want.p ? want.p : "");
        AUTO_FREE char *words_z = str_dup(words);
        EXPECT_HAS(buf_str(&r.err), words_z);
        checked++;
    }
    EXPECT_TRUE(checked >= 20);
}

static void write_large(const char *path, const char *head, char fill, size_t count,
                        const char *tail)
{
    FILE *f = fopen(path, "w");
    if (!f)
        fail_msg("cannot write %s", path);
    fputs(head, f);
    AUTO_FREE char *chunk = kv_malloc(1 << 20);
    memset(chunk, fill, 1 << 20);
    for (size_t left = count; left > 0;) {
        size_t n = left < 1 << 20 ? left : 1 << 20;
        fwrite(chunk, 1, n, f);
        left -= n;
    }
    fputs(tail, f);
    fclose(f);
}

static void expect_refused(const char *path, const char *words)
{
    AUTO_BUF command = { 0 };
    buf_addf(&command, "validate -f %s", path);
    AUTO_RESULT r = karve(command.p);
    unlink(path);
    EXPECT_EQ(r.code, 1);
    EXPECT_HAS(buf_str(&r.err), words);
}

TEST(a_scalar_of_100_megabytes_is_refused)
{
    char path[] = "/tmp/karve-large-XXXXXX.yaml";
    close(mkstemps(path, 5));
    write_large(path, "apiVersion: v1\nkind: Namespace\nmetadata: {name: ", 'x', 100000000, "}\n");
    expect_refused(path, "longer than the limit");
}

TEST(a_million_brackets_are_refused)
{
    char path[] = "/tmp/karve-deep-XXXXXX.json";
    close(mkstemps(path, 5));
    write_large(path, "", '[', 1000000, "");
    expect_refused(path, "deep");
}

/* --- crds --- */

TEST(crds_prints_five_definitions_that_parse)
{
    AUTO_RESULT r = karve("crds");
    EXPECT_EQ(r.code, 0);
    struct docs docs;
    struct err err;
    EXPECT_OK(yaml_read(buf_str(&r.out), &docs, NULL, &err), err);
    EXPECT_EQ(docs.count, 5);
    for (size_t i = 0; i < docs.count; i++)
        EXPECT_STR(json_str(json_get(docs.items[i].root, STR("kind"))), "CustomResourceDefinition");
    docs_done(&docs);
}

TEST(crds_with_rbac_adds_a_role_without_wildcards)
{
    AUTO_RESULT r = karve("crds --rbac");
    EXPECT_EQ(r.code, 0);
    EXPECT_HAS(buf_str(&r.out), "kind: ClusterRole\n");
    EXPECT_FALSE(memmem(r.out.p, r.out.len, "\"*\"", 3));
}

TEST(the_field_reference_in_docs_is_what_the_tables_say)
{
    static const char *const names[] = { "nodepool", "nodeclaim", "nodeoverlay", "ec2nodeclass",
                                         "kwoknodeclass" };
    for (size_t i = 0; i < KV_COUNT_OF(names); i++) {
        AUTO_BUF command = { 0 };
        buf_addf(&command, "karve crds %s -o markdown | diff - docs/reference/%s.md", names[i],
                 names[i]);
        AUTO_RESULT r = sh(command.p, STR(""));
        if (r.code != 0)
            print_error("run `make reference`\n");
        EXPECT_EQ(r.code, 0);
    }
}
