/* Runs inside a page of `karve plan -o html`, after it has drawn itself, and writes what it finds as TAP into
 * #result. It reads the data for itself and looks at the page as a reader does: elements, clicks, texts. */
(() => {
'use strict';

const data = JSON.parse(document.getElementById('data').textContent);
const all = (selector, root) => [...(root || document).querySelectorAll(selector)];
const text = (selector) => all(selector).map((e) => e.textContent).join(' ');
const found = [];
const check = (name, good, detail) => found.push([name, !!good, detail]);
const FOLD = 48;

/* --- as it was drawn --- */

check('the_price_is_the_sum_of_the_launches', Math.abs(data.totals.price - data.launches.reduce((t, l) => t + l.price, 0)) < 1e-6);
check('totals_are_shown', text('#tiles').includes(data.totals.launches.toLocaleString('en')), text('#tiles'));

const keys = data.launches.map((l) => JSON.stringify([l.pool, l.type, l.zone, l.capacityType, l.price, l.types, l.wants,
    l.pods.map(([kind, names]) => [data.kinds[kind].filter((_, i) => i !== 1), names.length])]));
const wanted = new Map();
data.launches.forEach((l, i) => wanted.set(l.pool, (wanted.get(l.pool) || new Set()).add(keys[i])));
let boxes = Math.min(FOLD, data.existing.length);
for (const distinct of wanted.values()) boxes += Math.min(FOLD, distinct.size);
check('every_launch_has_a_box_and_equal_ones_share_it', all('.box').length === boxes, `${all('.box').length} boxes, expected ${boxes}`);
const shown = all('.box').filter((b) => !b.box.name).reduce((n, b) => n + Number((b.querySelector('h4 b') || { textContent: '\u00d71' }).textContent.slice(1)), 0);
check('boxes_count_what_they_stand_for', all('.more', document.getElementById('nodes')).length > 0 ? shown <= data.launches.length : shown === data.launches.length, `${shown} launches`);
check('the_page_stays_small', all('*').length < 8000, `${all('*').length} elements`);
check('cost_is_split_four_ways', data.totals.price === 0 || all('.stack').length === 4);
const podsIn = (box) => box.pods.reduce((n, [, names]) => n + names.length, 0);
check('lanes_hold_every_pod', all('.box').every((b) => all('.track', b).every((track) =>
    all('i[data-kind]', track).reduce((n, i) => n + Number(i.style.getPropertyValue('--n')), 0) <= podsIn(b.box))));
check('lanes_do_not_overflow', all('.track').every((t) => t.scrollWidth <= t.clientWidth + 1));
check('misses_are_listed', all('#misses li').length === Math.min(12, data.misses.length));
check('skips_are_listed', all('#skips li').length === Math.min(12, data.skips.length));
check('nothing_is_wider_than_the_page', document.documentElement.scrollWidth <= innerWidth, `${document.documentElement.scrollWidth} of ${innerWidth}`);

/* --- hovering and clicking --- */

const segment = all('i[data-kind]')[0];
if (segment) {
    const box = segment.closest('.box').box, kind = Number(segment.dataset.kind);
    const name = box.pods.find(([k]) => k === kind)[1][0], at = segment.getBoundingClientRect();
    segment.dispatchEvent(new MouseEvent('mousemove', { bubbles: true, clientX: at.left, clientY: at.top + 1 }));
    check('hovering_names_the_pod', !document.getElementById('tip').hidden && text('#tip').includes(name), text('#tip'));
    segment.click();
    const why = data.explanations[data.kinds[kind][1]];
    check('clicking_a_pod_explains_it', text('#panel h2').includes(data.workloads[data.kinds[kind][0]][1]) &&
        why && all('#panel .verdict').length === why.pools.length, text('#panel'));
    check('its_pool_is_the_chosen_one', !box.launches || text('#panel .verdict.chosen h4').includes(data.pools[box.pool]), text('#panel .verdict.chosen'));
    check('its_like_stands_out', all('i.lit').length > 0 && all('i.lit').every((i) => data.kinds[i.dataset.kind][0] === data.kinds[kind][0]));
    segment.closest('.box').click();
    check('clicking_a_node_shows_what_it_is', text('#panel h2') === (box.name || box.type) && text('#panel').includes(box.zone), text('#panel'));
    const names = all('#panel details').find((d) => d.textContent === 'Names');
    names.open = true;
    names.dispatchEvent(new Event('toggle'));
    check('its_pods_are_named', all('code', names).some((c) => c.textContent === name), names.textContent);

    const search = document.getElementById('search');
    search.value = name.toUpperCase();
    search.dispatchEvent(new Event('input'));
    check('a_pod_is_found_by_name', all('.box').length >= 1 && all('.box').length <= boxes &&
        all('.box').every((b) => (b.box.launches || [b.box]).some((l) => l.pods.some(([, n]) => n.some((x) => x.toLowerCase().includes(name.toLowerCase()))))));
    search.value = '';
    search.dispatchEvent(new Event('input'));

    const chip = all('#legend .chip')[0];
    chip.click();
    check('a_workload_filters_the_nodes', all('.box').length > 0 && all('.box').every((b) => all('i.lit', b).length > 0 || b.box.pods.length > 0));
    document.dispatchEvent(new KeyboardEvent('keydown', { key: 'Escape', bubbles: true }));
    check('escape_shows_everything_again', all('.box').length === boxes && all('i.lit').length === 0);
}
if (data.misses.length) {
    all('#misses button')[0].click();
    const kind = data.misses[0].pods[0][0];
    const why = data.explanations[data.kinds[kind][1]];
    check('clicking_a_miss_explains_it', text('#panel').includes(data.misses[0].line), text('#panel'));
    check('it_tells_what_would_help', why.pools.every((p) => p[1] || (text('#panel').includes(p[3]) && text('#panel').includes(p[5]))), text('#panel'));
}
if (all('.more', document.getElementById('nodes')).length) {
    const before = all('.box').length;
    all('.more', document.getElementById('nodes'))[0].click();
    check('more_nodes_unfold', all('.box').length > before);
}

/* --- what it must not do --- */

check('no_text_is_obeyed', window.hacked === undefined && all('body img, body script').length === 3);
check('nothing_is_loaded', performance.getEntriesByType('resource').length === 0, performance.getEntriesByType('resource').map((e) => e.name).join(' '));
check('nothing_goes_wrong', window.wrongs.length === 0, window.wrongs.join('; '));

document.body.append(Object.assign(document.createElement('pre'), { id: 'result', textContent: found.map(([name, good, detail]) =>
    `TAP ${good ? 'ok' : 'not ok'} - ${name}` + (good || !detail ? '' : `\nTAP # ${String(detail).slice(0, 600).replace(/\s+/g, ' ')}`)).join('\n') }));
})();
