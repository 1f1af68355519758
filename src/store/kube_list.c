/* store/kube_list.c - lists, page by page.
 *
 * Lists are consistent: no resourceVersion is asked for, so that the server answers with what is
 * true now. With resourceVersion=0 it may answer from a cache of any age, perhaps older than what
 * this very process has seen from another server: a controller that restarts would then decide on
 * a past in which the node it launched a second ago is not there. (Since 1.31 a consistent list
 * comes from the server's cache as well, once that has caught up, and costs no more.)
 *
 * A caller who wants everything at once gets it in pages, too: the text of one page and its tree
 * are all that is held beside the objects. If a page's token expires in between, everything is
 * asked for in one answer.
 */
#include "store/kube_inner.h"

#define PAGE_MAX 500

static int list_page(struct kube *kube, const struct kind *kind, const struct list_options *opts,
                     uint32_t limit, struct str token, struct object_list *out, struct err *err)
{
    AUTO_BUF path = { 0 };
    AUTO_KUBE_ANSWER answer = { 0 };
    char count[16];

    if (kube_path(kind, opts->namespace_, STR(""), NULL, &path, err) < 0)
        return -1;
    snprintf(count, sizeof count, "%u", limit);
    kube_path_query(&path, "labelSelector", opts->label_selector);
    kube_path_query(&path, "fieldSelector", opts->field_selector);
    kube_path_query(&path, "limit", limit ? str_of(count) : STR(""));
    kube_path_query(&path, "continue", token);
    struct kube_request request = { .method = "GET", .path = buf_str(&path) };
    if (kube_client_do(kube->client, &request, &answer, err) < 0 ||
        kube_decode_page(&kube->decoder, kind, answer.body, opts->skip_unreadable, out, err) < 0)
        return err_wrap(err, "list %s", kind->plural);
    if (out->continue_ && str_eqz(token, out->continue_))
        return err_set(err, ERR_INVALID, "list %s: the server gives the same page again",
                       kind->plural);
    return 0;
}

static int list_pages(struct kube *kube, const struct kind *kind, const struct list_options *opts,
                      struct object_list *out, struct err *err)
{
    AUTO_FREE char *token = str_dup(opts->continue_);
    int rc;

    do {
        rc = list_page(kube, kind, opts, PAGE_MAX, str_of(token), out, err);
        free(token);
        token = take(&out->continue_);
    } while (rc == 0 && token);
    return rc;
}

int kube_list(struct kube *kube, const struct kind *kind, const struct list_options *opts,
              struct object_list *out, struct err *err)
{
    struct object_list list = { 0 };
    int rc;

    if (opts->limit > 0) {
        rc = list_page(kube, kind, opts, opts->limit, opts->continue_, &list, err);
    } else {
        rc = list_pages(kube, kind, opts, &list, err);
        if (rc < 0 && err->kind == ERR_GONE && opts->continue_.len == 0) {
            object_list_done(&list);
            rc = list_page(kube, kind, opts, 0, STR(""), &list, err);
        }
    }
    if (rc < 0) {
        object_list_done(&list);
        return -1;
    }
    *out = list;
    return 0;
}
