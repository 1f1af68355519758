/* `karve plan -o html`: one page that is complete in itself. The data goes in as JSON, and a script
 * draws it; the page may load nothing, from anywhere, and says so to the browser.
 */
#include "cmd/plan_html.h"

static const char before_style[] =
    "<!DOCTYPE html>\n"
    "<html lang=\"en\">\n"
    "<head>\n"
    "<meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
    "style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:\">\n"
    "<link rel=\"icon\" href=\"data:,\">\n"
    "<title>karve plan</title>\n"
    "<style>\n";

static const char before_data[] =
    "</style>\n"
    "</head>\n"
    "<body>\n"
    "<div class=\"page\">\n"
    "<main>\n"
    "<header>\n"
    "<div><h1 class=\"brand\">karve plan</h1><div class=\"price\" id=\"price\"></div>"
    "<p class=\"soft\" id=\"month\"></p></div>\n"
    "<div class=\"tiles\" id=\"tiles\"></div>\n"
    "</header>\n"
    "<noscript><p>This page draws itself with a script, and scripts are off. "
    "<code>karve plan -o table</code> shows the same as text.</p></noscript>\n"
    "<div class=\"bound\" id=\"bound\"></div>\n"
    "<ul class=\"notes\" id=\"notes\"></ul>\n"
    "<section id=\"troubles\"><h2>Unschedulable</h2>"
    "<ul class=\"trouble\" id=\"misses\"></ul></section>\n"
    "<section id=\"cost\"><h2>Cost per hour</h2><div class=\"split\" id=\"split\"></div></section>\n"
    "<section>\n"
    "<div class=\"tools\"><h2>Nodes, and the pods on them by cpu and memory</h2>"
    "<input id=\"search\" type=\"search\" placeholder=\"Find a pod, type, zone\" "
    "aria-label=\"Find a pod, type, zone\" autocomplete=\"off\"></div>\n"
    "<div class=\"tools\" id=\"legend\"></div>\n"
    "<div id=\"nodes\"></div>\n"
    "</section>\n"
    "<section id=\"skipping\"><h2>Not planned for</h2>"
    "<ul class=\"list\" id=\"skips\"></ul></section>\n"
    "</main>\n"
    "<aside id=\"panel\" aria-live=\"polite\"></aside>\n"
    "</div>\n"
    "<div id=\"tip\" role=\"tooltip\" hidden></div>\n"
    "<script type=\"application/json\" id=\"data\">";

static const char before_script[] = "</script>\n<script>\n";
static const char end[] = "</script>\n</body>\n</html>\n";

void plan_html(const struct planning *p, struct buf *out)
{
    buf_addz(out, before_style);
    buf_addz(out, plan_html_css);
    buf_addz(out, before_data);
    plan_html_data(p, out);
    buf_addz(out, before_script);
    buf_addz(out, plan_html_js);
    buf_addz(out, end);
}
