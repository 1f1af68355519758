/* The controller where it may do little: --dry-run with the rights to read and no others, and as a user who
 * owns nothing, on file systems that nobody can write to. */
#include "kube/audit.h"
#include "kube/life.h"

#include "codec/json.h"

#include <stdlib.h>
#include <unistd.h>

/* The controller's role with what it may read, as JSON for kubectl apply. */
static const char *reading_role(struct plane *p)
{
    struct doc doc;
    struct err err;
    AUTO_JSON_BUILD b;
    AUTO_BUF text = { 0 };
    json_build_init(&b);
    EXPECT_OK(json_read(life_get(p, "clusterrole karve -o json"), &doc, &err), err);
    json_mut *role = json_copy(&b, doc.root), *rules = json_new_array(&b);
    json_each_mut_item(json_mut_get(role, STR("rules")), rule)
    {
        json_mut *verbs = json_new_array(&b);
        json_each_mut_item(json_mut_get(rule, STR("verbs")), verb)
        {
            struct audit_use use = { .verb = json_mut_str(verb) };
            if (audit_is_read(&use))
                json_push(&b, verbs, json_mut_copy(&b, verb));
        }
        json_mut *kept = json_mut_copy(&b, rule);
        json_set(&b, kept, STR("verbs"), verbs);
        if (json_mut_count(verbs))
            json_push(&b, rules, kept);
    }
    json_mut *meta = json_new_object(&b);
    json_set_str(&b, meta, "name", STR(LIFE_READER));
    json_set(&b, role, STR("metadata"), meta);
    json_set(&b, role, STR("rules"), rules);
    json_write_mut(role, &text);
    doc_done(&doc);
    return arena_str(&p->arena, buf_str(&text)).p;
}

static struct str versions(struct plane *p)
{
    return life_get(p, "nodepools,nodeclaims,nodeoverlays,kwoknodeclasses,nodes,pods "
                       "-A -o 'jsonpath={range .items[*]}{.kind} {.metadata.name} "
                       "{.metadata.resourceVersion} {end}'");
}

static bool log_says(struct plane *p, const char *words)
{
    struct str log = plane_log(p, "dry");
    return memmem(log.p, log.len, words, strlen(words)) != NULL;
}

TEST(a_dry_run_decides_and_changes_nothing_with_the_right_to_read)
{
    struct plane *p = life_plane();
    plane_apply(p, reading_role(p));
    plane_must(p, "kubectl create clusterrolebinding " LIFE_READER " --clusterrole=" LIFE_READER
                  " --user=" LIFE_READER);
    const char *access = plane_user(p, LIFE_READER, NULL);
    life_pool(p, "name: web", "", "");
    life_deployment(p, "web", 3, "", "");
    life_deployment(p, "homeless", 1, "", "nodeSelector: {nobody: has-this}");
    plane_apply(p, "apiVersion: karpenter.sh/v1alpha1\nkind: NodeOverlay\nmetadata: {name: cheap}\n"
                   "spec: {priceAdjustment: '-50%', requirements: []}\n");
    PLANE_WAIT(p, str_eqz(life_get(p, "pods -o 'jsonpath={.items[*].status.conditions[?(@.type=="
                                      "\"PodScheduled\")].reason}'"),
                          "Unschedulable Unschedulable Unschedulable Unschedulable"));
    struct str before = versions(p);

    pid_t pid =
        plane_karve(p, "dry",
                    (const char *[]){ "controller", "--dry-run", "--kubeconfig", access,
                                      "--metrics-port", "0", "--health-probe-port", "0", NULL });
    PLANE_WAIT(p, log_says(p, "\"msg\":\"planned\"") && log_says(p, "would create") &&
                      log_says(p, "karve.io/NodePlanned"));
    EXPECT_EQ(plane_stop(p, pid), 0);
    EXPECT_STR(versions(p), before.p);
    EXPECT_EQ(life_count(p, "lease -n kube-system --ignore-not-found karpenter-leader-election"),
              0);

    struct audit audit = { 0 };
    audit_read(life_audit_log(p), LIFE_READER, &p->arena, &audit);
    uint32_t reads = 0, others = 0;
    vec_each(&audit.uses, struct audit_use, use) {
        bool fine = audit_is_read(use) && use->denied == 0;
        reads += fine;
        others += !fine;
        if (!fine)
            print_error("%.*s %.*s, denied %u times\n", STR_ARG(use->verb), STR_ARG(use->example),
                        use->denied);
    }
    audit_done(&audit);
    EXPECT_TRUE(reads > 0);
    EXPECT_EQ(others, 0);
}

/* In a mount namespace of its own everything that is mounted is made read-only. */
static const char unprivileged[] =
    "#!/bin/sh\n"
    "[ $(id -u) = 0 ] || exit 8\n"
    "[ -n \"$INSIDE\" ] || INSIDE=yes exec unshare -m --propagation private \"$0\" \"$@\"\n"
    "cut -d' ' -f5 /proc/self/mountinfo | while read -r at; do\n"
    "    case $at in /proc | /proc/*) ;; *) mount -o remount,ro,bind \"$at\" ;; esac\n"
    "done 2>/dev/null\n"
    "! touch \"$DIR/open/written\" /tmp/written 2>/dev/null || exit 9\n"
    "cd / && exec setpriv --reuid 65534 --regid 65534 --clear-groups --no-new-privs --inh-caps=-all "
    "--pdeathsig KILL env -i \"$DIR/open/karve\" \"$@\"\n";

/* What the user must read is put where it can be reached. */
TEST(the_controller_needs_neither_root_nor_a_file_that_it_can_write)
{
    struct plane *p = life_plane();
    if (geteuid() != 0)
        SKIP("only root can become somebody else");
    if (plane_sh(p, NULL, "unshare -m setpriv --reuid 65534 --regid 65534 --clear-groups true") !=
        0)
        SKIP("unshare and setpriv do not work here");
    life_pool(p, "name: web", "", "");
    plane_must(p,
               "mkdir $DIR/open && cp $KARVE $DIR/controller.kubeconfig $DIR/open && "
               "chmod 755 $DIR $DIR/open && chmod 644 $DIR/open/controller.kubeconfig && "
               "cat >$DIR/open/run <<'END' && chmod 755 $DIR/open/run\n%sEND\n",
               unprivileged);

    AUTO_FREE char *karve = str_dup(str_of(getenv("KARVE")));
    setenv("KARVE", plane_path(p, "open/run"), 1);
    pid_t pid = plane_karve(
        p, "controller",
        (const char *[]){ "controller", "--kubeconfig", plane_path(p, "open/controller.kubeconfig"),
                          "--metrics-port", "0", "--health-probe-port", "0", NULL });
    setenv("KARVE", karve, 1);
    PLANE_WAIT(p, str_eqz(life_get(p, "nodepool web -o 'jsonpath={.status.conditions[?(@.type=="
                                      "\"Ready\")].status}'"),
                          "True"));
    EXPECT_EQ(plane_stop(p, pid), 0);
}
