// SPDX-License-Identifier: MIT
// Overview: numbers of the daemon as they change, and what this host isolates.
import {get, poll, send} from './api.js';
import {fill, h, problem} from './dom.js';
import {bytes, ms} from './words.js';

const EVERY = 2000;

// Prometheus text: [{name, labels, value}].
export function samples(text) {
    return [...text.matchAll(/^([a-z_]+)(?:\{(.*)\})? (\S+)$/gm)].map(([, name, labels, value]) => ({
        name, value: Number(value), labels: Object.fromEntries([...(labels ?? '').matchAll(/(\w+)="([^"]*)"/g)].map(([, key, word]) => [key, word])),
    }));
}

const total = (all, name, labels = {}) => all.filter(s => s.name === name && Object.entries(labels).every(([k, v]) => s.labels[k] === v))
    .reduce((sum, s) => sum + s.value, 0);

// The time that a share of the runs between two looks stayed below, from the buckets of a histogram.
function quantile(before, now, stage, share) {
    const name = 'sandbox_stage_seconds_bucket';
    const buckets = now.filter(s => s.name === name && s.labels.stage === stage).map(s => ({
        le: s.labels.le === '+Inf' ? Infinity : Number(s.labels.le), n: s.value - total(before, name, {stage, le: s.labels.le}),
    }));
    const all = buckets.at(-1)?.n ?? 0;
    if (!all) return null;
    const i = buckets.findIndex(b => b.n >= all * share);
    const low = i > 0 ? buckets[i - 1] : {le: 0, n: 0};
    if (buckets[i].le === Infinity) return low.le;
    return low.le + (buckets[i].le - low.le) * (all * share - low.n) / Math.max(1, buckets[i].n - low.n);
}

const charts = [
    {title: 'Executions per second', names: ['success', 'failed', 'timeout', 'error'],
        values: (before, now, s) => ['success', 'failed', 'timeout', 'error'].map(outcome =>
            (total(now, 'sandbox_executions_total', {outcome}) - total(before, 'sandbox_executions_total', {outcome})) / s)},
    {title: 'Under way and waiting', names: ['under way', 'waiting', 'connections'],
        values: (before, now) => [total(now, 'sandbox_executions_active'), total(now, 'sandbox_executions_queued'), total(now, 'sandbox_http_connections')]},
    {title: 'Time of a run, in milliseconds', names: ['half of them', '95 of 100', 'waiting, 95 of 100'], unit: ' ms',
        values: (before, now) => [['run', .5], ['run', .95], ['queue', .95]].map(([stage, share]) => {
            const s = quantile(before, now, stage, share);
            return s === null ? null : s * 1000;
        })},
    {title: 'Prepared sandboxes', names: ['ready', 'being prepared', 'alive'],
        values: (before, now) => [total(now, 'sandbox_pool', {state: 'ready'}), total(now, 'sandbox_pool', {state: 'preparing'}), total(now, 'sandbox_sandboxes')]},
    {title: 'Refused per second', names: ['queue full', 'answers 4xx', 'answers 5xx'],
        values: (before, now, s) => [['sandbox_executions_refused_total', {}], ['sandbox_http_requests_total', {class: '4xx'}], ['sandbox_http_requests_total', {class: '5xx'}]]
            .map(([name, labels]) => (total(now, name, labels) - total(before, name, labels)) / s)},
];

const words = {
    filesystem: 'its own file system', pid: 'its own processes', ipc: 'its own shared memory and queues', uts: 'its own host name', network: 'its own network',
    user: 'its own users', no_new_privileges: 'no program gains privilege', no_capabilities: 'no capability', seccomp: 'system calls are filtered',
    memory: 'memory is limited', pids: 'processes are limited', cpu: 'processor time is shared and counted', inodes: 'nothing is told of files of others', devices: 'its own devices',
};

function host(all) {
    const trait = (name, there) => h('li', {}, h('span', {class: there ? 'badge good' : 'badge bad'}, there ? 'yes' : 'no'), ` ${name}: ${words[name] ?? ''}`);
    return [
        h('section', {class: 'card'}, h('h2', {}, `Isolation of this host: jail ${all.jail}, level ${all.isolation_level}`),
            h('ul', {class: 'plain'}, all.traits.map(name => trait(name, true)), all.traits_missing.map(name => trait(name, false))),
            all.traits_missing.length ? h('p', {class: 'hint'}, 'What is missing is not given by this host; sbx doctor says what would have to change.') : h('p', {}, 'Nothing is missing: this host is ready.'),
            all.advice?.length > 0 && h('ul', {class: 'hint'}, all.advice.map(one => h('li', {}, one))),
            h('ul', {}, all.jails.filter(j => !j.available).map(j => h('li', {}, `jail ${j.name}: ${j.reason}`)))),
        h('section', {class: 'card'}, h('h2', {}, 'Languages and warmed interpreters'),
            h('ul', {}, all.languages.map(l => h('li', {}, `${l.name} ${l.available ? l.version ?? '' : '(not installed)'}`))),
            h('ul', {}, Object.entries(all.templates).map(([name, state]) => h('li', {}, `${name}: ${state}`)))),
        h('section', {class: 'card'}, h('h2', {}, 'Limits of an execution'), h('ul', {}, [
            `memory ${bytes(all.limits.memory_bytes)}`, `time ${ms(all.limits.wall_time_ms)}, at most ${ms(all.limits.wall_time_max_ms)}`, `${all.limits.pids} processes`,
            `workspace ${bytes(all.limits.workspace_bytes)}, ${all.limits.workspace_files} files`, `${bytes(all.limits.output_bytes)} of output`,
            `${all.limits.concurrent_executions} at a time, ${all.limits.queued_executions} may wait`].map(one => h('li', {}, one)))),
    ];
}

export function mount(root) {
    const grid = h('div', {class: 'grid'});
    const about = h('div', {class: 'grid'});
    const state = h('p', {class: 'about'});
    let before = null, drawn = null, ended = false;

    async function refresh() {
        try {
            const [text, health] = await Promise.all([send('GET', '/metrics').then(r => r.text()), get('/health')]);
            const now = {at: performance.now(), all: samples(text)};
            state.textContent = `${health.status} · version ${health.version} · up for ${ms(health.uptime_seconds * 1000)} · ${health.active_executions} under way`;
            // After a restart counters begin anew.
            if (before && drawn && total(now.all, 'sandbox_uptime_seconds') >= total(before.all, 'sandbox_uptime_seconds'))
                drawn.forEach((one, i) => one.push(charts[i].values(before.all, now.all, (now.at - before.at) / 1000)));
            before = now;
        } catch (error) {
            state.textContent = error.message;
        }
    }

    async function start() {
        const {chart} = await import('./chart.js');
        if (ended) return;
        drawn = charts.map(one => {
            const place = h('div', {});
            grid.append(h('section', {class: 'card'}, h('h2', {}, one.title), place));
            return chart(place, one);
        });
        await refresh();
    }

    fill(root, h('h1', {}, 'Overview'), state, grid, about);
    start().catch(error => fill(grid, problem(error)));
    get('/v1/capabilities').then(all => fill(about, host(all)), error => fill(about, problem(error)));
    const end = poll(refresh, EVERY);
    return () => {
        ended = true;
        end();
        drawn?.forEach(one => one.close());
    };
}
