/* store/kube_told.c - a set of texts that is emptied when it is full. */
#include "store/kube_told.h"

#define TEXTS_MAX 1000
#define TEXT_BYTES_MAX 512 /* texts that differ only behind this are the same */

void told_init(struct told *told)
{
    *told = (struct told){ 0 };
    pthread_mutex_init(&told->lock, NULL);
}

void told_done(struct told *told)
{
    str_table_done(&told->texts);
    pthread_mutex_destroy(&told->lock);
}

bool told_first(struct told *told, struct str text)
{
    text = str_sub(text, 0, TEXT_BYTES_MAX);
    pthread_mutex_lock(&told->lock);
    bool first = !str_table_get(&told->texts, text);
    if (first && told->texts.live_count == TEXTS_MAX)
        str_table_clear(&told->texts);
    if (first)
        str_table_put(&told->texts, text, told);
    pthread_mutex_unlock(&told->lock);
    return first;
}
