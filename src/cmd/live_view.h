/* cmd/live_view.h - a text that is drawn over itself, on a terminal. */
#pragma once

#include "base/str.h"

struct live_view {
    uint32_t lines; /* that the last drawing has */
    bool colour;
};
/* Whole lines; what does not fit the terminal is left out at the bottom. */
void live_view_show(struct live_view *view, struct buf *text);
void live_view_done(struct live_view *view); /* leaves the last drawing, and a terminal as it was */
