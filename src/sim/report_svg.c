/* Plots as SVG. The drawing is stretched to the width of the page (preserveAspectRatio="none"), so
 * all that has a shape of its own, texts and badges, stands beside it in HTML at a place in percent.
 * Counts change at once and stay, so lines are steps, and a step that changes nothing is not
 * written. */
#include "codec/duration.h"
#include "sim/report_page.h"

#include <inttypes.h>
#include <stdio.h>

#define Y_TICKS_MAX 5
#define X_TICKS_MAX 9

/* --- texts --- */

void html_text(struct str s, struct buf *out)
{
    AUTO_BUF valid = { 0 };
    buf_add_utf8(&valid, s);
    for (size_t i = 0; i < valid.len; i++) {
        switch (valid.p[i]) {
        case '&':
            buf_addz(out, "&amp;");
            break;
        case '<':
            buf_addz(out, "&lt;");
            break;
        case '>':
            buf_addz(out, "&gt;");
            break;
        case '"':
            buf_addz(out, "&quot;");
            break;
        case '\'':
            buf_addz(out, "&#39;");
            break;
        default:
            buf_addc(out, valid.p[i]);
        }
    }
}

static void count_text(uint64_t n, struct buf *out)
{
    char digits[24];
    int len = snprintf(digits, sizeof digits, "%" PRIu64, n);
    for (int i = 0; i < len; i++) {
        if (i && (len - i) % 3 == 0)
            buf_addc(out, ',');
        buf_addc(out, digits[i]);
    }
}

void value_text(double v, enum plot_unit unit, struct buf *out)
{
    switch (unit) {
    case UNIT_COUNT:
        count_text((uint64_t)(v + 0.5), out);
        return;
    case UNIT_DOLLARS:
        buf_addc(out, '$');
        if (v < 100) {
            buf_addf(out, "%.2f", v);
        } else {
            count_text((uint64_t)(v + 0.5), out);
        }
        return;
    case UNIT_PERCENT:
        buf_addf(out, "%.0f%%", v);
        return;
    }
    KV_UNREACHABLE();
}

void clock_text(int64_t us, bool with_seconds, struct buf *out)
{
    struct civil c = civil_of(us / 1000000);
    buf_addf(out, "%02u:%02u", c.hour, c.minute);
    if (with_seconds)
        buf_addf(out, ":%02u", c.second);
}

/* --- where things are --- */

uint32_t plot_x(const struct plot_frame *frame, int64_t at_ns)
{
    if (at_ns <= 0 || frame->duration_ns <= 0)
        return 0;
    if (at_ns >= frame->duration_ns)
        return PLOT_WIDTH;
    return (uint32_t)((double)at_ns / (double)frame->duration_ns * PLOT_WIDTH + 0.5);
}

static uint32_t plot_y(double v, double top)
{
    double share = top > 0 ? v / top : 0;
    return PLOT_HEIGHT - (uint32_t)((share > 1 ? 1 : share) * PLOT_HEIGHT + 0.5);
}

/* 1, 2 or 5 times a power of ten, so that few of them reach the top. */
static double y_step(double max, enum plot_unit unit)
{
    static const double factors[] = { 1, 2, 5 };
    if (unit == UNIT_PERCENT)
        return 50;
    for (double power = unit == UNIT_DOLLARS ? 0.01 : 1; power < 1e15; power *= 10) {
        for (size_t i = 0; i < KV_COUNT_OF(factors); i++) {
            if (factors[i] * power * Y_TICKS_MAX >= max)
                return factors[i] * power;
        }
    }
    return max;
}

static int64_t x_step_s(int64_t duration_s)
{
    static const int64_t steps[] = { 1,   2,   5,    10,   15,   30,    60,    120,   300,
                                     600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400 };
    for (size_t i = 0; i < KV_COUNT_OF(steps); i++) {
        if (duration_s / steps[i] <= X_TICKS_MAX)
            return steps[i];
    }
    int64_t days = 2;
    while (duration_s / (days * 86400) > X_TICKS_MAX)
        days *= 2;
    return days * 86400;
}

/* --- paths --- */

