/* tests/node/tools.c - what test containers do: one small static program, in the image karve.test/tools:1.
 *
 *     tools hog MEGABYTES     take so much memory, a megabyte at a time, and hold it
 *     tools polite CODE       wait; SIGTERM ends it with that exit code at once
 *     tools stubborn          wait; SIGTERM does nothing
 *     tools serve PORT        HTTP: /status/CODE answers with it, /file/PATH 200 if there is such a file and
 *                             503 if not, /to/WHERE redirects to /WHERE, /slow never answers
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int exit_code;

static void leave(int signal)
{
    (void)signal;
    _exit(exit_code);
}

static int hog(int megabytes)
{
    for (int i = 0; i < megabytes; i++) {
        char *p = malloc(1 << 20);
        if (!p)
            return 1;
        memset(p, i + 1, 1 << 20);
    }
    for (;;)
        pause();
}

static void wait_for_ever(void (*on_term)(int))
{
    signal(SIGTERM, on_term);
    for (;;)
        pause();
}

static void answer(int fd, int code, const char *where)
{
    char text[512];
    int len =
        snprintf(text, sizeof text,
                 "HTTP/1.1 %d Test\r\n%s%s%sContent-Length: 3\r\nConnection: close\r\n\r\nok\n",
                 code, where ? "Location: /" : "", where ? where : "", where ? "\r\n" : "");
    if (write(fd, text, (size_t)len) < 0)
        perror("write");
}

/* One connection: the first line tells all. */
static void serve_one(int fd)
{
    char text[2048];
    size_t len = 0;
    while (len < sizeof text - 1) {
        ssize_t n = read(fd, text + len, sizeof text - 1 - len);
        if (n <= 0)
            return;
        len += (size_t)n;
        text[len] = '\0';
        if (strstr(text, "\r\n\r\n"))
            break;
    }
    char path[256];
    if (sscanf(text, "GET %255s", path) != 1)
        answer(fd, 400, NULL);
    else if (strncmp(path, "/status/", 8) == 0)
        answer(fd, atoi(path + 8), NULL);
    else if (strncmp(path, "/file/", 6) == 0)
        answer(fd, access(path + 5, F_OK) == 0 ? 200 : 503, NULL);
    else if (strncmp(path, "/to/", 4) == 0)
        answer(fd, 302, path + 4);
    else if (strcmp(path, "/slow") == 0)
        sleep(3600);
    else
        answer(fd, 200, NULL);
}

static int serve(int port)
{
    signal(SIGCHLD, SIG_IGN);
    exit_code = 0;
    signal(SIGTERM, leave);
    int listener = socket(AF_INET6, SOCK_STREAM, 0);
    struct sockaddr_in6 any6 = { .sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port) };
    struct sockaddr_in any = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
    int on = 1;
    if (listener >= 0)
        setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (listener < 0 || bind(listener, (struct sockaddr *)&any6, sizeof any6) < 0) {
        close(listener); /* no IPv6 here */
        listener = socket(AF_INET, SOCK_STREAM, 0);
        setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        if (listener < 0 || bind(listener, (struct sockaddr *)&any, sizeof any) < 0) {
            perror("bind");
            return 1;
        }
    }
    if (listen(listener, 64) < 0) {
        perror("listen");
        return 1;
    }
    for (;;) {
        int fd = accept(listener, NULL, NULL);
        if (fd < 0)
            continue;
        if (fork() == 0) {
            close(listener);
            serve_one(fd);
            _exit(0);
        }
        close(fd);
    }
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "polite";
    int number = argc > 2 ? atoi(argv[2]) : 0;
    if (strcmp(what, "hog") == 0)
        return hog(number);
    if (strcmp(what, "polite") == 0) {
        exit_code = number;
        wait_for_ever(leave);
    }
    if (strcmp(what, "stubborn") == 0)
        wait_for_ever(SIG_IGN);
    if (strcmp(what, "serve") == 0)
        return serve(number);
    fprintf(stderr, "tools: unknown task %s\n", what);
    return 2;
}
