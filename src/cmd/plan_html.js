/* The page of `karve plan -o html`. It draws what plan_html_data.c wrote into #data and asks nobody
 * for anything. Texts reach the page as text nodes only, so whatever they hold is shown and never
 * obeyed.
 *
 * kinds        pods that are alike: [workload, explanation or -1, cpu, memory, other requests]
 * pods         of a launch, a node, a miss: [[kind, [name, ...]], ...]
 * cpu, mem     [requested, allocatable] in millicores and bytes
 * own          what daemons, or pods that are on a node already, take of it: [cpu, memory]
 * types, wants which of typeLists and wantLists the NodeClaim has
 * explanations per NodePool: [pool, possible, reason, detail, nearest, edit, steps], and a step is
 *              [what, instance types before, after]
 *
 * Launches that are equal but for the names of their pods are one box. A box has a lane for cpu and one
 * for memory, and a lane has one element for each kind of pods, ruled into as many parts as there are
 * pods: thousands of pods are a few hundred elements.
 */
(() => {
'use strict';

const data = JSON.parse(document.getElementById('data').textContent);
const BOXES_SHOWN = 48; /* of a pool, until more are asked for */
const NAMES_SHOWN = 200;
const CHIPS_SHOWN = 14;
const LINES_SHOWN = 12; /* of pods that went nowhere */
const $ = (id) => document.getElementById(id);

/* --- small tools --- */

function h(tag, attrs, ...children) {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attrs || {})) {
        if (name === 'click') node.addEventListener('click', value);
        else if (name === 'style') node.style.cssText += value;
        else if (name.startsWith('--')) node.style.setProperty(name, value);
        else if (value === true) node.setAttribute(name, '');
        else if (value !== false && value != null) node.setAttribute(name, value);
    }
    node.append(...children.flat(Infinity).filter((c) => c != null && c !== false));
    return node;
}

const sum = (list, of) => list.reduce((total, item) => total + of(item), 0);
const plural = (n, one, many) => `${n.toLocaleString('en')} ${n === 1 ? one : many || one + 's'}`;

function dollars(v) {
    if (v === 0) return '$0';
    const digits = v >= 1000 ? 0 : v >= 1 ? 2 : v >= 0.1 ? 3 : 4;
    return '$' + v.toLocaleString('en', { minimumFractionDigits: Math.min(digits, 2), maximumFractionDigits: digits });
}
const monthly = (v) => dollars(Math.round(v * data.hoursPerMonth * 100) / 100);
const cpuText = (milli) => (milli % 1000 === 0 ? String(milli / 1000) : milli < 1000 ? milli + 'm' : String(milli / 1000));
function memoryText(bytes) {
    const units = ['', 'Ki', 'Mi', 'Gi', 'Ti', 'Pi'];
    let unit = 0;
    while (bytes >= 1024 && unit < units.length - 1) { bytes /= 1024; unit++; }
    return (bytes >= 100 ? Math.round(bytes) : Math.round(bytes * 10) / 10) + units[unit];
}
const percent = (part, whole) => (whole > 0 ? Math.round((100 * part) / whole) + '%' : '');
const family = (type) => type.split('.')[0];
const podCount = (pods) => sum(pods, ([, names]) => names.length);
const poolName = (ix) => (ix < 0 ? 'no NodePool' : data.pools[ix]);

/* --- what is derived from the data once --- */

/* What can be seen of a kind: all but its explanation. */
const lookOf = (kind) => data.kinds[kind].filter((_, i) => i !== 1);

/* Equal launches together, in the order in which the first of each came. */
function alike(launches) {
    const groups = new Map();
    for (const launch of launches) {
        const key = JSON.stringify([launch.pool, launch.type, launch.zone, launch.capacityType, launch.price,
            launch.types, launch.wants, launch.pods.map(([kind, names]) => [lookOf(kind), names.length])]);
        if (!groups.has(key)) groups.set(key, { ...launch, launches: [] });
        groups.get(key).launches.push(launch);
    }
    return [...groups.values()];
}

