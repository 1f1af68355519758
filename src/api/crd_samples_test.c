/* Every rule of our own kinds, with an object that keeps it and one that breaks it. */
#include "support/test.h"

#include "crdcheck/export/samples.h"

/* The tree again, as a reader would have parsed it. */
static void reread(const json_mut *v, struct buf *text, struct doc *out)
{
    struct err err;
    json_write_mut(v, text);
    EXPECT_OK(json_read(buf_str(text), out, &err), err);
}

static void admit(const struct kind *kind, const json_mut *object, const json_val *maybe_old,
                  struct json_build *b, struct report *report, json_mut **defaulted)
{
    AUTO_BUF text = { 0 };
    struct doc doc;
    reread(object, &text, &doc);
    *defaulted = object_admit(kind, b, doc.root, maybe_old, report);
    vec_each(&report->problems, struct problem, p)
        p->at = NULL; /* into the document that goes now */
    doc_done(&doc);
}

/* An update is judged as the API server does it: what is stored has its defaults, and so has what
 * is sent by the time the two are compared. */
static void judge(const struct sample_set *set, const struct sample *sample, struct report *report)
{
    AUTO_JSON_BUILD b;
    json_build_init(&b);
    json_mut *object = sample_build(&b, set->base, sample->patch), *defaulted;
    if (!sample->old) {
        admit(set->kind, object, NULL, &b, report, &defaulted);
        return;
    }
    AUTO_ARENA arena = { 0 };
    struct report ignored = { .arena = &arena };
    AUTO_BUF text = { 0 };
    struct doc old;
    json_mut *stored;
    admit(set->kind, sample_build(&b, set->base, sample->old), NULL, &b, &ignored, &stored);
    EXPECT_EQ(ignored.error_count, 0);
    admit(set->kind, object, NULL, &b, &ignored, &defaulted);
    reread(stored, &text, &old);
    admit(set->kind, defaulted, old.root, &b, report, &defaulted);
    doc_done(&old);
    report_done(&ignored);
}

static bool found(const struct report *report, const struct sample *sample)
{
    enum severity severity = sample->judge == WARNING ? PROBLEM_WARNING : PROBLEM_ERROR;
    vec_each(&report->problems, struct problem, p) {
        AUTO_BUF text = { 0 };
        buf_addf(&text, "%.*s: %.*s", STR_ARG(p->path), STR_ARG(p->what));
        if (p->severity == severity && str_starts(buf_str(&text), str_of(sample->problem)))
            return true;
    }
    return false;
}

static void check_set(const struct sample_set *set)
{
    int wrong = 0;
    for (uint32_t i = 0; i < set->count; i++) {
        const struct sample *sample = &set->samples[i];
        AUTO_ARENA arena = { 0 };
        struct report report = { .arena = &arena };
        judge(set, sample, &report);
        bool ok = sample->problem ? found(&report, sample) : report.problems.count == 0;
        if (sample->judge == WARNING && report.error_count)
            ok = false;
        if (!ok) {
            wrong++;
            print_error("%s %s\n  expected %s\n", set->kind->name, sample->patch,
                        sample->problem ? sample->problem : "no problem");
            vec_each(&report.problems, struct problem, p)
                print_error("  found %s %.*s: %.*s\n", p->severity ? "warning" : "error",
                            STR_ARG(p->path), STR_ARG(p->what));
        }
        report_done(&report);
    }
    EXPECT_EQ(wrong, 0);
}

TEST(nodepool_rules_accept_what_is_right_and_name_what_is_wrong)
{
    check_set(&sample_sets[0]);
}

TEST(nodeclaim_rules_accept_what_is_right_and_name_what_is_wrong)
{
    check_set(&sample_sets[1]);
}

TEST(nodeoverlay_rules_accept_what_is_right_and_name_what_is_wrong)
{
    check_set(&sample_sets[2]);
}

TEST(kwoknodeclass_rules_accept_what_is_right_and_name_what_is_wrong)
{
    check_set(&sample_sets[3]);
}

TEST(ec2nodeclass_rules_accept_what_is_right_and_name_what_is_wrong)
{
    check_set(&sample_sets[4]);
}

/* Whatever else a table says, a rule that nothing breaks in these samples is a rule that nobody
 * has tried. */
static bool message_is_tried(const struct sample_set *set, const char *message)
{
    for (uint32_t i = 0; i < set->count; i++) {
        const char *problem = set->samples[i].problem;
        const char *what = problem ? strstr(problem, ": ") : NULL;
        if (what && what[2] && str_starts(str_of(message), str_of(what + 2)))
            return true;
    }
    return false;
}

static void check_cel_tried(const struct sample_set *set, const struct cel_rule *rules, int *wrong)
{
    for (; rules && rules->rule; rules++) {
        EXPECT_TRUE(rules->holds);
        if (message_is_tried(set, rules->message))
            continue;
        print_error("%s: no sample breaks the rule \"%s\"\n", set->kind->name, rules->message);
        ++*wrong;
    }
}

static void check_schema_tried(const struct sample_set *set, const struct schema *schema,
                               int *wrong)
{
    check_cel_tried(set, schema->cel, wrong);
    for (uint32_t i = 0; i < schema->field_count; i++) {
        const struct field *f = &schema->fields[i];
        if (f->flags & FIELD_CRD_HIDDEN)
            continue;
        if (f->rule)
            check_cel_tried(set, f->rule->cel, wrong);
        if (f->sub)
            check_schema_tried(set, f->sub, wrong);
    }
}

TEST(every_cel_rule_of_our_kinds_is_broken_by_a_sample)
{
    int wrong = 0;
    for (size_t i = 0; i < KV_COUNT_OF(sample_sets); i++)
        check_schema_tried(&sample_sets[i], sample_sets[i].kind->schema, &wrong);
    EXPECT_EQ(wrong, 0);
}

static void check_docs(const char *kind, const struct schema *schema, int *missing)
{
    EXPECT_TRUE(schema->doc);
    for (uint32_t i = 0; i < schema->field_count; i++) {
        const struct field *f = &schema->fields[i];
        if ((f->flags & FIELD_CRD_HIDDEN) || f->type == FIELD_OPAQUE)
            continue;
        if (!f->doc || f->doc[strlen(f->doc) - 1] != '.') {
            print_error("%s: %s.%s has no sentence that says what it is\n", kind, schema->name,
                        f->name);
            ++*missing;
        }
        if (f->sub)
            check_docs(kind, f->sub, missing);
    }
}

TEST(every_field_of_our_kinds_is_explained)
{
    int missing = 0;
    for (size_t i = 0; i < KV_COUNT_OF(sample_sets); i++)
        check_docs(sample_sets[i].kind->name, sample_sets[i].kind->schema, &missing);
    EXPECT_EQ(missing, 0);
}
