// SPDX-License-Identifier: MIT
// What the playground can ask for: each family makes a request of a draft and reads its events and its answer.
import {events, get, post, remove, segment} from './api.js';

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
        label: 'Cell', about: 'A live interpreter in the default sandbox; state stays', languages: ['python', 'javascript', 'typescript', 'bash'], fields: ['timeout'],
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
};
