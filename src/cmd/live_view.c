#include "cmd/live_view.h"

#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define ROWS_DEFAULT 24

static uint32_t rows_of_terminal(void)
{
    struct winsize size;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 4)
        return size.ws_row;
    return ROWS_DEFAULT;
}

/* A drawing that scrolls cannot be drawn over. */
static uint32_t cut_to_rows(struct buf *text, uint32_t rows)
{
    uint32_t lines = 0;
    for (size_t i = 0; i < text->len; i++) {
        if (text->p[i] == '\n' && ++lines == rows - 1) {
            buf_cut(text, i + 1);
            break;
        }
    }
    return lines;
}

void live_view_show(struct live_view *view, struct buf *text)
{
    uint32_t lines = cut_to_rows(text, rows_of_terminal());
    printf("\033[?25l\033[?7l"); /* no cursor, and long lines are cut */
    if (view->lines)
        printf("\033[%uA", view->lines);
    putchar('\r');
    for (const char *line = text->p, *end; line && (end = strchr(line, '\n')) != NULL;
         line = end + 1)
        printf("%.*s\033[K\n", (int)(end - line), line); /* over the old one: nothing flickers */
    printf("\033[J\033[?7h");
    fflush(stdout);
    view->lines = lines;
}

void live_view_done(struct live_view *view)
{
    if (!view->lines)
        return;
    printf("\r\033[K\033[?25h\033[0m"); /* without the ^C that the terminal shows */
    fflush(stdout);
    view->lines = 0;
}
