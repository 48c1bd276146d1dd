// SPDX-License-Identifier: MIT
// What programs display: text, pictures, tables, HTML. HTML and SVG come from programs that nobody trusts. Pictures
// are images, in which no script runs. HTML goes into a frame of another origin, whose policy runs no script but ours
// and loads nothing (frame.html).
import {url} from './api.js';
import {h} from './dom.js';

const pictures = ['image/png', 'image/jpeg', 'image/gif', 'image/webp'];

export function table(columns, rows) {
    return h('div', {class: 'scroll', tabindex: '0', role: 'region', 'aria-label': 'Table'}, h('table', {},
        h('thead', {}, h('tr', {}, columns.map(name => h('th', {scope: 'col'}, String(name))))),
        h('tbody', {}, rows.map(row => h('tr', {}, row.map(value => h('td', {}, value instanceof Node ? value : value === null ? '' : String(value))))))));
}

export function html(text) {
    const frame = h('iframe', {class: 'html', title: 'Output of the program', sandbox: 'allow-scripts', src: url('console/frame')});
    const hear = event => {
        if (event.source !== frame.contentWindow) return;
        if (event.data?.ready)
            frame.contentWindow.postMessage({html: text, scheme: document.documentElement.style.colorScheme || 'light dark'}, '*');
        else if (event.data?.height > 0)
            frame.style.height = `${Math.min(event.data.height, 2000)}px`;
        if (!frame.isConnected) removeEventListener('message', hear);
    };
    addEventListener('message', hear);
    return frame;
}

const picture = (type, base64) => h('img', {src: `data:${type};base64,${base64}`, alt: 'Picture that the program displayed'});

// One bundle of MIME types: the best that can be shown.
export function bundle(data) {
    const joined = type => Array.isArray(data[type]) ? data[type].join('') : data[type];
    for (const type of pictures)
        if (data[type]) return picture(type, joined(type).replace(/\s/g, ''));
    if (data['image/svg+xml'])
        return picture('image/svg+xml', btoa(String.fromCharCode(...new TextEncoder().encode(joined('image/svg+xml')))));
    if (data['text/html']) return html(joined('text/html'));
    if (data['application/json'] !== undefined) return json(data['application/json']);
    const text = data['text/markdown'] ?? data['text/latex'] ?? data['text/plain'];
    return h('pre', {}, Array.isArray(text) ? text.join('') : text ?? `(${Object.keys(data).join(', ')})`);
}

// Lists of objects are tables.
export function json(value) {
    const columns = Array.isArray(value) && value.length > 0 && value.every(row => row && typeof row === 'object' && !Array.isArray(row))
        ? [...new Set(value.flatMap(row => Object.keys(row)))] : null;
    if (columns && columns.length <= 40)
        return table(columns, value.slice(0, 1000).map(row => columns.map(name =>
            row[name] !== null && typeof row[name] === 'object' ? JSON.stringify(row[name]) : row[name] ?? null)));
    return h('pre', {}, JSON.stringify(value, null, 2));
}

// Without quotes inside: a preview, not a reader of the format.
export function csv(text) {
    const lines = text.trim().split(/\r?\n/).slice(0, 101).map(line => line.split(','));
    return table(lines[0], lines.slice(1));
}
