// SPDX-License-Identifier: MIT
// Requests to the daemon that served this page, and to nothing else.

// The daemon may be behind a path of another server: "/console" is the last part of ours.
export const base = location.pathname.replace(/console\/?$/, '');
export const url = path => base + path.replace(/^\//, '');
export const segment = encodeURIComponent;
export const pathOf = path => path.split('/').map(encodeURIComponent).join('/');

const KEY = 'sandbox-executor:key';
let key = sessionStorage.getItem(KEY);
let refused = () => {};

export const getKey = () => key;
export function setKey(value) {
    key = value;
    if (value) sessionStorage.setItem(KEY, value);
    else sessionStorage.removeItem(KEY);
}
export const onRefused = fn => { refused = fn; };

export class ApiError extends Error {
    constructor(status, body, text) {
        const issues = Array.isArray(body?.detail) ? body.detail.map(i => [(i.loc ?? []).filter(l => l !== 'body').join('.'), i.msg].filter(Boolean).join(': ')) : [];
        super(body?.description ?? body?.error ?? (text || `Status ${status}`));
        this.status = status;
        this.code = body?.error_code;
        this.detail = issues.length ? issues.join('; ') : body?.error_detail;
        this.hint = body?.solution;
    }
}

export const headersOf = (more = {}) => key ? {Authorization: `Bearer ${key}`, ...more} : more;

async function failed(response) {
    const text = await response.text();
    let body = null;
    try { body = JSON.parse(text); } catch { /* plain text */ }
    const error = new ApiError(response.status, body, text.trim());
    if (response.status === 401) refused();
    return error;
}

// The response, when its status is good.
export async function send(method, path, {json, body, headers, signal} = {}) {
    let response;
    try {
        response = await fetch(url(path), {
            method, signal, body: json === undefined ? body : JSON.stringify(json),
            headers: headersOf({...(json === undefined ? {} : {'Content-Type': 'application/json'}), ...headers}),
            cache: 'no-store', referrerPolicy: 'no-referrer', credentials: 'omit',
        });
    } catch (error) {
        if (error.name === 'AbortError') throw error;
        const gone = new Error('The daemon does not answer');
        gone.hint = 'Is it running? This page goes on by itself when it is back.';
        gone.gone = true;
        throw gone;
    }
    if (!response.ok) throw await failed(response);
    return response;
}

export async function call(method, path, json, more) {
    const response = await send(method, path, {json, ...more});
    const text = await response.text();
    return text && response.headers.get('content-type')?.includes('json') ? JSON.parse(text) : text;
}
export const get = (path, more) => call('GET', path, undefined, more);
export const post = (path, json = {}, more) => call('POST', path, json, more);
export const remove = path => call('DELETE', path);

// Server-sent events of an answer: yields {event, data, id}.
export async function* events(method, path, options = {}) {
    const response = await send(method, path, {...options, headers: {Accept: 'text/event-stream', ...options.headers}});
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = '';
    try {
        for (;;) {
            const {done, value} = await reader.read();
            if (done) return;
            rest += value;
            for (let end; (end = rest.indexOf('\n\n')) >= 0; rest = rest.slice(end + 2)) {
                const event = parse(rest.slice(0, end));
                if (event) yield event;
            }
        }
    } finally {
        reader.cancel().catch(() => {});
    }
}

function parse(block) {
    const event = {event: 'message', data: null, id: null};
    const data = [];
    for (const line of block.split('\n')) {
        const [, name, value] = /^([^:]*):? ?(.*)$/.exec(line);
        if (name === 'data') data.push(value);
        else if (name === 'event') event.event = value;
        else if (name === 'id') event.id = value;
    }
    if (!data.length) return null; // a comment that keeps the connection open
    event.data = JSON.parse(data.join('\n'));
    return event;
}

// A file, with progress(bytes, all).
export function upload(path, file, progress, signal) {
    return new Promise((resolve, reject) => {
        const request = new XMLHttpRequest();
        request.open('PUT', url(path));
        for (const [name, value] of Object.entries(headersOf())) request.setRequestHeader(name, value);
        request.upload.onprogress = event => progress(event.loaded, event.total);
        request.onload = () => {
            if (request.status < 300) return resolve();
            let body = null;
            try { body = JSON.parse(request.responseText); } catch { /* plain text */ }
            reject(new ApiError(request.status, body, request.responseText));
        };
        request.onerror = () => reject(new Error('The upload was cut off'));
        request.onabort = () => reject(new DOMException('stopped', 'AbortError'));
        signal?.addEventListener('abort', () => request.abort());
        request.send(file);
    });
}

// A WebSocket; its key travels as a protocol, never in the address.
export function socket(path) {
    const address = new URL(url(path), location.href);
    address.protocol = location.protocol === 'https:' ? 'wss:' : 'ws:';
    return new WebSocket(address, key ? ['sandbox-executor', `bearer.${key}`] : ['sandbox-executor']);
}

export async function blobUrl(path) {
    return URL.createObjectURL(await (await send('GET', path)).blob());
}

export async function download(path, name) {
    const address = await blobUrl(path);
    const link = document.createElement('a');
    link.href = address;
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(address), 60000);
}

// Calls fn now and then every so often while somebody looks; returns what ends that.
export function poll(fn, ms) {
    let timer = 0, ended = false;
    const turn = async () => {
        if (!document.hidden) await fn();
        if (!ended) timer = setTimeout(turn, ms);
    };
    turn();
    return () => {
        ended = true;
        clearTimeout(timer);
    };
}