const boxes = alike(data.launches);
const workloads = data.workloads.map(([kind, name], ix) => ({ ix, kind, name, pods: 0, kinds: new Map() }));

/* Where pods of each kind went: to `boxes`, to nodes that are there, or nowhere. */
const places = data.kinds.map(() => ({ launched: 0, existing: 0, missed: 0, boxes: [], nodes: [], misses: [] }));
function notePods(pods, field, list, where) {
    for (const [kind, names] of pods) {
        const place = places[kind], workload = workloads[data.kinds[kind][0]];
        place[field] += names.length;
        if (place[list][place[list].length - 1] !== where) place[list].push(where);
        workload.pods += names.length;
        workload.kinds.set(kind, (workload.kinds.get(kind) || 0) + names.length);
    }
}
boxes.forEach((box) => box.launches.forEach((launch) => notePods(launch.pods, 'launched', 'boxes', box)));
data.existing.forEach((node) => notePods(node.pods, 'existing', 'nodes', node));
data.misses.forEach((miss) => notePods(miss.pods, 'missed', 'misses', miss));

/* The largest workloads get the colours that differ most: hues a golden angle apart. */
const bySize = workloads.filter((w) => w.pods > 0).sort((a, b) => b.pods - a.pods || a.ix - b.ix);
bySize.forEach((w, i) => {
    const lightness = ['var(--seg-l)', 'calc(var(--seg-l) + 0.1)', 'calc(var(--seg-l) - 0.12)'][Math.floor(i / 9) % 3];
    w.color = `oklch(${lightness} var(--seg-c) ${((i * 137.508) + 165) % 360})`;
});
const colorOf = (kind) => workloads[data.kinds[kind][0]].color;

/* Names without their namespace, where that leaves no doubt. */
const shortNames = new Map();
for (const w of bySize) {
    const name = w.name.slice(w.name.indexOf('/') + 1);
    shortNames.set(name, (shortNames.get(name) || 0) + 1);
}
function shortName(w) {
    const name = w.name.slice(w.name.indexOf('/') + 1);
    return shortNames.get(name) > 1 ? w.name : name;
}
function requestsText(kind) {
    const [, , cpu, memory, others] = data.kinds[kind];
    return [cpu && cpuText(cpu) + ' cpu', memory && memoryText(memory) + ' memory',
        ...others.map(([name, amount]) => `${amount} ${name}`)].filter(Boolean).join(', ') || 'nothing requested';
}

/* --- totals --- */

function tile(number, words, alarm) {
    return h('div', { class: alarm ? 'tile alarm' : 'tile' }, h('b', null, number.toLocaleString('en')), h('span', null, words));
}

function drawTotals() {
    const t = data.totals;
    const missed = sum(data.misses, (m) => podCount(m.pods));
    $('price').append(dollars(t.price), h('small', null, 'an hour'));
    $('month').append(t.launches ? `${monthly(t.price)} a month at list prices` : 'Nothing has to be launched.');
    $('tiles').append(...[
        tile(t.launches, t.launches === 1 ? 'node to launch' : 'nodes to launch'),
        tile(t.pods, 'pods placed'),
        data.existing.length && tile(sum(data.existing, (n) => podCount(n.pods)), 'on nodes there'),
        tile(missed, 'unschedulable', missed > 0),
    ].filter(Boolean));
    if (t.price > 0) {
        const over = t.bound > 0 ? (100 * (t.price - t.bound)) / t.bound : 0;
        $('bound').append(
            h('div', { class: 'rail' }, h('i', { style: `width: ${(100 * t.bound) / t.price}%` }), h('i')),
            h('p', null, t.bound > 0
                ? `No plan for these pods costs less than ${dollars(t.bound)} an hour; this one is ${over < 0.05 ? 'at that bound' : over.toFixed(1) + '% above it'}.`
                : 'No lower bound is known for these pods.'));
    }
    $('notes').append(...data.notes.map((note) => h('li', null, note)));
    if (data.check)
        $('notes').append(h('li', { class: data.check.length ? 'bad' : 'good' }, data.check.length
            ? `Checked: ${plural(data.check.length, 'finding')}. ${data.check[0]}` : 'Checked: every placement and every limit holds.'));
}

