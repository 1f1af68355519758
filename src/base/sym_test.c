#include "support/test.h"

#include "base/sym.h"

#include <stdio.h>

TEST(sym_ids_are_dense_from_one_in_order_of_interning)
{
    struct sym_table t = { 0 };
    EXPECT_EQ(sym_intern(&t, STR("zone")).i, 1);
    EXPECT_EQ(sym_intern(&t, STR("arch")).i, 2);
    EXPECT_EQ(sym_intern(&t, STR("zone")).i, 1);
    EXPECT_EQ(sym_intern(&t, STR("")).i, 3);
    EXPECT_EQ(sym_intern(&t, STR("os")).i, 4);
    EXPECT_EQ(sym_count(&t), 4);
    EXPECT_STR(sym_str(&t, (sym){ 2 }), "arch");
    EXPECT_STR(sym_str(&t, (sym){ 3 }), "");
    EXPECT_TRUE(sym_str(&t, SYM_NONE).p == NULL);
    sym_table_done(&t);
    EXPECT_EQ(sym_count(&t), 0);
}

TEST(sym_find_does_not_intern)
{
    struct sym_table t = { 0 };
    EXPECT_EQ(sym_find(&t, STR("zone")).i, 0);
    sym zone = sym_intern(&t, STR("zone"));
    EXPECT_TRUE(sym_eq(sym_find(&t, STR("zone")), zone));
    EXPECT_EQ(sym_find(&t, STR("zon")).i, 0);
    EXPECT_EQ(sym_count(&t), 1);
    sym_table_done(&t);
}

TEST(sym_texts_stay_where_they_are_while_the_table_grows)
{
    struct sym_table t = { 0 };
    char text[32];
    struct str first = sym_str(&t, sym_intern(&t, STR("first")));
    for (int i = 0; i < 20000; i++)
        sym_intern(&t, (struct str){ text, (size_t)snprintf(text, sizeof text, "label-%d", i) });
    EXPECT_TRUE(sym_str(&t, (sym){ 1 }).p == first.p);
    EXPECT_Z(first.p, "first");
    for (int i = 0; i < 20000; i++) {
        struct str s = { text, (size_t)snprintf(text, sizeof text, "label-%d", i) };
        EXPECT_EQ(sym_find(&t, s).i, i + 2);
        EXPECT_STR(sym_str(&t, (sym){ (uint32_t)i + 2 }), text);
    }
    sym_table_done(&t);
}

/* Chosen so that the unsalted hash of all of them is one. */
TEST(sym_ids_stay_dense_and_quick_to_find_for_keys_that_were_chosen_to_collide)
{
    enum { COUNT = 20000 }; /* a chain of so many takes seconds to build */
    struct {
        uint64_t zeroes, differs; /* the first makes the hash ignore the second */
    } key = { .zeroes = 0xa0761d6478bd642fULL };
    struct sym_table t = { 0 };
    struct str text = { (const char *)&key, sizeof key };
    uint64_t hash = kv_hash(text.p, text.len);
    for (key.differs = 0; key.differs < COUNT; key.differs++) {
        EXPECT_EQ(kv_hash(text.p, text.len), hash);
        EXPECT_EQ(sym_intern(&t, text).i, key.differs + 1);
    }
    EXPECT_TRUE(t.texts.salt != 0);
    for (key.differs = 0; key.differs < COUNT; key.differs++)
        EXPECT_EQ(sym_find(&t, text).i, key.differs + 1);
    EXPECT_EQ(sym_find(&t, text).i, 0);
    sym_table_done(&t);
}
