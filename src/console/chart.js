// SPDX-License-Identifier: MIT
// Lines over the last minutes, by uPlot.
import uPlot from 'uplot';

const colours = ['#2f6fed', '#d97706', '#0d9488', '#c2410c', '#9333ea'];

// names of lines; what push() gets are their values in that order.
export function chart(parent, {title, names, unit = ''}) {
    const data = [[], ...names.map(() => [])];
    const axis = {stroke: () => getComputedStyle(parent).color, grid: {stroke: '#8883', width: 1}, ticks: {stroke: '#8883', width: 1}};
    const plot = new uPlot({
        width: Math.max(260, parent.clientWidth), height: 180, cursor: {y: false}, legend: {live: false},
        scales: {y: {range: (u, min, max) => [0, max > 0 ? max * 1.1 : 1]}},
        axes: [axis, {...axis, size: 62, values: (u, ticks) => ticks.map(v => `${v}${unit}`)}],
        series: [{}, ...names.map((label, i) => ({label, stroke: colours[i % colours.length], width: 2, spanGaps: true, points: {size: 4}}))],
    }, data, parent);
    const latest = document.createElement('p');
    latest.className = 'about';
    parent.append(latest);
    plot.root.setAttribute('role', 'img');
    plot.root.setAttribute('aria-label', title);
    const sizes = new ResizeObserver(() => plot.setSize({width: Math.max(260, parent.clientWidth), height: 180}));
    sizes.observe(parent);
    return {
        push(values, keep = 300) {
            [Date.now() / 1000, ...values].forEach((value, i) => {
                data[i].push(value);
                if (data[i].length > keep) data[i].shift();
            });
            plot.setData(data);
            latest.textContent = names.map((name, i) => `${name}: ${values[i] === null ? '–' : Number(values[i].toPrecision(3)) + unit}`).join(' · ');
        },
        close() {
            sizes.disconnect();
            plot.destroy();
        },
    };
}
