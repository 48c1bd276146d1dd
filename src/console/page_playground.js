// SPDX-License-Identifier: MIT
// Playground: code, run, see. The draft and the run under way survive a reload.
import {button, copy, field, fill, h, select, tabs, toast} from './dom.js';
import {editor} from './editor.js';
import {examples} from './examples.js';
import {families} from './families.js';
import {resultView} from './result.js';
import {kinds, snippet} from './snippets.js';
import {load, save} from './store.js';

const labels = {event: 'Event (JSON, for a handler)', stdin: 'Standard input', timeout: 'Time limit in seconds', functionName: 'Function (empty: the only one)', args: 'Arguments (JSON)'};

export function mount(root) {
    const draft = load('draft', {...examples[0]});
    const result = resultView();
    const options = h('div', {class: 'options'});
    const more = h('div', {class: 'snippet'});
    let running = null; // {abort, id}

    const keep = () => save('draft', draft);
    const code = editor({
        value: draft.code, language: draft.language, label: 'Code',
        onchange: text => { draft.code = text; keep(); showSnippet(); }, onrun: run,
    });
    const runButton = button('Run', run, {class: 'primary', title: 'Ctrl+Enter'});
    const stopButton = button('Stop', stop, {disabled: true});
    const family = select(Object.entries(families).map(([name, f]) => [name, f.label]), draft.family, name => {
        draft.family = name;
        if (!families[name].languages.includes(draft.language)) draft.language = families[name].languages[0];
        changed();
    }, {'aria-label': 'Family of requests'});
    const language = h('span', {});
    const about = h('small', {class: 'about'});

    function changed() {
        const f = families[draft.family];
        family.value = draft.family;
        about.textContent = f.about;
        if (language.family !== draft.family)
            fill(language, select(f.languages, draft.language, name => { draft.language = name; changed(); }, {'aria-label': 'Language'}));
        language.family = draft.family;
        language.firstChild.value = draft.language;
        code.setLanguage(draft.language);
        const words = {execute: 'Event, input, limits', function: 'Function, arguments, limits'};
        fill(options, h('details', {open: f.fields.some(name => draft[name])}, h('summary', {}, words[draft.family] ?? 'Input, limits'), f.fields.map(name => field(labels[name], name === 'timeout' || name === 'functionName'
            ? h('input', {value: draft[name] ?? '', inputmode: name === 'timeout' ? 'decimal' : 'text', oninput: event => set(name, event.target.value)})
            : h('textarea', {rows: '3', class: 'code', spellcheck: 'false', value: draft[name] ?? '', oninput: event => set(name, event.target.value)})))));
        keep();
        showSnippet();
    }

    function set(name, value) {
        draft[name] = value;
        keep();
        showSnippet();
    }

    let kind = load('snippet', 'curl');
    const snippetText = h('pre', {tabindex: '0', 'aria-label': 'The same request'});
    function showSnippet() {
        try {
            snippetText.textContent = snippet(kind, families[draft.family].request(draft));
        } catch (error) {
            snippetText.textContent = `${error.message}: ${error.detail}`;
        }
    }
    fill(more, h('details', {}, h('summary', {}, 'The same as curl, Python, JavaScript'),
        tabs(kinds.map(name => ({name, label: name})), kind, name => { kind = name; save('snippet', name); showSnippet(); }, 'Form of the request'),
        snippetText, button('Copy', () => copy(snippetText.textContent))));

    function choose(example) {
        for (const name of Object.keys(draft)) delete draft[name];
        Object.assign(draft, example);
        code.set(example.code);
        changed();
    }

    function busy(now) {
        running = now;
        runButton.disabled = !!now;
        stopButton.disabled = !now;
    }

    // What goes on is told by `work`; the page may be left meanwhile.
    async function during(work) {
        const abort = new AbortController();
        let streamed = false;
        busy({abort, id: null});
        try {
            const answer = await work((event, data) => {
                if (event === 'id') {
                    running.id = data;
                    save('running', data);
                } else {
                    streamed ||= event === 'stdout' || event === 'stderr' || event === 'display' || event === 'error';
                    result.on(event, data);
                }
            }, abort.signal);
            result.end(answer, streamed);
            save('running', null);
            if (draft.family === 'execute') save('shown', answer.execution_id);
        } catch (error) {
            if (error.name !== 'AbortError') result.fail(error);
            else if (running) result.clear('Stopped.');
        }
        if (running?.abort === abort) busy(null);
    }

    function run() {
        if (running) return;
        result.clear('Running…');
        if (innerWidth < 960) result.element.scrollIntoView({behavior: 'smooth'});
        during((on, signal) => families[draft.family].run({...draft}, on, signal));
    }

    async function stop() {
        const now = running;
        if (!now) return;
        if (!now.id) return now.abort.abort();
        try {
            await families.execute.stop(now.id); // its end comes as its result
        } catch (error) {
            toast(error.message, 'error');
        }
    }

    const list = h('select', {'aria-label': 'Examples', onchange: event => {
        if (event.target.value !== '') choose(examples[event.target.value]);
        event.target.value = '';
    }}, h('option', {value: ''}, 'Examples…'), Object.entries(families).map(([name, f]) =>
        h('optgroup', {label: f.label}, examples.map((example, i) => example.family === name && h('option', {value: i}, example.title)).filter(Boolean))));

    fill(root, h('h1', {class: 'hidden'}, 'Playground'),
        h('div', {class: 'playground'},
            h('section', {'aria-label': 'Program'},
                h('div', {class: 'row bar-top'}, family, language, list, h('span', {class: 'grow'}), stopButton, runButton),
                about, code.element, options, more),
            result.element));
    changed();

    // After a reload: the run that was under way, or the last result.
    const before = load('running', null), shown = load('shown', null);
    const again = draft.family === 'execute' && (before ?? shown);
    if (again)
        families.execute.find(again).then(
            found => { if (!running) during((on, signal) => {
                if (found.state !== 'done') on('id', again);
                return families.execute.resume(again, on, signal);
            }); },
            () => { save('running', null); save('shown', null); });
    else
        result.clear('Press Run, or Ctrl+Enter. The program runs in a sandbox of its own.');

    return () => {
        running?.abort.abort();
        running = null;
        code.close();
    };
}
