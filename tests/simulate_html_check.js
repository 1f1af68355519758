/* Runs inside a page of `karve simulate --report`, after its script, and writes what it finds as TAP into #result. */
(() => {
'use strict';

const data = JSON.parse(document.getElementById('data').textContent);
const all = (selector, root) => [...(root || document).querySelectorAll(selector)];
const found = [];
const check = (name, good, detail) => found.push([name, !!good, detail]);

/* --- as it was drawn --- */

const boxOf = (e) => e.getBoundingClientRect();
check('nothing_is_wider_than_the_page', document.documentElement.scrollWidth <= innerWidth, `${document.documentElement.scrollWidth} of ${innerWidth}`);
check('every_plot_has_its_data', all('.area').every((a) => data.plots.some((p) => a.parentElement.id === 'plot-' + p.id)));
check('data_has_a_value_per_column', data.plots.every((p) => p.series.every((s) => s.values.length === data.frames[p.frame].length)));
check('plots_are_aligned', new Set(all('.area, .bands, .times').map((a) => `${Math.round(boxOf(a).left)} ${Math.round(boxOf(a).right)}`)).size <= 1);
check('pictures_have_words', all('svg').every((s) => s.getAttribute('role') === 'img' && s.getAttribute('aria-label')));
check('shapes_stay_inside', all('.area path.line, .area path.fill').every((p) => {
    const box = p.getBBox();
    return box.x >= 0 && box.x + box.width <= 10000 && box.y >= 0 && box.y + box.height <= 1000;
}));
const overlap = (a, b) => a.left < b.right - 0.5 && b.left < a.right - 0.5 && a.top < b.bottom - 0.5 && b.top < a.bottom - 0.5;
const clash = (elements) => {
    const boxes = elements.map(boxOf).filter((b) => b.width > 0);
    return boxes.some((a, i) => boxes.slice(i + 1).some((b) => overlap(a, b)));
};
check('badges_do_not_cover_each_other', !clash(all('.badges a')));
check('labels_do_not_cover_each_other', all('.area').every((a) => !clash(all('.y', a))) && all('.times').every((t) => !clash(all('span', t))));
check('labels_are_on_the_page', all('.y').every((y) => boxOf(y).left >= 0) && all('.badges a').every((a) => boxOf(a).right <= innerWidth));
check('the_page_stays_small', all('*').length < 20000, `${all('*').length} elements`);
const actions = all('.legend li').length;
check('badges_lead_to_the_list', all('.badges a').every((a) => document.querySelector(a.getAttribute('href'))));
check('marks_go_through_every_plot', all('.area svg, .band svg').every((s) => all('.mark', s).reduce((n, m) => n + m.getAttribute('d').split('M').length - 1, 0) === actions));

/* --- the pointer --- */

const tip = document.getElementById('tip');
for (const area of all('.area')) {
    const plot = data.plots.find((p) => area.parentElement.id === 'plot-' + p.id);
    if (!plot || !plot.series.length) continue;
    const box = boxOf(area), x = box.right - box.width / 1000;
    const ms = (x - box.left) / box.width * data.durationMs;
    const last = data.frames[plot.frame].filter((start) => start <= ms).length - 1;
    area.dispatchEvent(new PointerEvent('pointermove', { bubbles: true, clientX: x, clientY: box.top + 3 }));
    const rows = all('td:last-child', tip).map((td) => td.textContent);
    const shown = plot.series.filter((s) => plot.series.length <= 4 || s.values[last]);
    check(`${plot.id}_tells_its_values`, !tip.hidden && rows.length === shown.length &&
        shown.every((s, i) => s.values[last] < 0 ? rows[i] === '-' : Math.abs(Number(rows[i].replace(/[$,%]/g, '')) - s.values[last]) <= 0.51), rows.join(' '));
    check(`${plot.id}_tip_is_on_the_screen`, boxOf(tip).right <= innerWidth && boxOf(tip).left >= 0);
    check(`${plot.id}_has_a_line_through_all`, all('.cross').every((c) => !c.hidden));
    area.dispatchEvent(new PointerEvent('pointerleave'));
}
check('leaving_hides_it', tip.hidden && all('.cross').every((c) => c.hidden));

check('nothing_goes_wrong', window.wrongs.length === 0, window.wrongs.join('; '));
const result = document.createElement('pre');
result.id = 'result';
result.textContent = found.flatMap(([name, good, detail]) =>
    [...(good || !detail ? [] : [`TAP # ${detail}`]), `TAP ${good ? 'ok' : 'not ok'} - ${name}`]).join('\n');
document.body.append(result);
})();