/* --- cost split --- */

/* `only`: nodes without pods of that workload are left out; `lit`: its pods stand out. */
const state = { filter: null, text: '', only: null, lit: null, box: null, shown: new Map(), drawn: false };
const dimensions = [
    ['NodePool', (box) => poolName(box.pool)],
    ['Capacity', (box) => box.capacityType],
    ['Zone', (box) => box.zone],
    ['Family', (box) => family(box.type)],
];
const HUES = [165, 255, 75, 310, 30, 205, 120, 350];
const PARTS_MAX = 12;

function costParts(of) {
    const totals = new Map();
    for (const box of boxes) totals.set(of(box), (totals.get(of(box)) || 0) + box.price * box.launches.length);
    const parts = [...totals].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
    const rest = parts.splice(PARTS_MAX);
    if (rest.length) parts.push([`${rest.length} others`, sum(rest, ([, cost]) => cost), rest.map(([value]) => value)]);
    return parts;
}

function drawCost() {
    if (!data.totals.price) { $('cost').hidden = true; return; }
    for (const [title, of] of dimensions) {
        const stack = h('div', { class: 'stack' });
        costParts(of).forEach(([value, cost, several], i) => {
            const share = cost / data.totals.price;
            const values = several || [value];
            const part = h('button', {
                '--h': HUES[i % HUES.length], type: 'button',
                class: (share < 0.045 ? 'thin' : '') + (several ? ' rest' : ''), style: `flex-grow: ${share}`,
                'data-tip': `${value || 'none'}\n${dollars(cost)} an hour, ${percent(cost, data.totals.price)}`,
                click: () => setFilter({ title, of, values, part }),
            }, h('b', null, value || 'none'), ` ${dollars(cost)}`);
            stack.append(part);
        });
        $('split').append(h('span', null, title), stack);
    }
}

function setFilter(filter) {
    const same = state.filter && filter && state.filter.part === filter.part;
    if (state.filter) state.filter.part.classList.remove('on');
    state.filter = same ? null : filter;
    if (state.filter) filter.part.classList.add('on');
    drawNodes();
}

/* --- troubles --- */

/* The first of them, and a button for the others. */
function fold(list, items, draw) {
    const rest = items.slice(LINES_SHOWN);
    list.append(...items.slice(0, LINES_SHOWN).map(draw));
    if (!rest.length) return;
    const more = h('button', { class: 'more', type: 'button', click: () => {
        more.remove();
        list.append(...rest.map(draw));
    } }, `Show ${plural(rest.length, 'other')}`);
    list.after(more);
}

function missLine(miss) {
    const [kind, names] = miss.pods[0], count = podCount(miss.pods);
    return h('li', null, h('button', { type: 'button', click: () => showKind(kind) },
        h('b', null, count === 1 ? names[0] : `${workloads[data.kinds[kind][0]].name} \u00d7 ${count.toLocaleString('en')}`), h('span', null, miss.line)));
}

function skipLine(skip) {
    const count = skip.pods.length;
    return h('li', null, count === 1 ? skip.pods[0] : `${workloads[skip.workload].name} \u00d7 ${count.toLocaleString('en')}`, h('em', null, skip.why));
}

function drawTroubles() {
    $('troubles').hidden = data.misses.length === 0;
    $('skipping').hidden = data.skips.length === 0;
    fold($('misses'), data.misses, missLine);
    fold($('skips'), data.skips, skipLine);
}

/* --- nodes --- */

