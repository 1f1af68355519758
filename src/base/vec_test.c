#include "support/test.h"

#include "base/vec.h"

TEST(vec_grows_and_keeps_what_was_pushed)
{
    VEC(int) v = { 0 };
    vec_each(&v, int, it)
        fail_msg("nothing to visit");
    for (int i = 0; i < 1000; i++)
        vec_push(&v, i * 2);
    EXPECT_EQ(v.count, 1000);
    int n = 0;
    vec_each(&v, int, it)
        EXPECT_EQ(*it, n++ * 2);
    EXPECT_EQ(n, 1000);
    EXPECT_EQ(vec_last(&v), 1998);
    EXPECT_EQ(vec_pop(&v), 1998);
    EXPECT_EQ(v.count, 999);
    vec_clear(&v);
    EXPECT_EQ(v.count, 0);
    vec_each(&v, int, it)
        fail_msg("nothing to visit");
    vec_done(&v);
    EXPECT_TRUE(v.items == NULL);
}

TEST(vec_reserve_makes_room_once)
{
    VEC(char) v = { 0 };
    vec_reserve(&v, 100);
    EXPECT_TRUE(v.cap >= 100);
    char *items = v.items;
    for (int i = 0; i < 100; i++)
        vec_push(&v, 'x');
    EXPECT_TRUE(v.items == items);
    vec_done(&v);
}

TEST(vec_can_push_a_copy_of_its_own_item)
{
    VEC(int) v = { 0 };
    vec_push(&v, 7);
    for (int i = 0; i < 100; i++)
        vec_push(&v, v.items[0]);
    vec_each(&v, int, it)
        EXPECT_EQ(*it, 7);
    vec_done(&v);
}

struct point {
    int x, y;
};

TEST(vec_holds_structs_and_pointers)
{
    VEC(struct point) points = { 0 };
    vec_push(&points, (struct point){ 1, 2 });
    vec_push(&points, (struct point){ .y = 4, .x = 3 });
    EXPECT_EQ(points.items[1].x, 3);
    vec_done(&points);

    VEC(const char *) names = { 0 };
    vec_push(&names, "a");
    vec_push(&names, "b");
    AUTO_BUF joined = { 0 };
    vec_each(&names, const char *, it)
        buf_addz(&joined, *it);
    EXPECT_STR(buf_str(&joined), "ab");
    vec_done(&names);
}