/* Along the tops of a series, from column `from` up to `to`. */
static void add_steps(const struct plot_frame *frame, const double *values, double top,
                      uint32_t from, uint32_t to, struct buf *out)
{
    uint32_t y_before = plot_y(values[from], top);
    for (uint32_t i = from + 1; i < to; i++) {
        uint32_t y = plot_y(values[i], top);
        if (y == y_before)
            continue;
        buf_addf(out, "H%uV%u", plot_x(frame, frame->columns_ns[i]), y);
        y_before = y;
    }
    int64_t end_ns = to < frame->column_count ? frame->columns_ns[to] : frame->duration_ns;
    buf_addf(out, "H%u", plot_x(frame, end_ns));
}

/* A path per stretch without gaps. */
static void add_paths(const struct plot_frame *frame, const struct plot_series *s, double top,
                      bool filled, struct buf *out)
{
    for (uint32_t from = 0, to; from < frame->column_count; from = to) {
        bool gap = s->values[from] < 0;
        for (to = from + 1; to < frame->column_count && (s->values[to] < 0) == gap;)
            to++;
        if (gap)
            continue;
        uint32_t x = plot_x(frame, frame->columns_ns[from]), y = plot_y(s->values[from], top);
        buf_addf(out, "<path class=\"%s c-%s\" d=\"M%u ", filled ? "fill" : "line", s->colour, x);
        if (filled)
            buf_addf(out, "%uV%u", PLOT_HEIGHT, y);
        else
            buf_addf(out, "%u", y);
        add_steps(frame, s->values, top, from, to, out);
        buf_addz(out, filled ? "V1000Z\"/>" : "\"/>");
    }
}

/* --- the plot --- */

static double *stack_up(const struct plot_frame *frame, const struct plot *plot,
                        struct arena *arena)
{
    uint32_t columns = frame->column_count;
    double *tops = arena_array(arena, double, (size_t)columns * plot->series_count);
    for (uint32_t s = 0; s < plot->series_count; s++) {
        for (uint32_t i = 0; i < columns; i++) {
            double below = s ? tops[(size_t)(s - 1) * columns + i] : 0;
            double own = plot->series[s].values[i];
            tops[(size_t)s * columns + i] = below + (own > 0 ? own : 0);
        }
    }
    return tops;
}

static double largest(const double *values, size_t count)
{
    double max = 0;
    for (size_t i = 0; i < count; i++)
        max = values[i] > max ? values[i] : max;
    return max;
}

static void add_series(const struct plot_frame *frame, const struct plot *plot,
                       const double *maybe_tops, double top, struct buf *out)
{
    /* The highest of a stack first: those below are painted over it. */
    for (uint32_t i = plot->series_count; maybe_tops && i > 0; i--) {
        struct plot_series s = plot->series[i - 1];
        s.values = maybe_tops + (size_t)(i - 1) * frame->column_count;
        add_paths(frame, &s, top, true, out);
    }
    for (uint32_t i = 0; !maybe_tops && i < plot->series_count; i++) {
        add_paths(frame, &plot->series[i], top, true, out);
        add_paths(frame, &plot->series[i], top, false, out);
    }
}

/* As value_text, but dollars with cents only where the axis needs them. */
static void axis_text(double v, double step, enum plot_unit unit, struct buf *out)
{
    if (unit != UNIT_DOLLARS) {
        value_text(v, unit, out);
    } else if (step < 1) {
        buf_addf(out, "$%.2f", v);
    } else {
        buf_addc(out, '$');
        value_text(v, UNIT_COUNT, out);
    }
}

static void add_y_axis(const struct plot *plot, double step, double top, struct buf *out)
{
    for (double v = 0; v <= top * 1.0001; v += step) {
        buf_addf(out, "<span class=\"y\" style=\"bottom:%.2f%%\">", v / top * 100);
        axis_text(v, step, plot->unit, out);
        buf_addz(out, "</span>");
    }
}

static void add_grid(double step, double top, struct buf *out)
{
    for (double v = step; v <= top * 1.0001; v += step)
        buf_addf(out, "<path class=\"grid\" d=\"M0 %uH10000\"/>", plot_y(v, top));
}

static void add_key(const struct plot *plot, struct buf *out)
{
    if (plot->series_count == 1) /* the title says it */
        return;
    buf_addz(out, "<ul class=\"key\">");
    for (uint32_t i = 0; i < plot->series_count; i++) {
        buf_addf(out, "<li><i class=\"c-%s\"></i>", plot->series[i].colour);
        html_text(plot->series[i].name, out);
        buf_addz(out, "</li>");
    }
    buf_addz(out, "</ul>");
}