function track(use, box, of) {
    const [requested, allocatable] = use;
    const whole = Math.max(requested, allocatable, 1);
    const lane = h('div', { class: 'track' });
    const segment = (amount, attrs) => amount > 0 && lane.append(h('i', { ...attrs, style: `width: ${(100 * amount) / whole}%` }));
    segment(of === 2 ? box.own[0] : box.own[1], { class: box.name ? 'there' : 'own' });
    for (const [kind, names] of box.pods) {
        const amount = data.kinds[kind][of] * names.length;
        const pixels = (box.width * amount) / whole / names.length;
        segment(amount, { 'data-kind': kind, '--c': colorOf(kind), '--n': names.length, class: pixels < 4 ? 'fine' : '' });
    }
    return lane;
}

/* The more cores the wider, and the more memory for each the higher the memory's lane. */
function drawBox(box) {
    const cores = box.cpu[1] / 1000, perCore = box.mem[1] / 2 ** 30 / Math.max(cores, 0.1);
    const count = box.launches ? box.launches.length : 1;
    box.width = Math.min(680, 132 + 38 * Math.sqrt(cores));
    const lane = (name, use, of, height) => h('div', { class: 'lane', '--lane': height + 'px' },
        h('span', null, name), track(use, box, of), h('span', null, percent(use[0], use[1])));
    const element = h('div', {
        class: count > 1 ? 'box many' : 'box', role: 'button', tabindex: '0', '--w': box.width + 'px',
        click: (event) => {
            const kind = event.target.dataset && event.target.dataset.kind;
            if (kind !== undefined) showKind(Number(kind));
            else showBox(box);
        },
    },
    h('h4', null, h('span', null, box.name || box.type), count > 1 && h('b', null, '\u00d7' + count)),
    h('p', null, box.name ? [box.type, box.zone].filter(Boolean).join(' \u00b7 ') : `${box.zone} \u00b7 ${box.capacityType}`),
    h('p', null, box.name ? `${plural(podCount(box.pods), 'pod')} more` : `${dollars(box.price)}/h \u00b7 ${plural(podCount(box.pods), 'pod')}`),
    lane('cpu', box.cpu, 2, 28),
    lane('mem', box.mem, 3, Math.round(Math.min(56, Math.max(16, 7 * perCore)))));
    element.box = box;
    return element;
}

const haystacks = new Map();
function haystack(box) {
    if (!haystacks.has(box)) {
        const all = [box.name || '', box.type, box.zone, box.capacityType, poolName(box.pool)];
        for (const launch of box.launches || [box])
            for (const [kind, names] of launch.pods) all.push(workloads[data.kinds[kind][0]].name, ...names);
        haystacks.set(box, all.join('\n').toLowerCase());
    }
    return haystacks.get(box);
}

function wanted(box) {
    if (state.filter && (box.name || !state.filter.values.includes(state.filter.of(box)))) return false;
    if (state.only && !box.pods.some(([kind]) => data.kinds[kind][0] === state.only.ix)) return false;
    return !state.text || haystack(box).includes(state.text);
}

function drawGroup(key, title, words, list) {
    const shown = state.shown.get(key) || BOXES_SHOWN;
    const group = h('div', { class: 'pool', 'data-pool': title }, h('h3', null, title, h('span', null, words)),
        h('div', { class: 'boxes' }, list.slice(0, shown).map(drawBox)));
    if (list.length > shown)
        group.append(h('button', { class: 'more', type: 'button', click: () => {
            state.shown.set(key, shown * 4);
            drawNodes();
        } }, `Show more of the ${list.length - shown} others`));
    return group;
}

function drawNodes() {
    const groups = [];
    data.pools.forEach((pool, ix) => {
        const list = boxes.filter((box) => box.pool === ix && wanted(box));
        const launches = sum(list, (box) => box.launches.length);
        if (launches)
            groups.push(drawGroup('pool' + ix, pool, [plural(launches, 'node'),
                `${dollars(sum(list, (box) => box.price * box.launches.length))} an hour`,
                plural(sum(list, (box) => podCount(box.pods) * box.launches.length), 'pod')].join(' \u00b7 '), list));
    });
    const there = data.existing.filter(wanted);
    if (there.length)
        groups.push(drawGroup('existing', 'Nodes that are there', `${plural(there.length, 'node')} take ${plural(sum(there, (n) => podCount(n.pods)), 'pod')} more`, there));
    if (!groups.length)
        groups.push(h('p', { class: 'soft' }, boxes.length + data.existing.length ? 'No node matches.' : 'No pod was placed.'));
    $('nodes').replaceChildren(...groups);
    mark();
}

