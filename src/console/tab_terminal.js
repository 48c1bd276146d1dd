// SPDX-License-Identifier: MIT
// A terminal in the sandbox. It goes on when the page is left or reloaded: the page comes back to it.
import {get, remove, segment, socket} from './api.js';
import {attempt, button, fill, h, problem, select} from './dom.js';

const fresh = () => `console-${Date.now().toString(36)}${Math.floor(Math.random() * 1e6).toString(36)}`;

export function mount(root, id) {
    const at = `/v1/sandboxes/${segment(id)}`;
    const holder = h('div', {class: 'screen'});
    const said = h('div', {role: 'status', 'aria-live': 'polite'});
    const choice = h('span', {});
    let shown = null, current = null, ended = false;

    // One connection after the other to one terminal; `seen` is the number of the next byte.
    function connect(tag, isNew) {
        const one = {tag, socket: null, seen: 0, over: false, began: false};

        const open = () => {
            const {cols, rows} = shown.terminal;
            one.socket = isNew && !one.began ? socket(`${at}/terminals?columns=${cols}&rows=${rows}&tag=${tag}`)
                : socket(`${at}/terminals/${segment(tag)}?from=${one.seen}`);
            one.socket.binaryType = 'arraybuffer';
            one.socket.onmessage = event => typeof event.data === 'string' ? onWord(JSON.parse(event.data)) : onBytes(new Uint8Array(event.data));
            one.socket.onclose = onClose;
        };
        const onBytes = data => {
            one.seen += data.length;
            shown.terminal.write(data);
        };
        const onWord = word => {
            if (word.type === 'start') {
                one.began = true;
                one.seen = word.from;
                fill(said);
                resize();
                list();
            } else if (word.type === 'gap') {
                one.seen += word.bytes;
                shown.terminal.write(`\r\n[${word.bytes} bytes are gone]\r\n`);
            } else if (word.type === 'end') {
                one.over = true;
                shown.terminal.write('\r\n[the terminal has ended]\r\n');
                list();
            }
        };
        const onClose = async () => {
            if (one.over || ended || current !== one) return;
            fill(said, 'Not connected; trying again…');
            await new Promise(resolve => setTimeout(resolve, 700));
            if (ended || current !== one) return;
            try {
                await get(at);
                if (one.began) await get(`${at}/processes/${segment(tag)}`);
                open();
            } catch (error) {
                if (error.status === 404) fill(said, problem(Object.assign(new Error('This terminal is gone with its sandbox'), {hint: 'Make the sandbox anew, then open a new terminal.'})));
                else if (error.gone) onClose();
                else fill(said, problem(error));
            }
        };
        const resize = () => send({type: 'resize', columns: shown.terminal.cols, rows: shown.terminal.rows});
        const send = message => {
            if (one.socket.readyState === WebSocket.OPEN)
                one.socket.send(message instanceof Uint8Array ? message : JSON.stringify(message));
        };
        Object.assign(one, {resize, send});
        open();
        return one;
    }

    function show(tag, isNew) {
        current?.socket.close();
        current = null;
        shown.terminal.reset();
        current = connect(tag, isNew);
        shown.terminal.focus();
    }

    async function terminals() {
        const {processes} = await get(`${at}/processes`);
        return processes.filter(p => p.terminal && p.status === 'running' && p.tag);
    }

    async function list() {
        const all = await terminals().catch(() => []);
        fill(choice, all.length > 1 && select(all.map(p => [p.tag, `${p.command || 'shell'} (${p.pid})`]), current?.tag, tag => show(tag, false), {'aria-label': 'Terminals'}));
    }

    async function start() {
        const module = await import('./screen.js');
        if (ended) return;
        shown = module.screen(holder, 'Terminal');
        shown.terminal.onData(data => current?.send(new TextEncoder().encode(data)));
        shown.terminal.onBinary(data => current?.send(Uint8Array.from(data, c => c.charCodeAt(0))));
        shown.terminal.onResize(() => current?.resize());
        sizes.observe(holder);
        const before = await terminals();
        if (ended) return;
        if (before.length) show(before.at(-1).tag, false);
        else show(fresh(), true);
    }

    const sizes = new ResizeObserver(() => shown?.fit());
    fill(root, h('div', {class: 'row'}, choice, button('New terminal', () => show(fresh(), true)),
        button('End this one', () => attempt(() => remove(`${at}/processes/${segment(current.tag)}`))),
        h('span', {class: 'grow'}), h('small', {}, 'Ctrl+Shift+C and Ctrl+Shift+V copy and paste')), said, holder);
    start().catch(error => fill(said, problem(error)));
    return () => {
        ended = true;
        sizes.disconnect();
        current?.socket.close();
        shown?.terminal.dispose();
    };
}
