/* control/disruption_marks.h - what is remembered between looks at a claim: when its instance type
 * was last found among those that exist. A cache; control.c owns it.
 */
#pragma once

struct disruption_marks;
struct disruption_marks *disruption_marks_new(void);
void disruption_marks_free(struct disruption_marks *marks); /* NULL is fine */
