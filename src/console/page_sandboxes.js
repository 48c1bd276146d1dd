// SPDX-License-Identifier: MIT
// Sandboxes: which there are, and one of them from inside.
import {get, poll, post, remove, segment} from './api.js';
import {ask, attempt, button, field, fill, h, problem, tabs} from './dom.js';
import {ago, bytes} from './words.js';

const views = [
    {name: 'terminal', label: 'Terminal', open: () => import('./tab_terminal.js')},
    {name: 'files', label: 'Files', open: () => import('./tab_files.js')},
    {name: 'cells', label: 'Cells', open: () => import('./tab_cells.js')},
    {name: 'processes', label: 'Processes', open: () => import('./tab_processes.js')},
    {name: 'ports', label: 'Ports', open: () => import('./tab_ports.js')},
];

export function mount(root, [id, view]) {
    return id ? mountOne(root, id, view) : mountList(root);
}

const at = (id, more = '') => `/v1/sandboxes/${segment(id)}${more}`;

// Processor time of all its programs since the last look, as a share of one processor.
function load(before, now) {
    return before ? `${Math.max(0, Math.round((now.cpu - before.cpu) / (now.at - before.at) * 100))} %` : '–';
}

function actions(sandbox, after) {
    const paused = sandbox.state === 'paused';
    return [
        button(paused ? 'Resume' : 'Pause', () => attempt(() => post(at(sandbox.id, paused ? '/resume' : '/pause'))).then(after)),
        button('Delete', async () => {
            if (await ask(`Delete ${sandbox.name}?`, h('p', {}, 'Its files and processes are gone with it.'), 'Delete'))
                attempt(() => remove(at(sandbox.id)), `${sandbox.name} is deleted`).then(after);
        }, {class: 'danger', 'aria-label': `Delete ${sandbox.name}`}),
    ];
}

async function make(after) {
    const asked = await ask('New sandbox', [
        field('Name', h('input', {name: 'name', pattern: '[A-Za-z0-9_\\-][A-Za-z0-9._\\-]*', maxlength: '128', autofocus: true}), 'Empty: its id'),
        field('Memory in MiB', h('input', {name: 'memory', inputmode: 'numeric', pattern: '[0-9]*'}), 'Empty: as much as the operator allows'),
        field('Deleted after so many idle seconds', h('input', {name: 'timeout', inputmode: 'numeric', pattern: '[0-9]*'}), 'Empty: as the operator set it; 0: never'),
    ], 'Make it');
    if (!asked) return;
    const body = {};
    if (asked.name) body.name = asked.name;
    if (asked.memory) body.limits = {memory_mb: Number(asked.memory)};
    if (asked.timeout) body.timeout = Number(asked.timeout);
    await attempt(async () => {
        const made = await post('/v1/sandboxes', body);
        location.hash = `#/sandboxes/${segment(made.name)}/terminal`;
    });
    after();
}

