/* Linking a dozen libraries touches nearly all of their symbol tables once, and the kernel maps
 * 64 KiB around each page that is touched: megabytes that count as resident for ever after, since
 * nothing else wants them. Segments that cannot be written are copies of the file, so that dropping
 * their pages loses nothing. Pages that were relocated are in segments that can be written. */
#include "base/footprint.h"

#include "base/kv.h"

#include <link.h>
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

void footprint_begin(void)
{
    mallopt(M_ARENA_MAX, 1);
}

static int drop_pages(struct dl_phdr_info *object, size_t size KV_UNUSED, void *page_bytes)
{
    const uintptr_t page = *(const uintptr_t *)page_bytes;
    for (size_t i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
        if (segment->p_type != PT_LOAD || segment->p_flags & PF_W)
            continue;
        /* Whole pages: what is at the edges may be shared with a segment that is written. */
        uintptr_t from = (object->dlpi_addr + segment->p_vaddr + page - 1) / page * page;
        uintptr_t to = (object->dlpi_addr + segment->p_vaddr + segment->p_filesz) / page * page;
        if (from < to)
            madvise((void *)from, to - from, MADV_DONTNEED); /* if it cannot, nothing is lost */
    }
    return 0;
}

void footprint_trim(void)
{
    uintptr_t page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
    malloc_trim(0);
    dl_iterate_phdr(drop_pages, &page_bytes);
}
