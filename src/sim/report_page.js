/* The page of `karve simulate --report` is complete without this: it only tells the values under the pointer.
 *
 * frames   when the columns of a plot start, in milliseconds since the start of the run
 * plots    id of the figure, which frame, unit, series with a value per column (-1: none)
 */
'use strict';

(() => {
const data = JSON.parse(document.getElementById('data').textContent);
const tip = document.getElementById('tip');
const areas = [...document.querySelectorAll('.area, .bands')];

function valueText(v, unit) {
    if (v < 0) return '-';
    if (unit === 'percent') return `${Math.round(v)}%`;
    if (unit === 'dollars') return '$' + v.toLocaleString('en', { minimumFractionDigits: 2, maximumFractionDigits: 2 });
    return v.toLocaleString('en');
}

/* The column that a moment is in: the last that starts before it. */
function columnAt(frame, ms) {
    let low = 0, high = frame.length;
    while (high - low > 1) {
        const middle = (low + high) >> 1;
        if (frame[middle] <= ms) low = middle;
        else high = middle;
    }
    return low;
}

function showTip(plot, ms, event) {
    const column = columnAt(data.frames[plot.frame], ms);
    const table = document.createElement('table');
    for (const series of plot.series) {
        if (plot.series.length > 4 && !series.values[column]) continue;
        const row = table.insertRow(), name = row.insertCell(), swatch = document.createElement('i');
        swatch.className = 'c-' + series.colour;
        name.append(swatch, series.name);
        row.insertCell().textContent = valueText(series.values[column], plot.unit);
    }
    tip.replaceChildren(new Date(data.startMs + ms).toISOString().slice(11, 19), table);
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    const left = event.clientX + 16 + box.width > innerWidth ? event.clientX - 16 - box.width : event.clientX + 16;
    tip.style.left = Math.max(4, left) + 'px';
    tip.style.top = Math.max(4, Math.min(event.clientY + 14, innerHeight - box.height - 4)) + 'px';
}

function hide() {
    tip.hidden = true;
    for (const cross of document.querySelectorAll('.cross')) cross.hidden = true;
}

for (const area of areas) {
    const plot = data.plots.find((p) => area.parentElement.id === 'plot-' + p.id);
    area.addEventListener('pointermove', (event) => {
        const box = area.getBoundingClientRect();
        const share = Math.min(1, Math.max(0, (event.clientX - box.left) / box.width));
        for (const cross of document.querySelectorAll('.cross')) {
            cross.hidden = false;
            cross.style.left = share * 100 + '%';
        }
        if (plot) showTip(plot, share * data.durationMs, event);
        else tip.hidden = true;
    });
    area.addEventListener('pointerleave', hide);
}
document.addEventListener('keydown', (event) => { if (event.key === 'Escape') hide(); });
})();
