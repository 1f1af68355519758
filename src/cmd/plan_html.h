/* cmd/plan_html.h - the parts of `karve plan -o html`. */
#pragma once

#include "cmd/plan_inner.h"

/* The look and the behaviour of the page: plan_html.css and plan_html.js, turned into C when karve is
 * built. */
extern const char plan_html_css[], plan_html_js[];

/* All that the page shows, as JSON; what its members mean is said in plan_html.js. "<" is escaped, so
 * that no text in it can end the element it stands in. */
void plan_html_data(const struct planning *p, struct buf *out);
