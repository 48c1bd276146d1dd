// SPDX-License-Identifier: MIT
// Servers inside, and addresses that lead to them. Their pages come from another origin than this one: they see
// nothing of it.
import {get, poll, post, segment} from './api.js';
import {attempt, button, fill, h, problem} from './dom.js';

// Ports that something listens on, from the kernel's own table inside the sandbox.
function listening(text) {
    const ports = new Set();
    for (const line of text.split('\n')) {
        const found = /^\s*\d+: [0-9A-F]+:([0-9A-F]{4}) [0-9A-F:]+ 0A /.exec(line);
        if (found) ports.add(parseInt(found[1], 16));
    }
    return [...ports].sort((a, b) => a - b);
}

// PORT-ID.DOMAIN: every name under localhost is this machine.
function domain(settings) {
    if (settings.sandbox_domain) return settings.sandbox_domain;
    const local = ['localhost', '127.0.0.1', '[::1]'].includes(location.hostname) || location.hostname.endsWith('.localhost');
    return local ? `localhost${location.port ? `:${location.port}` : ''}` : null;
}

export function mount(root, name) {
    const at = `/v1/sandboxes/${segment(name)}`;
    const list = h('div', {});
    let shown = null, under;

    async function refresh() {
        try {
            under ??= domain((await get('/v1/capabilities')).settings);
            const one = await get(at);
            const {stdout} = await post(`${at}/run`, {cmd: 'cat /proc/net/tcp /proc/net/tcp6 2>/dev/null; true'});
            const ports = listening(stdout);
            const now = JSON.stringify([ports, one.bound_port, one.proxy_port]);
            if (now === shown) return;
            shown = now;
            fill(list, ports.length ? h('table', {},
                h('thead', {}, h('tr', {}, ['Port', 'Address', 'Over the TCP proxy'].map(word => h('th', {scope: 'col'}, word)))),
                h('tbody', {}, ports.map(port => row(one, port)))) : h('p', {}, 'Nothing listens yet.'),
                one.access?.private_ports && h('p', {class: 'hint'}, 'The ports of this sandbox are private: a request needs its traffic token as E2b-Traffic-Access-Token, which a browser cannot send by a link.'));
        } catch (error) {
            shown = null;
            fill(list, problem(error));
        }
    }

    const link = address => h('a', {href: address, target: '_blank', rel: 'noopener noreferrer'}, address);
    function row(one, port) {
        const bound = Number(one.bound_port) === port && one.proxy_port;
        return h('tr', {}, h('td', {}, port),
            h('td', {}, under ? link(`${location.protocol}//${port}-${one.id}.${under}/`) : 'needs SANDBOX_DOMAIN: names that lead to this daemon'),
            h('td', {}, bound ? [link(`http://${location.hostname}:${one.proxy_port}/`), ' ', button('Unbind', () => attempt(() => post(`${at}/unbind_port`)).then(refresh))]
                : button('Bind', () => attempt(() => post(`${at}/bind_port`, {port: String(port)})).then(refresh), {'aria-label': `Bind ${port}`})));
    }

    fill(root, h('p', {class: 'about'}, 'Servers that run inside. Their addresses need no secret: everybody who reaches this daemon may use them.'), list,
        button('Start a small server', () => attempt(async () => {
            await post(`${at}/processes`, {command: 'mkdir -p /workspace/www && cd /workspace/www && echo "<h1>Hello from a sandbox</h1>" >index.html && exec python3 -m http.server 8000', tag: 'small-server'});
            shown = null;
        }).then(refresh), {title: 'python3 -m http.server 8000 in /workspace/www'}));
    return poll(refresh, 2000);
}
