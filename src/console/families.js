// SPDX-License-Identifier: MIT
// What the playground can ask for: each family makes a request of a draft and reads its events and its answer.
import {call, events, get, post, remove, segment, send} from './api.js';

const parsed = (text, what) => {
    try {
        return JSON.parse(text);
    } catch (error) {
        throw Object.assign(new Error(`${what} is not JSON`), {detail: error.message});
    }
};
const seconds = draft => draft.timeout ? {timeout: Number(draft.timeout)} : {};

// The end of a run that answered as a stream: what the event `last` has.
async function follow(stream, on, last) {
    for await (const {event, data} of stream) {
        if (event === last) return data;
        on(event, data);
    }
    throw Object.assign(new Error('The connection ended before the result'), {gone: true});
}

const makeId = () => 'console-' + Array.from(crypto.getRandomValues(new Uint8Array(8)), b => b.toString(16).padStart(2, '0')).join('');

export const families = {
    execute: {
        label: 'Execution', about: 'A fresh sandbox for one run', languages: ['python', 'javascript', 'shell'], fields: ['event', 'stdin', 'timeout'],
        request: draft => ({path: '/execute', json: {
            language: draft.language, code: draft.code,
            ...(draft.event?.trim() ? {event: parsed(draft.event, 'The event')} : {}),
            ...(draft.stdin ? {stdin: draft.stdin} : {}), ...seconds(draft),
        }}),
        // Asked for without waiting and then followed: it survives a reload of the page.
        async run(draft, on, signal) {
            const id = makeId(), {json} = this.request(draft);
            await post('/execute', {...json, execution_id: id}, {headers: {Prefer: 'respond-async'}, signal});
            on('id', id);
            return this.resume(id, on, signal);
        },
        resume: (id, on, signal) => follow(events('GET', `/v1/executions/${segment(id)}`, {signal}), on, 'result'),
        stop: id => remove(`/v1/executions/${segment(id)}`),
        find: id => get(`/v1/executions/${segment(id)}`),
    },
    cell: {
        label: 'Cell', about: 'A live interpreter in the default sandbox; state stays', languages: ['python', 'javascript', 'typescript', 'bash', 'r'], fields: ['timeout'],
        request: draft => ({path: '/v1/sandboxes/default/cells', json: {language: draft.language, code: draft.code, ...seconds(draft)}}),
        run(draft, on, signal) {
            const {path, json} = this.request(draft);
            return follow(events('POST', path, {json, signal}), on, 'end');
        },
    },
    function: {
        label: 'Function', about: 'One call of one function', languages: ['python', 'javascript', 'ruby', 'php', 'perl', 'c', 'cpp'], fields: ['functionName', 'args', 'timeout'],
        request: draft => ({path: '/v1/functions/call', json: {
            language: draft.language, code: draft.code, ...(draft.functionName ? {functionName: draft.functionName} : {}),
            ...(draft.args?.trim() ? {args: parsed(draft.args, 'The arguments')} : {}), ...seconds(draft),
        }}),
        run(draft, on, signal) {
            const {path, json} = this.request(draft);
            return post(path, json, {signal});
        },
    },
    command: {
        label: 'Command', about: 'A shell command in the default sandbox, as Koyeb\'s SDKs run them', languages: ['shell'], fields: ['stdin', 'timeout'],
        request: draft => ({path: '/v1/sandboxes/default/run', json: {cmd: draft.code, ...(draft.stdin ? {stdin: draft.stdin} : {}), ...seconds(draft)}}),
        run(draft, on, signal) {
            const {path, json} = this.request(draft);
            return post(path, json, {signal});
        },
    },
    mcp: {
        label: 'MCP tool', about: 'The tool run_code of the Model Context Protocol, as a language model calls it', languages: ['python', 'javascript', 'shell'], fields: [],
        request: draft => ({path: '/mcp', json: {jsonrpc: '2.0', id: 2, method: 'tools/call', params: {name: 'run_code', arguments: {language: draft.language, code: draft.code}}}}),
        async run(draft, on, signal) {
            const began = await send('POST', '/mcp', {signal, headers: {Accept: mcpAccepts}, json: {jsonrpc: '2.0', id: 1, method: 'initialize', params: {
                protocolVersion: '2025-06-18', capabilities: {}, clientInfo: {name: 'console', version: '1'}}}});
            const session = {'Mcp-Session-Id': began.headers.get('mcp-session-id'), Accept: mcpAccepts};
            await answer(began);
            try {
                const {result, error} = await answer(await send('POST', '/mcp', {json: this.request(draft).json, headers: session, signal}));
                if (error) throw new Error(error.message);
                for (const one of result.content)
                    on('display', one.type === 'image' ? {data: {[one.mimeType]: one.data}} : {data: {'text/plain': one.text ?? JSON.stringify(one)}});
                return {status: result.isError ? 'error' : 'ok'};
            } finally {
                call('DELETE', '/mcp', undefined, {headers: session}).catch(() => {});
            }
        },
    },
    e2b: {
        label: 'E2B cell', about: 'The code interpreter as E2B\'s SDKs call it, in the default sandbox', languages: ['python', 'javascript', 'typescript', 'bash', 'r'], fields: ['timeout'],
        request: draft => ({path: '/execute', json: {language: draft.language, code: draft.code}, sdk: true, seconds: draft.timeout}),
        async run(draft, on, signal) {
            const home = await get('/v1/sandboxes/default', {signal});
            const response = await send('POST', '/execute', {json: this.request(draft).json, signal, headers: {
                'E2b-Sandbox-Id': home.id, 'E2b-Sandbox-Port': '49999', 'X-Access-Token': home.access.token}});
            let status = 'ok';
            for await (const line of lines(response)) {
                if (line.type === 'stdout' || line.type === 'stderr') on(line.type, line);
                else if (line.type === 'result') on('display', {data: e2bBundle(line)});
                else if (line.type === 'error') {
                    status = 'error';
                    on('error', line);
                }
            }
            return {status};
        },
    },
};

const mcpAccepts = 'application/json, text/event-stream';

// One message of the protocol: as JSON, or the last of the events that has a result.
async function answer(response) {
    const text = await response.text();
    if (!response.headers.get('content-type')?.includes('event-stream')) return JSON.parse(text);
    return text.split('\n').filter(line => line.startsWith('data:')).map(line => JSON.parse(line.slice(5))).findLast(m => m.result || m.error);
}

async function* lines(response) {
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = '';
    for (;;) {
        const {done, value} = await reader.read();
        if (done) return;
        rest += value;
        for (let end; (end = rest.indexOf('\n')) >= 0; rest = rest.slice(end + 1))
            if (end) yield JSON.parse(rest.slice(0, end));
    }
}

const e2bTypes = {png: 'image/png', jpeg: 'image/jpeg', svg: 'image/svg+xml', html: 'text/html', markdown: 'text/markdown', json: 'application/json', text: 'text/plain'};
const e2bBundle = line => Object.fromEntries(Object.entries(e2bTypes).filter(([name]) => line[name] !== undefined).map(([name, type]) => [type, line[name]]));
