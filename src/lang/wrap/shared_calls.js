// SPDX-License-Identifier: MIT
/*
 * Stands before call_javascript.js and quickjs.js, which share it: what calls of functions need of
 * JavaScript and not of its host. Each has a function size(text), the bytes of a text as UTF-8.
 */
'use strict';

const HEAD = 9;
const ANONYMOUS = '__anonymous_wrapper__';
const PARAMETERS = ['exports', 'require', 'module', '__filename', '__dirname', '__sandbox__'];
const IDENTIFIER = /^[\p{ID_Start}$_][\p{ID_Continue}$\u200c\u200d]*$/u;
const ANY_NAME = '(name)=>{"use strict";return eval(name)}';
const STACK_MAX = 64 * 1024;
const MESSAGE_MAX = 16 * 1024;

const { stringify, parse } = JSON;

// ---- arguments ----

/* Positions are filled already, as far as names are known; a hole is `undefined`, which makes a
   default apply. What is left by name becomes one last object. */
function bind(event) {
    return place(givenArguments(event), event.optionsAt);
}

function place({ args, kwargs, holes }, optionsAt) {
    for (const i of holes || []) args[i] = undefined;
    if (Object.keys(kwargs).length === 0) return args;
    const at = optionsAt === undefined ? args.length : optionsAt;
    if (at < args.length && args[at] !== undefined && args[at] !== null &&
        typeof args[at] === 'object') {
        args[at] = { ...args[at], ...kwargs };
    } else {
        while (args.length < at) args.push(undefined);
        args[at] = kwargs;
    }
    return args;
}

// ---- names ----

/* A function that tells what the program calls by that name; without one, by the name it is given:
   a session learns of names only when it is called. */
function peekAt(name) {
    if (name === undefined) return ANY_NAME;
    const root = name.split('.')[0];
    return IDENTIFIER.test(root) && root !== 'default' ? `()=>typeof ${root}==="undefined"?void 0:${root}`
        : '()=>void 0';
}

// ---- values ----

async function collect(value) {
    const items = [];
    for await (const item of value) items.push(item);
    return items;
}

function isGenerator(value) {
    return value !== null && typeof value === 'object' && typeof value.next === 'function' &&
        (typeof value[Symbol.iterator] === 'function' ||
            typeof value[Symbol.asyncIterator] === 'function');
}

/* Maps and sets have a JSON form here; a number that JSON lacks is an error: null would be another value. */
function replacer(key, value) {
    if (value instanceof Set) return [...value];
    if (value instanceof Map) return Object.fromEntries(value);
    if (typeof value === 'number' && !isFinite(value)) {
        throw new RangeError(`JSON has neither NaN nor infinite numbers, but there is one${
            key === '' ? '' : ` at '${key}'`}; return null or a string instead`);
    }
    return value;
}

function valueText(value) {
    if (typeof value === 'function' || typeof value === 'symbol') {
        throw new TypeError(`a ${typeof value} is not JSON serializable`);
    }
    const text = stringify(value, replacer);
    return text === undefined ? 'null' : text;
}

function checkSize(text, most, what = 'returned value') {
    const n = size(text);
    if (n > most) {
        throw new RangeError(`the ${what} has ${n} bytes as JSON, at most ${most} are allowed`);
    }
    return text;
}
