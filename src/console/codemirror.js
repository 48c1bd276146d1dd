// SPDX-License-Identifier: MIT
// CodeMirror with the languages that run here. Colours are classes (style.css), so that light and dark are the page's.
import {autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap} from '@codemirror/autocomplete';
import {defaultKeymap, history, historyKeymap, indentWithTab} from '@codemirror/commands';
import {javascript} from '@codemirror/lang-javascript';
import {json} from '@codemirror/lang-json';
import {python} from '@codemirror/lang-python';
import {bracketMatching, indentOnInput, indentUnit, StreamLanguage, syntaxHighlighting} from '@codemirror/language';
import {c, cpp} from '@codemirror/legacy-modes/mode/clike';
import {perl} from '@codemirror/legacy-modes/mode/perl';
import {r} from '@codemirror/legacy-modes/mode/r';
import {ruby} from '@codemirror/legacy-modes/mode/ruby';
import {shell} from '@codemirror/legacy-modes/mode/shell';
import {highlightSelectionMatches, searchKeymap} from '@codemirror/search';
import {Compartment, EditorState, Prec} from '@codemirror/state';
import {drawSelection, EditorView, highlightActiveLine, highlightSpecialChars, keymap, lineNumbers} from '@codemirror/view';
import {classHighlighter} from '@lezer/highlight';

const stream = mode => () => StreamLanguage.define(mode);
const languages = {
    python: () => python(), javascript: () => javascript(), typescript: () => javascript({typescript: true}),
    json: () => json(), shell: stream(shell), bash: stream(shell), ruby: stream(ruby), perl: stream(perl), c: stream(c), cpp: stream(cpp), r: stream(r),
};
const languageOf = name => [languages[name]?.() ?? [], indentUnit.of(name === 'ruby' || name === 'json' ? '  ' : '    ')];
const compartments = new WeakMap();

export function create(parent, options) {
    const language = new Compartment();
    const view = new EditorView({
        parent,
        state: EditorState.create({
            doc: options.value,
            extensions: [
                Prec.highest(keymap.of([
                    {key: 'Mod-Enter', run: () => { options.onrun?.(); return true; }},
                    {key: 'Escape', run: it => { it.setTabFocusMode(2000); return false; }}, // the next Tab leaves
                ])),
                lineNumbers(), highlightSpecialChars(), history(), drawSelection(), indentOnInput(), bracketMatching(), closeBrackets(),
                autocompletion(), highlightActiveLine(), highlightSelectionMatches(), EditorView.lineWrapping,
                syntaxHighlighting(classHighlighter),
                keymap.of([...closeBracketsKeymap, ...defaultKeymap, ...searchKeymap, ...historyKeymap, ...completionKeymap, indentWithTab]),
                language.of(languageOf(options.language)),
                EditorView.contentAttributes.of({'aria-label': options.label, 'aria-description': 'Escape, then Tab, leaves the editor'}),
                EditorView.updateListener.of(update => {
                    if (update.docChanged) options.onchange(update.state.doc.toString());
                }),
            ],
        }),
    });
    compartments.set(view, language);
    return view;
}

export function replace(view, text) {
    view.dispatch({changes: {from: 0, to: view.state.doc.length, insert: text}});
}

export function setLanguage(view, name) {
    view.dispatch({effects: compartments.get(view).reconfigure(languageOf(name))});
}
