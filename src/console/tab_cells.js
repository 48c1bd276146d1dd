// SPDX-License-Identifier: MIT
// Cells: pieces of code for live interpreters of the sandbox, one for each language, whose state stays.
import {events, get, post, segment} from './api.js';
import {attempt, button, fill, h, select} from './dom.js';
import {editor} from './editor.js';
import {resultView} from './result.js';
import {load, save} from './store.js';

const languages = ['python', 'javascript', 'typescript', 'bash', 'r'];
const first = [{language: 'python', code: 'import pandas as pd\n\nframe = pd.DataFrame({"n": range(1, 6)})\nframe["square"] = frame.n ** 2\nframe'},
    {language: 'python', code: 'frame.plot(x="n", y="square");'}];

export function mount(root, id) {
    const at = `/v1/sandboxes/${segment(id)}`;
    const name = `cells:${id}`;
    const cells = load(name, first).map(cell => ({...cell}));
    const list = h('ol', {class: 'cells'});
    const keep = () => save(name, cells.map(({language, code}) => ({language, code})));
    const views = new Map();

    function view(cell) {
        const result = resultView();
        const count = h('small', {}, '[ ]');
        let abort = null;
        const code = editor({value: cell.code, language: cell.language, label: `Cell in ${cell.language}`,
            onchange: text => { cell.code = text; keep(); }, onrun: () => run()});
        code.element.classList.add('small');
        const runIt = button('Run', () => run(), {'aria-label': 'Run this cell', title: 'Ctrl+Enter'});
        const stop = button('Stop', () => abort?.abort(), {disabled: true});

        async function run() {
            if (abort) return true;
            abort = new AbortController();
            runIt.disabled = true;
            stop.disabled = false;
            count.textContent = '[*]';
            result.clear('Running…');
            let good = false;
            try {
                for await (const {event, data} of events('POST', `${at}/cells`, {json: {language: cell.language, code: cell.code}, signal: abort.signal})) {
                    if (event === 'end') {
                        result.end(data, true);
                        count.textContent = `[${data.execution_count ?? ' '}]`;
                        good = data.status === 'ok';
                    } else {
                        result.on(event, data);
                    }
                }
            } catch (error) {
                if (error.name === 'AbortError') result.clear('Stopped.');
                else result.fail(error);
            }
            abort = null;
            runIt.disabled = false;
            stop.disabled = true;
            return good;
        }

        const element = h('li', {class: 'cell'},
            h('div', {class: 'row'}, count, select(languages, cell.language, language => { cell.language = language; code.setLanguage(language); keep(); }, {'aria-label': 'Language of the cell'}),
                runIt, stop, h('span', {class: 'grow'}), button('Remove', () => {
                    cells.splice(cells.indexOf(cell), 1);
                    views.delete(cell);
                    abort?.abort();
                    code.close();
                    element.remove();
                    keep();
                }, {'aria-label': 'Remove this cell'})), code.element, result.element);
        return {element, run, end: () => { abort?.abort(); code.close(); }};
    }

    function add(cell) {
        const one = view(cell);
        views.set(cell, one);
        list.append(one.element);
    }

    async function runAll() {
        for (const cell of cells) if (!await views.get(cell).run()) return;
    }

    async function restart() {
        const {contexts} = await get(`${at}/contexts`);
        for (const one of contexts) await post(`${at}/contexts/${segment(one.id)}/restart`);
    }

    fill(root, h('div', {class: 'row'}, button('Run all', runAll, {class: 'primary'}),
        button('Restart interpreters', () => attempt(restart, 'The interpreters are new; their state is gone')),
        h('span', {class: 'grow'}), h('small', {}, 'Cells of one language share their state')), list,
        button('Add a cell', () => {
            const cell = {language: cells.at(-1)?.language ?? 'python', code: ''};
            cells.push(cell);
            add(cell);
            keep();
        }));
    cells.forEach(add);
    return () => { for (const one of views.values()) one.end(); };
}
