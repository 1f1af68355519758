/* resolv.conf of a pod: the cluster's name servers, the host's, or the pod's own, by its dnsPolicy;
 * then what its dnsConfig adds. The limits are those of resolvers: further servers and searches are
 * left out.
 */
#include "node/configs_inner.h"

#include "base/vec.h"

struct dns {
    struct arena *arena;
    VEC(struct str) servers, searches, options;
};

static bool has(const struct str *items, size_t count, struct str s)
{
    for (size_t i = 0; i < count; i++) {
        if (str_eq(items[i], s))
            return true;
    }
    return false;
}

static void add_server(struct dns *dns, struct str server)
{
    if (server.len > 0 && dns->servers.count < DNS_SERVERS_MAX &&
        !has(dns->servers.items, dns->servers.count, server))
        vec_push(&dns->servers, server);
}

static void add_search(struct dns *dns, struct str search)
{
    size_t chars = search.len;
    vec_each(&dns->searches, struct str, s)
        chars += s->len + 1;
    if (search.len > 0 && dns->searches.count < DNS_SEARCHES_MAX && chars <= DNS_SEARCH_CHARS_MAX &&
        !has(dns->searches.items, dns->searches.count, search))
        vec_push(&dns->searches, search);
}

/* "ndots:5", or "edns0"; one that has the same name is replaced. */
static void add_option(struct dns *dns, struct str name, struct str value)
{
    struct str option =
        value.len > 0 ? arena_strf(dns->arena, "%.*s:%.*s", STR_ARG(name), STR_ARG(value)) : name;
    vec_each(&dns->options, struct str, earlier) {
        struct str head, tail;
        str_cut(*earlier, ':', &head, &tail);
        if (str_eq(head, name)) {
            *earlier = option;
            return;
        }
    }
    if (name.len > 0)
        vec_push(&dns->options, option);
}

/* --- the host's --- */

static struct str next_word(struct str *line)
{
    *line = str_trim(*line);
    size_t n = 0;
    while (n < line->len && !char_is_space(line->p[n]))
        n++;
    struct str word = str_sub(*line, 0, n);
    *line = str_sub(*line, n, line->len);
    return word;
}

static void host_line(struct dns *dns, struct str line, bool searches_only)
{
    struct str word = next_word(&line);
    if (str_eq(word, STR("nameserver")) && !searches_only) {
        add_server(dns, next_word(&line));
    } else if (str_eq(word, STR("search"))) {
        while ((word = next_word(&line)).len > 0) {
            if (!str_eq(word, STR("."))) /* the root: no search at all */
                add_search(dns, word);
        }
    } else if (str_eq(word, STR("options")) && !searches_only) {
        while ((word = next_word(&line)).len > 0) {
            struct str name, value = STR_NONE;
            if (!str_cut(word, ':', &name, &value))
                value = STR_NONE;
            add_option(dns, name, value);
        }
    }
}

/* Of several search lines only the last counts. */
static void add_host(struct dns *dns, struct str resolv_conf, bool searches_only)
{
    struct str last_search = STR_NONE, line, rest = resolv_conf;
    bool more;
    do {
        more = str_cut(rest, '\n', &line, &rest);
        line = str_trim(line);
        struct str tail = line;
        if (str_eq(next_word(&tail), STR("search")))
            last_search = line;
        else
            host_line(dns, line, searches_only);
    } while (more);
    host_line(dns, last_search, searches_only);
}

/* --- by policy --- */

static void add_cluster(struct dns *dns, const struct node_pod *pod, const struct node_facts *facts,
                        struct str resolv_conf)
{
    for (uint32_t i = 0; i < facts->dns_servers.count; i++)
        add_server(dns, facts->dns_servers.items[i]);
    if (facts->dns_domain.len > 0) {
        add_search(dns, arena_strf(dns->arena, "%.*s.svc.%.*s", STR_ARG(pod->namespace_),
                                   STR_ARG(facts->dns_domain)));
        add_search(dns, arena_strf(dns->arena, "svc.%.*s", STR_ARG(facts->dns_domain)));
        add_search(dns, facts->dns_domain);
    }
    for (uint32_t i = 0; i < facts->dns_searches.count; i++)
        add_search(dns, facts->dns_searches.items[i]);
    add_host(dns, resolv_conf, true);
    add_option(dns, STR("ndots"), STR("5")); /* so that "db.shop" is searched for as well */
}

static char **strs_of(struct dns *dns, const struct str *items, size_t count)
{
    return message_strs(dns->arena, (struct str_list){ items, (uint32_t)count });
}

Cri__DNSConfig *pod_dns(struct arena *arena, const struct node_pod *pod,
                        const struct node_facts *facts, struct str resolv_conf)
{
    struct dns dns = { .arena = arena };
    bool cluster = str_eq(pod->dns_policy, STR("ClusterFirstWithHostNet")) ||
                   (!pod->host_network &&
                    (pod->dns_policy.len == 0 || str_eq(pod->dns_policy, STR("ClusterFirst"))));
    if (cluster && facts->dns_servers.count > 0)
        add_cluster(&dns, pod, facts, resolv_conf);
    else if (!str_eq(pod->dns_policy, STR("None")))
        add_host(&dns, resolv_conf, false);

    for (uint32_t i = 0; i < pod->dns_servers.count; i++)
        add_server(&dns, pod->dns_servers.items[i]);
    for (uint32_t i = 0; i < pod->dns_searches.count; i++)
        add_search(&dns, pod->dns_searches.items[i]);
    for (uint32_t i = 0; i < pod->dns_options.count; i++)
        add_option(&dns, pod->dns_options.items[i].name, pod->dns_options.items[i].value);

    Cri__DNSConfig *out = MESSAGE(arena, dnsconfig, DNSConfig);
    out->servers = strs_of(&dns, dns.servers.items, out->n_servers = dns.servers.count);
    out->searches = strs_of(&dns, dns.searches.items, out->n_searches = dns.searches.count);
    out->options = strs_of(&dns, dns.options.items, out->n_options = dns.options.count);
    vec_done(&dns.servers);
    vec_done(&dns.searches);
    vec_done(&dns.options);
    return out;
}
