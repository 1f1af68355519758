#include "base/footprint.h"

#include "support/test.h"

#include <stdio.h>
#include <time.h>

static long resident_file_pages(void)
{
    long size = 0, resident = 0, shared = -1;
    FILE *statm = fopen("/proc/self/statm", "re");
    EXPECT_TRUE(statm != NULL);
    EXPECT_EQ(fscanf(statm, "%ld %ld %ld", &size, &resident, &shared), 3);
    fclose(statm);
    return shared;
}

static int by_value(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

/* Code, constants, relocated tables and the heap, of the program and of the C library. */
static void use_everything(char *kept)
{
    static const char *const words[] = { "red", "green", "blue" }; /* pointers: relocated */
    int numbers[] = { 3, 1, 2 };
    char text[64];
    qsort(numbers, KV_COUNT_OF(numbers), sizeof *numbers, by_value);
    snprintf(text, sizeof text, "%s %d %.2f %s", words[1], numbers[2], 0.5, kept);
    EXPECT_Z(text, "green 3 0.50 kept");
    EXPECT_TRUE(time(NULL) > 0);
}

TEST(a_trimmed_process_is_smaller_and_works_as_before)
{
    footprint_begin();
    char *kept = str_dup(STR("kept"));
    use_everything(kept);
    long before = resident_file_pages();
    footprint_trim();
    EXPECT_TRUE(resident_file_pages() <= before);
    use_everything(kept);
    footprint_trim(); /* as often as one likes */
    use_everything(kept);
    free(kept);
}