/* What is chosen in the panel, shown among the nodes. */
function mark() {
    $('nodes').classList.toggle('dim', !!state.lit);
    for (const seg of $('nodes').querySelectorAll('i[data-kind]'))
        seg.classList.toggle('lit', !!state.lit && data.kinds[seg.dataset.kind][0] === state.lit.ix);
    for (const element of $('nodes').querySelectorAll('.box')) element.classList.toggle('on', element.box === state.box);
    for (const chip of $('legend').children) chip.classList.toggle('on', !!state.only && chip.dataset.workload === String(state.only.ix));
}

function drawLegend() {
    for (const w of bySize.slice(0, CHIPS_SHOWN))
        $('legend').append(h('button', { class: 'chip', type: 'button', 'data-workload': w.ix, '--c': w.color,
            click: () => pickWorkload(state.only === w ? null : w) },
        h('i', { class: 'dot' }), h('span', null, shortName(w)), h('em', null, w.pods.toLocaleString('en'))));
    if (bySize.length > CHIPS_SHOWN)
        $('legend').append(h('button', { class: 'chip', type: 'button', click: showWorkloads }, `${bySize.length - CHIPS_SHOWN} more`));
}

function pickWorkload(w) {
    state.only = w;
    drawNodes();
    if (w) showKind([...w.kinds.keys()][0]);
    else showNothing();
}

/* --- the panel --- */

function panel(...children) {
    $('panel').replaceChildren(...children.flat(Infinity).filter(Boolean));
    $('panel').scrollTop = 0;
    if (state.drawn && matchMedia('(max-width: 1050px)').matches) $('panel').scrollIntoView(); /* it is below */
}

function facts(rows) {
    return h('dl', { class: 'facts' }, rows.filter((row) => row && row[1] !== '').map(([name, value]) => [h('dt', null, name), h('dd', null, value)]));
}

function nameList(summary, names, wide) {
    if (!names.length) return null;
    const details = h('details', null, h('summary', null, summary));
    details.addEventListener('toggle', () => {
        if (details.children.length > 1) return;
        details.append(h('ul', { class: wide ? 'wide' : '' }, names.slice(0, NAMES_SHOWN).map((name) => h('li', null, h('code', null, name)))));
        if (names.length > NAMES_SHOWN) details.append(h('p', { class: 'soft' }, `and ${plural(names.length - NAMES_SHOWN, 'other')}`));
    });
    return details;
}

function workloadButton(w, kind, count) {
    return h('li', { '--c': w.color || 'transparent' }, h('button', { type: 'button', click: () => showKind(kind) },
        h('i', { class: 'dot' }), h('span', null, w.name)), h('em', null, '\u00d7' + count.toLocaleString('en')));
}

function showWorkloads() {
    panel(h('h2', null, 'Workloads'), h('p', { class: 'soft' }, 'By the number of pods that wait.'),
        h('ul', { class: 'list' }, bySize.map((w) => workloadButton(w, [...w.kinds.keys()][0], w.pods))));
}

function choose(box, lit) {
    state.box = box;
    state.lit = lit;
    mark();
}

function showNothing() {
    choose(null, null);
    panel(h('h2', null, 'Why?'),
        h('p', { class: 'soft' }, 'Choose a pod or a workload to see which NodePools and instance types could take it, and what ruled out the others. Choose a node to see what it is for.'),
        bySize.length > 0 && [h('h3', null, 'Workloads'),
            h('ul', { class: 'list' }, bySize.slice(0, 12).map((w) => workloadButton(w, [...w.kinds.keys()][0], w.pods))),
            bySize.length > 12 && h('button', { class: 'more', type: 'button', click: showWorkloads }, `All ${bySize.length} workloads`)]);
}

