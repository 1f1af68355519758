/* Runs a fuzz target over saved inputs: every file of the folders and files named. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t replayed;

static int replay_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (!f) {
        perror(path);
        return -1;
    }
    size_t cap = 1 << 16, len = 0, n;
    uint8_t *bytes = malloc(cap);
    while (bytes && (n = fread(bytes + len, 1, cap - len, f)) > 0) {
        len += n;
        if (len == cap)
            bytes = realloc(bytes, cap *= 2);
    }
    fclose(f);
    if (!bytes)
        return -1;
    /* An exact-size copy, so that a read past the end is seen by the sanitizer. */
    uint8_t *exact = malloc(len ? len : 1);
    if (exact)
        memcpy(exact, bytes, len);
    free(bytes);
    LLVMFuzzerTestOneInput(exact, len);
    free(exact);
    replayed++;
    return 0;
}

static int replay_folder(const char *folder)
{
    DIR *d = opendir(folder);
    if (!d) {
        perror(folder);
        return -1;
    }
    int rc = 0;
    for (struct dirent *e; rc == 0 && (e = readdir(d)) != NULL;) {
        char path[4096];
        if (e->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        rc = replay_file(path);
    }
    closedir(d);
    return rc;
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (replay_folder(argv[i]) < 0)
            return 1;
    }
    printf("%zu inputs\n", replayed);
    return replayed > 0 ? 0 : 1;
}