function mountList(root) {
    const list = h('div', {class: 'scroll'});
    const before = new Map();
    let shown = null;

    async function row(one) {
        const full = one.state === 'running' ? await get(at(one.id)).catch(() => one) : one;
        const usage = full.usage ?? {};
        const now = {cpu: usage.cpu_ms ?? 0, at: performance.now()};
        const share = usage.cpu_ms === undefined ? '–' : load(before.get(one.id), now);
        before.set(one.id, now);
        return [one, [h('a', {href: `#/sandboxes/${segment(one.name)}/terminal`}, one.name), h('span', {class: `badge ${one.state === 'running' ? 'good' : 'warm'}`}, one.state),
            ago(one.created_at), share, `${bytes(usage.memory_bytes)} of ${bytes(one.limits.memory_mb * 1048576)}`,
            `${bytes(usage.disk_bytes)} of ${bytes(one.limits.disk_mb * 1048576)}`, usage.pids ?? '–', one.isolation]];
    }

    async function refresh() {
        try {
            const {sandboxes} = await get('/v1/sandboxes?limit=100');
            const rows = await Promise.all(sandboxes.map(row));
            if (list.contains(document.activeElement) && shown === sandboxes.map(s => s.id + s.state).join()) return update(rows);
            shown = sandboxes.map(s => s.id + s.state).join();
            fill(list, rows.length ? h('table', {},
                h('thead', {}, h('tr', {}, ['Name', 'State', 'Age', 'CPU', 'Memory', 'Disk', 'Processes', 'Jail'].map(name => h('th', {scope: 'col'}, name)), h('td', {}))),
                h('tbody', {}, rows.map(([one, cells]) => h('tr', {}, cells.map(cell => h('td', {}, cell)), h('td', {class: 'actions'}, actions(one, refresh))))))
                : h('p', {}, 'There is none yet. A sandbox keeps its files and processes until it is deleted.'), ...shortcut(sandboxes));
        } catch (error) {
            fill(list, problem(error));
            shown = null;
        }
    }

    // Made on first use, so it can be entered before it is there.
    function shortcut(all) {
        if (all.some(one => one.name === 'default')) return [];
        return [h('p', {}, 'The default sandbox is made when you enter it: ', views.map((v, i) => [i ? ' · ' : '', h('a', {href: `#/sandboxes/default/${v.name}`}, v.label)]).flat())];
    }

    // The numbers only: what has the focus keeps it.
    function update(rows) {
        const lines = list.querySelectorAll('tbody tr');
        rows.forEach(([, cells], i) => [2, 3, 4, 5, 6].forEach(k => { lines[i].children[k].textContent = cells[k]; }));
    }

    fill(root, h('div', {class: 'row'}, h('h1', {}, 'Sandboxes'), h('span', {class: 'grow'}), button('New sandbox', () => make(refresh), {class: 'primary'})),
        h('section', {class: 'card', 'aria-label': 'Sandboxes there are'}, list));
    return poll(refresh, 3000);
}

function mountOne(root, id, view = 'terminal') {
    const title = h('h1', {}, id);
    const facts = h('p', {class: 'about'});
    const buttons = h('span', {class: 'row'});
    const place = h('div', {role: 'tabpanel', 'aria-label': 'Inside', tabindex: '-1'});
    let leave = () => {}, known = '', turn = 0;

    async function refresh() {
        try {
            const one = await get(at(id));
            const usage = one.usage ?? {};
            title.textContent = one.name;
            facts.textContent = `${one.state} · ${one.id} · ${bytes(usage.memory_bytes)} of memory · ${bytes(usage.disk_bytes)} on disk · ${usage.pids ?? '–'} processes · made ${ago(one.created_at)} ago`;
            if (known !== one.state) fill(buttons, actions(one, () => { known = ''; refresh(); }));
            known = one.state;
        } catch (error) {
            if (error.status !== 404 || known === 'gone') return;
            known = 'gone';
            facts.textContent = 'This sandbox is not there any more.';
            fill(buttons, button('Make it anew', event => {
                event.target.disabled = true;
                attempt(() => post('/v1/sandboxes', {name: id})).then(() => choose(view));
            }, {class: 'primary'}));
        }
    }

    async function choose(name) {
        const mine = ++turn;
        view = name;
        history.replaceState(null, '', `#/sandboxes/${segment(id)}/${name}`);
        leave();
        leave = () => {};
        fill(place);
        try {
            const {mount: open} = await views.find(v => v.name === name).open();
            if (mine === turn) leave = open(place, id) ?? (() => {});
        } catch (error) {
            fill(place, problem(error));
        }
        refresh();
    }

    if (!views.some(v => v.name === view)) view = 'terminal';
    fill(root, h('div', {class: 'row'}, h('a', {href: '#/sandboxes'}, '← Sandboxes'), title, h('span', {class: 'grow'}), buttons), facts,
        h('section', {class: 'card', 'aria-label': 'Inside the sandbox'}, tabs(views, view, choose, 'What is inside'), place));
    const end = poll(refresh, 3000);
    return () => {
        turn++;
        end();
        leave();
    };
}