/* What the picture says, for those who do not see it. */
static void add_words(const struct plot_frame *frame, const struct plot *plot, struct buf *out)
{
    for (uint32_t s = 0; s < plot->series_count; s++) {
        const double *values = plot->series[s].values;
        uint32_t peak = 0;
        for (uint32_t i = 1; i < frame->column_count; i++) {
            if (values[i] > values[peak])
                peak = i;
        }
        if (s)
            buf_addz(out, "; ");
        html_text(plot->series[s].name, out);
        buf_addz(out, ": at most ");
        value_text(values[peak] > 0 ? values[peak] : 0, plot->unit, out);
        buf_addz(out, " at ");
        clock_text(frame->start_us + frame->columns_ns[peak] / 1000, false, out);
        double end = values[frame->column_count - 1];
        buf_addz(out, ", ");
        value_text(end > 0 ? end : 0, plot->unit, out);
        buf_addz(out, " at the end");
    }
}

void plot_write_marks(const struct plot_frame *frame, struct buf *out)
{
    if (!frame->mark_count)
        return;
    buf_addz(out, "<path class=\"mark\" d=\"");
    for (uint32_t i = 0; i < frame->mark_count; i++)
        buf_addf(out, "M%u 0V%u", plot_x(frame, frame->marks_ns[i]), PLOT_HEIGHT);
    buf_addz(out, "\"/>");
}

void plot_write_times(const struct plot_frame *frame, struct buf *out)
{
    static const char *const months[] = { "Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                          "Jul", "Aug", "Sep", "Oct", "Nov", "Dec" };
    int64_t step = x_step_s(frame->duration_ns / DURATION_SECOND);
    int64_t start_s = frame->start_us / 1000000;
    int64_t first = (start_s + step - 1) / step * step;
    uint32_t shown = 0;
    buf_addz(out, "<div class=\"times\" aria-hidden=\"true\">");
    for (int64_t s = first; s <= start_s + frame->duration_ns / DURATION_SECOND; s += step) {
        struct civil c = civil_of(s);
        uint32_t x = plot_x(frame, (s - start_s) * DURATION_SECOND);
        buf_addf(out, "<span%s style=\"left:%.2f%%\">", shown++ % 2 ? " class=\"odd\"" : "",
                 x / (PLOT_WIDTH / 100.0));
        if (s % 86400 == 0)
            buf_addf(out, "%s %u", months[c.month - 1], c.day);
        else
            clock_text(s * 1000000, step < 60, out);
        buf_addz(out, "</span>");
    }
    buf_addz(out, "</div>");
}

void plot_write(const struct plot_frame *frame, const struct plot *plot, struct buf *out)
{
    AUTO_ARENA arena = { 0 };
    const double *maybe_tops = plot->stacked ? stack_up(frame, plot, &arena) : NULL;
    double max = plot->unit == UNIT_PERCENT ? 100 : 0;
    for (uint32_t s = 0; s < plot->series_count; s++) {
        const double *values =
            maybe_tops ? maybe_tops + (size_t)s * frame->column_count : plot->series[s].values;
        double of_series = largest(values, frame->column_count);
        max = of_series > max ? of_series : max;
    }
    double step = y_step(max, plot->unit), top = step;
    while (top < max)
        top += step;
    buf_addf(out, "<figure class=\"plot\" id=\"plot-%s\"><figcaption><h2>%s</h2>", plot->id,
             plot->title);
    add_key(plot, out);
    buf_addf(out, "</figcaption><div class=\"area\" style=\"height:%upx\">", plot->height_px);
    add_y_axis(plot, step, top, out);
    buf_addf(out,
             "<svg viewBox=\"0 0 %u %u\" preserveAspectRatio=\"none\" role=\"img\" "
             "aria-label=\"%s. ",
             PLOT_WIDTH, PLOT_HEIGHT, plot->title);
    add_words(frame, plot, out);
    buf_addz(out, "\">");
    add_grid(step, top, out);
    add_series(frame, plot, maybe_tops, top, out);
    plot_write_marks(frame, out);
    buf_addz(
        out,
        "<path class=\"base\" d=\"M0 1000H10000\"/></svg><div class=\"cross\" hidden></div></div>");
    plot_write_times(frame, out);
    buf_addz(out, "</figure>\n");
}
