/* Prints a page of `karve plan -o html` for a planning that is made by hand: plan-html small|big|hostile.
 * tests/plan_html.sh opens it in a browser. */
#include "cmd/plan_html.h"
#include "plan_html_fixture.h"

int main(int argc, char **argv)
{
    const char *which = argc > 1 ? argv[1] : "small";
    struct plan_fixture_options options = {
        .launches = 9, .copies = 5, .workloads = 10, .existing = 2
    };
    if (strcmp(which, "big") == 0)
        options = (struct plan_fixture_options){ 700, 300, 120, 60, false };
    options.hostile = strcmp(which, "hostile") == 0;
    AUTO(plan_fixture) f = plan_fixture_new(options);
    AUTO_BUF page = { 0 };
    plan_html(plan_fixture_planning(f), &page);
    return fwrite(page.p, 1, page.len, stdout) == page.len ? 0 : 1;
}
