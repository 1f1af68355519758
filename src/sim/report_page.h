/* sim/report_page.h - the parts of the page that report_html writes. */
#pragma once

#include "sim/report.h"

/* The look and the script of the page: report_page.css and report_page.js, turned into C when karve is
 * built. */
extern const char report_page_css[], report_page_js[];

/* Time is cut into columns; a plot has a value for each, which holds until the next begins. */
struct plot_frame {
    int64_t start_us, duration_ns;
    const int64_t *columns_ns;
    uint32_t column_count;
    const int64_t *marks_ns; /* a line through every plot for each */
    uint32_t mark_count;
};

enum plot_unit { UNIT_COUNT, UNIT_DOLLARS, UNIT_PERCENT };

struct plot_series {
    struct str name;
    const char *colour;   /* of the style sheet: "pending", "type0" */
    const double *values; /* per column; PLOT_GAP: none */
};
#define PLOT_GAP (-1.0)

struct plot {
    const char *id, *title;
    enum plot_unit unit;
    bool stacked; /* each on top of those before it; else lines over each other */
    uint32_t height_px;
    struct plot_series *series;
    uint32_t series_count;
};

/* A figure: title, key, axes, the plot itself. */
void plot_write(const struct plot_frame *frame, const struct plot *plot, struct buf *out);
/* The times below a plot, and the lines of the marks in it. */
void plot_write_times(const struct plot_frame *frame, struct buf *out);
void plot_write_marks(const struct plot_frame *frame, struct buf *out);

#define PLOT_WIDTH 10000 /* in units of the drawing, which is stretched to what room there is */
#define PLOT_HEIGHT 1000
uint32_t plot_x(const struct plot_frame *frame, int64_t at_ns); /* 0 to PLOT_WIDTH */

/* --- texts --- */

void html_text(struct str s, struct buf *out); /* escaped, in elements and attributes */
void value_text(double v, enum plot_unit unit, struct buf *out); /* "1,250", "$0.42", "98%" */
void clock_text(int64_t us, bool with_seconds, struct buf *out); /* "06:05:00" */
