// SPDX-License-Identifier: MIT
// The module `sbx` of a cell: tools that its run may call, over the channel of the interpreter. The frames are those of
// cells_tools.py.
//
//     const { tools, progress, ToolError } = require('sbx');
//     await tools.NAME({ arg: 1 });      tools.group.name({...}) and tools.call('group.name', {...}) do the same
//     await tools.search('words');
'use strict';

const Module = require('node:module');

const AT_ONCE = 8; // as the daemon has it (app/tools/code_run.h)

class ToolError extends Error {
    constructor(error) {
        super(`${error.type || 'Error'}: ${error.message || ''}` + (error.hint ? ` (${error.hint})` : ''));
        this.name = 'ToolError';
        this.type = error.type || 'Error';
        this.hint = error.hint || '';
    }
}

// event: sends one; isRunning: does a cell run that events belong to?
function makeTools(event, isRunning) {
    const waiting = [], pending = new Map();
    let number = 0;

    function next() {
        while (waiting.length && pending.size < AT_ONCE) {
            const { fields, done, failed } = waiting.shift();
            pending.set(++number, { done, failed });
            try {
                event({ call: number, ...fields });
            } catch (e) {
                pending.delete(number);
                failed(e);
            }
        }
    }

    function ask(fields) {
        return new Promise((done, failed) => {
            if (!isRunning()) {
                failed(new ToolError({ type: 'NotAllowed', message: 'no cell runs that may call tools' }));
                return;
            }
            waiting.push({ fields, done, failed });
            next();
        });
    }

    // A frame of the daemon.
    function answer(text) {
        const got = JSON.parse(text), call = pending.get(got.call);
        if (!call) return;
        pending.delete(got.call);
        if (got.ok) call.done(got.value);
        else call.failed(new ToolError(got.error || {}));
        next();
    }

    // Between two cells: an answer that comes now is nobody's.
    function forget() {
        const error = new ToolError({ type: 'NotAllowed', message: 'the cell that called has ended' });
        for (const { failed } of [...pending.values(), ...waiting.splice(0)]) failed(error);
        pending.clear();
    }

    const call = (tool, args) => ask({ type: 'call', tool: String(tool), arguments: args || {} });
    const own = { call, search: (words = '') => ask({ type: 'search', text: String(words) }) };
    const named = (name) => new Proxy(() => {}, {
        get: (_, part) => (typeof part === 'symbol' || part === 'then' ? undefined
            : name === '' && own[part] || named(name === '' ? part : `${name}.${part}`)),
        apply: (_, self, [args]) => call(name, args),
    });
    const module = {
        tools: named(''),
        ToolError,
        progress: (done, total = null, text = null) => {
            if (isRunning()) event({ type: 'progress', data: { done, total, text } });
        },
    };
    const load = Module._load;
    Module._load = (request, ...rest) => (request === 'sbx' ? module : load(request, ...rest));
    return { module, answer, forget };
}

module.exports = { makeTools };
