// SPDX-License-Identifier: MIT
// Functions: paste code, see what can be called and how, fill a form, call.
import {post} from './api.js';
import {button, field, fill, h, problem, select} from './dom.js';
import {editor} from './editor.js';
import {resultView} from './result.js';
import {load, save} from './store.js';

const languages = ['python', 'javascript', 'ruby', 'php', 'c', 'cpp'];
const first = {language: 'python', code: `def area(width: float, height: float = 2.0, *, unit: str = "m") -> str:
    """How large is it?

    Args:
        width: from left to right
        height: from top to bottom
    """
    return f"{width * height} {unit}²"
`, values: {}};

const typeOf = schema => Array.isArray(schema?.type) ? schema.type.find(t => t !== 'null') : schema?.type;

// The input for one parameter, and how its value is read; undefined: not given.
function input(name, schema, required, known) {
    const type = typeOf(schema);
    const value = known ?? (schema?.default === undefined || schema.default === null ? '' : typeof schema.default === 'string' ? schema.default : JSON.stringify(schema.default));
    const label = `${name}${required ? '' : ' (optional)'}`;
    const hint = [type ?? 'JSON', schema?.description].filter(Boolean).join(': ');
    if (schema?.enum) {
        const box = select(schema.enum.map(String), value || String(schema.enum[0]));
        return {name, element: field(label, box, hint), box, read: () => schema.enum.find(v => String(v) === box.value)};
    }
    if (type === 'boolean') {
        const box = select([['', '–'], 'true', 'false'], value);
        return {name, element: field(label, box, hint), box, read: () => box.value === '' ? undefined : box.value === 'true'};
    }
    if (type === 'string') {
        const box = h('input', {value, required});
        return {name, element: field(label, box, hint), box, read: () => box.value === '' && !required ? undefined : box.value};
    }
    const number = type === 'integer' || type === 'number';
    const box = number ? h('input', {value, required, inputmode: 'decimal'}) : h('textarea', {class: 'code', rows: '2', value, required});
    return {name, element: field(label, box, number ? hint : `${hint} as JSON`), box, read: () => {
        if (box.value.trim() === '') return undefined;
        try {
            return JSON.parse(box.value);
        } catch (error) {
            throw Object.assign(new Error(`${name} is not JSON`), {detail: error.message, hint: 'A text stands between double quotes.'});
        }
    }};
}

export function mount(root) {
    const draft = {...first, ...load('function', {})};
    const keep = () => save('function', draft);
    const result = resultView();
    const found = h('div', {});
    let timer = 0, turn = 0, chosen = null, inputs = [];

    const code = editor({value: draft.code, language: draft.language, label: 'Code with functions', onchange: text => { draft.code = text; changed(); }, onrun: () => call()});
    const language = select(languages, draft.language, name => { draft.language = name; code.setLanguage(name); changed(); }, {'aria-label': 'Language'});

    function changed() {
        keep();
        clearTimeout(timer);
        timer = setTimeout(inspect, 500);
    }

    async function inspect() {
        const mine = ++turn;
        try {
            const told = await post('/v1/functions/inspect', {language: draft.language, code: draft.code});
            if (mine === turn) show(told);
        } catch (error) {
            if (mine === turn) fill(found, problem(error));
        }
    }

    function show(told) {
        const callable = told.functions.filter(f => !f.refused && f.kind !== 'declaration' && !f.shadowed);
        const refused = told.functions.filter(f => f.refused);
        const name = [draft.name, told.detected?.name].find(n => callable.some(f => f.qualifiedName === n)) ?? callable[0]?.qualifiedName;
        fill(found, told.syntaxError && h('p', {class: 'hint'}, `Line ${told.syntaxError.line} cannot be read.`),
            callable.length ? field('Function', select(callable.map(f => [f.qualifiedName, signature(f)]), name, pick)) : h('p', {}, 'No function that can be called.'),
            refused.length > 0 && h('ul', {class: 'hint'}, refused.map(f => h('li', {}, `${f.qualifiedName}: ${f.refused}`))), form);
        const pickNow = n => callable.find(f => f.qualifiedName === n);
        function pick(n) {
            draft.name = n;
            keep();
            makeForm(pickNow(n));
        }
        makeForm(pickNow(name));
    }

    const signature = f => `${f.qualifiedName}(${f.parameters.map(p => p.name + (p.type ? `: ${p.type}` : '') + (p.default === null ? '' : ` = ${p.default}`)).join(', ')})${f.returnType ? ` → ${f.returnType}` : ''}`;

    const form = h('form', {onsubmit: event => {
        event.preventDefault();
        call();
    }});

    function makeForm(f) {
        chosen = f;
        if (!f) return fill(form);
        const schema = f.tool?.parameters ?? {};
        inputs = Object.entries(schema.properties ?? {}).map(([name, one]) => input(name, one, schema.required?.includes(name), draft.values?.[name]));
        fill(form, f.docstring && h('p', {class: 'about'}, f.docstring), inputs.map(one => one.element), button('Call', null, {type: 'submit', class: 'primary'}));
        for (const one of inputs)
            one.box.addEventListener('input', () => {
                draft.values = {...draft.values, [one.name]: one.box.value};
                keep();
            });
    }

    async function call() {
        if (!chosen) return;
        result.clear('Calling…');
        try {
            const args = Object.fromEntries(inputs.map(one => [one.name, one.read()]).filter(([, value]) => value !== undefined));
            result.end(await post('/v1/functions/call', {language: draft.language, code: draft.code, functionName: chosen.qualifiedName, args}), false);
        } catch (error) {
            result.fail(error);
        }
    }

    fill(root, h('h1', {class: 'hidden'}, 'Functions'), h('div', {class: 'playground'},
        h('section', {'aria-label': 'Code'}, h('div', {class: 'row bar-top'}, language, h('small', {}, 'Signatures are found without running the code')), code.element),
        h('section', {'aria-label': 'Call'}, found, result.element)));
    inspect();
    return () => {
        turn++;
        clearTimeout(timer);
        code.close();
    };
}