function showBox(box) {
    choose(box, null);
    const launches = box.launches || [box];
    const types = box.name ? [] : data.typeLists[box.types], wants = box.name ? [] : data.wantLists[box.wants];
    const use = (text, [requested, allocatable]) => `${text(requested)} of ${text(allocatable)} (${percent(requested, allocatable)})`;
    panel(h('h2', null, box.name || box.type),
        h('p', { class: 'soft' }, box.name ? 'A node that is there.' : launches.length > 1 ? `${launches.length} nodes alike.` : 'A node to launch.'),
        facts([
            !box.name && ['Price', `${dollars(box.price)} an hour, ${monthly(box.price)} a month`],
            !box.name && launches.length > 1 && ['Together', `${dollars(box.price * launches.length)} an hour`],
            ['NodePool', poolName(box.pool)], box.name && ['Type', box.type], ['Zone', box.zone], ['Capacity', box.capacityType],
            ['cpu', use(cpuText, box.cpu)], ['memory', use(memoryText, box.mem)],
            box.name ? ['Pods there', String(box.running)]
                : (box.own[0] > 0 || box.own[1] > 0) && ['Daemons', `${cpuText(box.own[0])} cpu, ${memoryText(box.own[1])} memory`],
        ]),
        h('h3', null, launches.length > 1 ? `Pods on each of them: ${podCount(box.pods)}` : `Pods: ${podCount(box.pods)}`),
        h('ul', { class: 'list' }, box.pods.map(([kind, names]) => workloadButton(workloads[data.kinds[kind][0]], kind, names.length))),
        nameList('Names', launches.flatMap((launch) => launch.pods.flatMap(([, names]) => names)), true),
        types.length > 0 && [h('h3', null, 'What the NodeClaim asks for'),
            h('p', { class: 'soft' }, `${plural(types.length, 'instance type')} would do, the cheapest first; the price is that of the first.`),
            nameList(plural(types.length, 'instance type'), types), nameList('Requirements', wants, true)]);
}

function funnel(steps) {
    const first = steps.length ? steps[0][1] : 0;
    return h('ol', { class: 'funnel' }, steps.map(([what, before, after]) => h('li', {
        class: after === 0 ? 'none' : '', '--left': first ? (100 * after) / first + '%' : '0%',
    }, h('span', null, what), h('b', null, after === before ? `${after}` : `${before} \u2192 ${after}`))));
}

function verdict([pool, possible, reason, detail, nearest, edit, steps], chosen) {
    return h('div', { class: chosen ? 'verdict chosen' : 'verdict', 'data-verdict': chosen ? 'chosen' : possible ? 'possible' : reason },
        h('h4', null, poolName(pool), chosen ? h('span', { class: 'good' }, 'chosen') : possible
            ? h('span', { class: 'soft' }, 'would take it') : h('span', { class: 'bad' }, reason)),
        steps.length > 0 && funnel(steps),
        !possible && detail && h('p', null, detail),
        !possible && nearest && h('p', { class: 'soft' }, `Nearest: ${nearest}`),
        !possible && edit && h('p', { class: 'edit' }, edit));
}

function whereText(place) {
    return [place.launched && `${place.launched.toLocaleString('en')} on nodes to launch`,
        place.existing && `${place.existing.toLocaleString('en')} on nodes that are there`,
        place.missed && `${place.missed.toLocaleString('en')} unschedulable`].filter(Boolean).join(', ');
}

