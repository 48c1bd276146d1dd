// SPDX-License-Identifier: MIT
// Processes of a sandbox: start, watch, end.
import {events, get, poll, post, remove, segment} from './api.js';
import {attempt, button, fill, h, problem, select} from './dom.js';
import {ago} from './words.js';

const LOG_MAX = 500000; // characters on the page

export function mount(root, id) {
    const at = `/v1/sandboxes/${segment(id)}/processes`;
    const list = h('div', {class: 'scroll'});
    const log = h('div', {});
    const command = h('input', {'aria-label': 'Command', placeholder: 'Command, for example: python3 -u server.py', required: true});
    let following = null, shown = null;

    async function refresh() {
        try {
            const {processes} = await get(at);
            const now = processes.map(p => p.id + p.status).join();
            if (now === shown) return;
            shown = now;
            fill(list, processes.length ? h('table', {},
                h('thead', {}, h('tr', {}, ['Pid', 'Command', 'State', 'Started', 'End'].map(name => h('th', {scope: 'col'}, name)), h('td', {}))),
                h('tbody', {}, processes.slice(-200).reverse().map(row))) : h('p', {}, 'None yet.'));
        } catch (error) {
            shown = null;
            fill(list, problem(error));
        }
    }

    function row(p) {
        const running = p.status === 'running';
        return h('tr', {}, h('td', {}, p.pid), h('td', {}, h('code', {}, p.command || 'shell')),
            h('td', {}, h('span', {class: `badge ${running || p.exit_code === 0 ? 'good' : 'bad'}`}, p.status)), h('td', {}, `${ago(p.started_at)} ago`),
            h('td', {}, running ? '' : p.signal ?? `status ${p.exit_code}`),
            h('td', {class: 'actions'}, !p.terminal && button('Log', () => follow(p), {'aria-label': `Log of ${p.command}`}),
                running && select([['', 'Signal…'], 'SIGINT', 'SIGTERM', 'SIGHUP', 'SIGUSR1', 'SIGSTOP', 'SIGCONT'], '', name => name && attempt(() => post(`${at}/${p.id}/signal`, {signal: name}), `${name} is sent`), {'aria-label': `Signal to ${p.command}`}),
                running && button('Kill', () => attempt(() => remove(`${at}/${p.id}`)).then(refresh), {class: 'danger', 'aria-label': `Kill ${p.command}`})));
    }

    async function follow(p) {
        following?.abort();
        const mine = following = new AbortController();
        const text = h('pre', {class: 'output', tabindex: '0', 'aria-label': `Output of ${p.command}`});
        const state = h('small', {}, 'live');
        const decoders = {stdout: new TextDecoder(), stderr: new TextDecoder()};
        fill(log, h('div', {class: 'row'}, h('h2', {}, p.command), state, h('span', {class: 'grow'}), button('Close', () => { mine.abort(); fill(log); })), text);
        try {
            for await (const {event, data} of events('GET', `${at}/${p.id}/output`, {signal: mine.signal})) {
                if (event === 'end') state.textContent = 'ended';
                else if (event === 'gap') text.append(`[${data.bytes} bytes are gone]\n`);
                else if (decoders[event]) {
                    const atEnd = text.scrollTop + text.clientHeight >= text.scrollHeight - 8;
                    const words = decoders[event].decode(Uint8Array.from(atob(data.data), c => c.charCodeAt(0)), {stream: true});
                    text.append(event === 'stderr' ? h('span', {class: 'stderr'}, words) : words);
                    while (text.textContent.length > LOG_MAX) text.firstChild.remove();
                    if (atEnd) text.scrollTop = text.scrollHeight;
                }
            }
        } catch (error) {
            if (error.name !== 'AbortError') log.append(problem(error));
        }
    }

    fill(root, h('form', {class: 'row', onsubmit: event => {
        event.preventDefault();
        attempt(async () => {
            const made = await post(at, {command: command.value, stdin: false});
            command.value = '';
            await refresh();
            follow(made);
        });
    }}, h('span', {class: 'grow'}, command), button('Start', null, {type: 'submit', class: 'primary'})), list, log);
    const end = poll(refresh, 1500);
    return () => {
        end();
        following?.abort();
    };
}
