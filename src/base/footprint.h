/* base/footprint.h - keep a process that runs for months small. */
#pragma once

/* Before the first thread: all threads share one heap. A heap for each, as the C library would have it, is
 * worth its memory only where threads allocate all the time. */
void footprint_begin(void);

/* Once started: give back what only the start took, which is free memory, and the pages of the program and
 * its libraries that were read to load and link them. What is used again comes back from the
 * system's cache, a page fault each. */
void footprint_trim(void);
