/* Manifests on disk, loaded: what is kept, what is found, where it is said to be. */
#include "api/manifest.h"

#include "support/test.h"

#include <stdio.h>
#include <unistd.h>

struct load {
    char path[64];
    struct manifests m;
};

static void load_text(struct load *l, const char *text)
{
    struct err err = { 0 };
    snprintf(l->path, sizeof l->path, "/tmp/karve-manifest-XXXXXX");
    int fd = mkstemp(l->path);
    EXPECT_TRUE(fd >= 0);
    EXPECT_TRUE(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    close(fd);
    manifests_init(&l->m);
    const char *const paths[] = { l->path };
    EXPECT_OK(manifests_load(&l->m, paths, 1, &err), err);
}

static void load_done(struct load *l)
{
    unlink(l->path);
    manifests_done(&l->m);
}
#define LOAD __attribute__((cleanup(load_done))) struct load

/* "line:col: kind/name: path: what" of every problem, without the file's random name. */
static void expect_problems(struct load *l, const char *want)
{
    AUTO_BUF got = { 0 };
    vec_each(&l->m.problems, struct manifest_problem, p) {
        AUTO_BUF line = { 0 };
        manifest_problem_format(p, &line);
        buf_addf(&got, "%s\n", line.p + strlen(l->path) + 1);
    }
    EXPECT_STR(buf_str(&got), want);
}

#define JOB_SPEC                                                                                   \
    "spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: b}]}}}\n"
#define CLASS(meta_)                                                                               \
    "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {" meta_ "}\nvalue: 1\n"

TEST(every_document_of_a_file_becomes_an_object)
{
    LOAD l;
    load_text(
        &l,
        CLASS("name: low") "---\napiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\n" JOB_SPEC
                           "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n");
    expect_problems(&l, "");
    EXPECT_EQ(l.m.items.count, 3);
    const struct manifest *items = l.m.items.items;
    EXPECT_STR(items[0].object->meta.name, "low");
    EXPECT_STR(items[0].namespace_, "");
    EXPECT_STR(items[1].namespace_, "default");
    EXPECT_EQ(items[1].pos.line, 6);
    EXPECT_TRUE(items[2].kind == NULL);
    EXPECT_TRUE(items[2].object == NULL);
}

TEST(lists_are_opened_up_even_when_their_items_do_not_say_what_they_are)
{
    LOAD l;
    load_text(&l, "apiVersion: v1\nkind: List\nitems:\n"
                  "- {apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: a}}\n"
                  "---\n"
                  "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClassList\nitems:\n"
                  "- {metadata: {name: b}, value: 2}\n");
    expect_problems(&l, "");
    EXPECT_EQ(l.m.items.count, 2);
    EXPECT_STR(l.m.items.items[1].object->meta.name, "b");
    EXPECT_STR(l.m.items.items[1].kind_name, "PriorityClass");
}

TEST(a_name_is_used_once_by_a_kind_in_a_namespace)
{
    LOAD l;
    load_text(&l, CLASS("name: a") "---\n" CLASS("name: a, namespace: x") "---\n" CLASS("name: b"));
    EXPECT_EQ(l.m.problems.count, 1);
    EXPECT_STR(l.m.problems.items[0].path, "metadata.name");
    EXPECT_HAS(l.m.problems.items[0].what, "this name is already used at ");
    EXPECT_EQ(l.m.problems.items[0].pos.line, 6);
}

TEST(objects_that_wait_for_a_name_are_not_duplicates)
{
    LOAD l;
    load_text(&l, "apiVersion: batch/v1\nkind: Job\nmetadata: {generateName: j-}\n" JOB_SPEC
                  "---\napiVersion: batch/v1\nkind: Job\nmetadata: {generateName: j-}\n" JOB_SPEC);
    expect_problems(&l, "");
    EXPECT_EQ(l.m.items.count, 2);
}

TEST(problems_come_in_the_order_of_the_text_with_kind_name_and_path)
{
    LOAD l;
    load_text(&l, CLASS("name: a") "globalDefault: 7\ndescription: on\n---\nhello\n---\nkind: Pod\n"
                                   "---\napiVersion: v1\nmetadata: {name: x}\n");
    expect_problems(
        &l,
        "5:16: PriorityClass/a: globalDefault: expected true or false, found integer 7\n"
        "6:14: PriorityClass/a: description: expected a string, found boolean true; quote it if a "
        "string was meant\n"
        "8:1: expected an object with apiVersion and kind, found string\n"
        "10:1: Pod: apiVersion: missing or no text; expected a version such as karpenter.sh/v1\n"
        "12:1: kind: missing or no text; expected a kind such as NodePool\n");
    EXPECT_EQ(l.m.error_count, 5);
    EXPECT_TRUE(l.m.items.items[0].object == NULL);
}

TEST(a_kind_or_version_that_is_nearly_right_is_a_mistake)
{
    LOAD l;
    load_text(&l, "apiVersion: karpenter.sh/v1beta1\nkind: NodePool\nmetadata: {name: a}\n---\n"
                  "apiVersion: karpenter.sh/v1\nkind: NodePol\nmetadata: {name: b}\n---\n"
                  "apiVersion: example.com/v1\nkind: NodePol\nmetadata: {name: c}\n");
    expect_problems(&l, "2:7: NodePool/a: version \"v1beta1\" is not one that karve reads; use "
                        "karpenter.sh/v1\n"
                        "6:7: NodePol/b: unknown kind \"NodePol\"; did you mean NodePool?\n");
}

TEST(errors_beyond_those_kept_are_counted)
{
    LOAD l;
    AUTO_BUF text = { 0 };
    buf_addz(&text, CLASS("name: a"));
    for (int i = 0; i < 1500; i++)
        buf_addf(&text, "unknown%d: 1\n", i);
    load_text(&l, text.p);
    EXPECT_EQ(l.m.problems.count, MANIFEST_PROBLEMS_MAX);
    EXPECT_EQ(l.m.error_count, 1500);
    EXPECT_EQ(l.m.problems_dropped, 500);
}

TEST(names_in_problems_are_short_and_on_one_line)
{
    LOAD l;
    AUTO_BUF text = { 0 };
    buf_addz(&text, "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\\n\\u001b");
    for (int i = 0; i < 5000; i++)
        buf_addc(&text, 'x');
    buf_addz(&text, "\"}}");
    load_text(&l, text.p);
    EXPECT_TRUE(l.m.problems.count > 0);
    vec_each(&l.m.problems, struct manifest_problem, p) {
        AUTO_BUF line = { 0 };
        manifest_problem_format(p, &line);
        EXPECT_TRUE(line.len < 1000);
        EXPECT_TRUE(str_find(buf_str(&line), '\n') < 0);
        EXPECT_TRUE(str_find(buf_str(&line), '\x1b') < 0);
    }
}

TEST(a_path_that_is_not_there_is_an_error_of_the_environment)
{
    struct manifests m;
    struct err err = { 0 };
    const char *const paths[] = { "/nowhere/at-all.yaml" };
    manifests_init(&m);
    EXPECT_ERR(manifests_load(&m, paths, 1, &err), err, ERR_NOT_FOUND);
    manifests_done(&m);
}