function showKind(kind) {
    const [workload, explanation] = data.kinds[kind];
    const w = workloads[workload], place = places[kind];
    const why = explanation < 0 ? null : data.explanations[explanation];
    const chosen = new Set(place.boxes.map((box) => box.pool));
    const others = [...w.kinds].filter(([other]) => other !== kind);
    choose(null, w);
    panel(h('h2', { '--c': w.color || 'transparent' }, h('i', { class: 'dot' }), h('span', null, w.name)),
        h('p', { class: 'soft' }, w.kind),
        facts([['Each asks', requestsText(kind)], ['Pods', whereText(place)],
            why && why.gaveUp && ['Given up', why.gaveUp],
            why && why.homes && ['Nodes there', why.homes]]),
        place.misses.map((miss) => h('p', { class: 'bad' }, miss.line)),
        why && why.refused && h('p', null, why.refused),
        h('h3', null, 'NodePools, as they are tried'),
        why ? why.pools.map((row) => verdict(row, chosen.has(row[0]))) : h('p', { class: 'soft' }, 'There is no explanation for these pods.'),
        place.boxes.length > 0 && [h('h3', null, 'On these nodes'),
            h('ul', { class: 'list' }, place.boxes.slice(0, 12).map((box) => h('li', null,
                h('button', { type: 'button', click: () => showBox(box) }, `${box.type} \u00b7 ${box.zone} \u00b7 ${box.capacityType}`),
                h('em', null, '\u00d7' + box.launches.length)))),
            place.boxes.length > 12 && h('p', { class: 'soft' }, `and ${plural(place.boxes.length - 12, 'other')}`)],
        others.length > 0 && [h('h3', null, 'Other pods of this workload'),
            h('ul', { class: 'list' }, others.slice(0, 20).map(([other, count]) => h('li', { '--c': w.color },
                h('button', { type: 'button', click: () => showKind(other) }, requestsText(other)), h('em', null, '\u00d7' + count))))]);
}

/* --- hovering --- */

function tipFor(target, event) {
    if (target.dataset.tip) {
        const [head, ...rest] = target.dataset.tip.split('\n');
        return [h('b', null, head), ...rest];
    }
    const element = target.closest('.box');
    if (!element) return null;
    const box = element.box;
    if (target.classList.contains('own')) return ['Daemons'];
    if (target.classList.contains('there')) return [plural(box.running, 'pod') + ' there already'];
    if (target.dataset.kind === undefined) return null;
    const kind = Number(target.dataset.kind);
    const names = box.pods.find(([k]) => k === kind)[1];
    const area = target.getBoundingClientRect();
    const at = Math.min(names.length - 1, Math.max(0, Math.floor(((event.clientX - area.left) / area.width) * names.length)));
    const more = box.launches ? box.launches.length - 1 : 0;
    return [h('b', null, names[at]), h('div', null, requestsText(kind)),
        names.length > 1 && h('div', null, `${at + 1} of ${names.length} alike here`),
        more > 0 && h('div', null, `and the like on ${plural(more, 'other node')}`)];
}

document.addEventListener('mousemove', (event) => {
    const target = event.target instanceof Element ? event.target : null;
    const content = target && target.dataset ? tipFor(target, event) : null;
    $('tip').hidden = !content;
    if (!content) return;
    $('tip').replaceChildren(...content.filter(Boolean));
    const { offsetWidth: width, offsetHeight: height } = $('tip');
    $('tip').style.left = Math.max(4, Math.min(event.clientX + 14, innerWidth - width - 8)) + 'px';
    $('tip').style.top = (event.clientY + 18 + height > innerHeight ? event.clientY - height - 10 : event.clientY + 18) + 'px';
});
document.addEventListener('keydown', (event) => {
    if (event.key === 'Escape') { setFilter(null); pickWorkload(null); }
    if ((event.key === 'Enter' || event.key === ' ') && event.target.box) { event.preventDefault(); showBox(event.target.box); }
});
$('search').addEventListener('input', (event) => {
    state.text = event.target.value.trim().toLowerCase();
    drawNodes();
});

drawTotals();
drawCost();
drawTroubles();
drawLegend();
drawNodes();
showNothing();
state.drawn = true;
})();
