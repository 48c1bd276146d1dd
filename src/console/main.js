// SPDX-License-Identifier: MIT
// The console: finds out who asks, then shows one page at a time. What a page needs beyond these few files (editor,
// terminal, charts) is loaded when it is shown.
import {get, onRefused} from './api.js';
import {logIn} from './login.js';
import {button, fill, h, problem} from './dom.js';
import {load, save} from './store.js';
import {keepStylesOut} from './policy.js';

const pages = [
    {name: 'playground', label: 'Playground', open: () => import('./page_playground.js')},
    {name: 'sandboxes', label: 'Sandboxes', open: () => import('./page_sandboxes.js')},
    {name: 'executions', label: 'Executions', open: () => import('./page_executions.js')},
    {name: 'functions', label: 'Functions', open: () => import('./page_functions.js')},
    {name: 'overview', label: 'Overview', open: () => import('./page_overview.js')},
];

const content = h('main', {id: 'content', tabindex: '-1'});
let leave = () => {};
let turn = 0;

// "#/sandboxes/ID/files": the page, and what in it.
async function show() {
    const [name, ...rest] = location.hash.replace(/^#\//, '').split('/').map(decodeURIComponent);
    const page = pages.find(p => p.name === name) ?? pages[0];
    const mine = ++turn;
    leave();
    leave = () => {};
    for (const link of document.querySelectorAll('nav a'))
        if (link.dataset.name === page.name) link.setAttribute('aria-current', 'page');
        else link.removeAttribute('aria-current');
    document.title = `${page.label} · Sandbox Executor`;
    fill(content);
    try {
        const {mount} = await page.open();
        if (mine === turn) leave = mount(content, rest) ?? (() => {});
    } catch (error) {
        fill(content, problem(error));
    }
}

const themes = ['light dark', 'light', 'dark'];
function setTheme(scheme) {
    document.documentElement.style.colorScheme = scheme;
    save('theme', scheme);
}

function themeButton() {
    const words = {'light dark': 'Auto', light: 'Light', dark: 'Dark'};
    const one = button('', () => {
        setTheme(themes[(themes.indexOf(load('theme', themes[0])) + 1) % themes.length]);
        name();
    }, {class: 'plain', title: 'Light, dark, or as the system has it'});
    const name = () => fill(one, `Theme: ${words[load('theme', themes[0])]}`);
    name();
    return one;
}

// Says whether the daemon answers; what is shown stays.
function watch(dot) {
    setInterval(async () => {
        if (document.hidden) return;
        const now = await get('/health').then(() => true, error => !error.gone);
        dot.className = now ? 'dot ok' : 'dot bad';
        fill(dot, h('span', {class: 'hidden'}, now ? 'connected' : 'not connected'));
        dot.title = now ? 'The daemon answers' : 'The daemon does not answer; trying again';
    }, 2000);
}

function frame() {
    const dot = h('span', {class: 'dot ok', role: 'status'}, h('span', {class: 'hidden'}, 'connected'));
    watch(dot);
    return [
        h('a', {class: 'skip', href: '#content', onclick: event => { event.preventDefault(); content.focus(); }}, 'Skip to the content'),
        h('header', {},
            h('span', {class: 'brand'}, 'Sandbox Executor'),
            h('nav', {'aria-label': 'Pages'}, pages.map(page =>
                h('a', {href: `#/${page.name}`, 'data-name': page.name}, page.label))),
            h('span', {class: 'grow'}), dot, h('a', {href: 'docs', target: '_blank', rel: 'noopener'}, 'API'), themeButton()),
        content,
    ];
}

async function start() {
    keepStylesOut();
    setTheme(load('theme', themes[0]));
    await logIn(document.body);
    onRefused(() => location.reload()); // what was typed is kept (store.js)
    fill(document.body, frame());
    addEventListener('hashchange', show);
    await show();
}

start();
