/* The annotation is read at each look; nothing is remembered of it. */
#include "control/do_not_disrupt.h"

#include "api/labels.h"
#include "codec/duration.h"
#include "control/control_impl.h"

/* What is said does not change while it is true, so it need not be said every two minutes. */
#define TOLD_QUIET_NS DURATION_HOUR

static struct str annotation(const struct pod *pod)
{
    return str_map_get(&pod->object.meta.annotations, STR(ANNOTATION_DO_NOT_DISRUPT));
}

struct do_not_disrupt do_not_disrupt_of(const struct pod *pod, int64_t now_us)
{
    struct str text = annotation(pod);
    struct do_not_disrupt mark = { .until_us = INT64_MAX };
    int64_t duration_ns;

    if (!text.p) {
        mark.state = DO_NOT_DISRUPT_ABSENT;
    } else if (str_eqz(text, "true")) {
        mark.state = DO_NOT_DISRUPT_ALWAYS;
    } else if (duration_parse(text, &duration_ns, NULL) < 0 || duration_ns <= 0) {
        mark.state = DO_NOT_DISRUPT_INVALID;
    } else {
        if (pod->start_us)
            mark.until_us = pod->start_us + (duration_ns - 1) / 1000 + 1;
        mark.state = now_us < mark.until_us ? DO_NOT_DISRUPT_FOR_A_WHILE : DO_NOT_DISRUPT_ELAPSED;
    }
    return mark;
}

static void say(struct control *c, const struct pod *pod, bool warning, const char *reason,
                const struct buf *message)
{
    recorder_publish(c->recorder, &(struct notice){ .about = &pod->object,
                                                    .warning = warning,
                                                    .reason = reason,
                                                    .message = buf_str(message),
                                                    .quiet_ns = TOLD_QUIET_NS });
}

void do_not_disrupt_tell(struct control *c, const struct pod *pod, struct do_not_disrupt mark)
{
    AUTO_BUF text = { 0 };
    char until[TIME_TEXT_MAX];

    switch (mark.state) {
    case DO_NOT_DISRUPT_INVALID:
        buf_addf(&text,
                 "The annotation " ANNOTATION_DO_NOT_DISRUPT
                 " is %s, which is neither \"true\" nor "
                 "a positive duration: it is ignored",
                 STR_SHOWN(annotation(pod)));
        say(c, pod, true, "InvalidDoNotDisruptAnnotation", &text);
        return;
    case DO_NOT_DISRUPT_FOR_A_WHILE:
        if (mark.until_us == INT64_MAX) {
            buf_addf(&text, "Not disrupted for %.*s after the pod has started",
                     STR_ARG(annotation(pod)));
        } else {
            time_format(mark.until_us, until);
            buf_addf(&text, "Not disrupted until %s", until);
        }
        say(c, pod, false, "DoNotDisruptUntil", &text);
        return;
    case DO_NOT_DISRUPT_ELAPSED:
        time_format(mark.until_us, until);
        buf_addf(&text, "The time in which the pod is not disrupted ended at %s", until);
        say(c, pod, false, "DoNotDisruptGracePeriodElapsed", &text);
        return;
    case DO_NOT_DISRUPT_ABSENT:
    case DO_NOT_DISRUPT_ALWAYS:
        return;
    }
    KV_UNREACHABLE();
}
