// SPDX-License-Identifier: MIT
// An editor: at once a text field, soon CodeMirror. The first can be used before the second is there.
import {fill, h} from './dom.js';

// options: value, language, label, onchange(text), onrun()
export function editor(options) {
    let {value = '', language} = options;
    let view = null, code = null;
    const area = h('textarea', {class: 'code', spellcheck: 'false', autocapitalize: 'off', rows: '12', 'aria-label': options.label, value,
        oninput: () => changed(area.value),
        onkeydown: event => {
            if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) {
                event.preventDefault();
                options.onrun?.();
            }
        }});
    const element = h('div', {class: 'editor'}, area);

    function changed(text) {
        value = text;
        options.onchange?.(text);
    }

    import('./codemirror.js').then(module => {
        if (!element.isConnected) return;
        code = module;
        const focused = document.activeElement === area;
        const holder = h('div', {});
        fill(element, holder);
        view = module.create(holder, {...options, value, language, onchange: changed});
        if (focused) view.focus();
    }, () => {}); // the text field goes on

    return {
        element,
        get value() { return value; },
        set(text) {
            if (view) code.replace(view, text);
            else area.value = text;
            changed(text);
        },
        setLanguage(name) {
            language = name;
            if (view) code.setLanguage(view, name);
        },
        focus() { (view ?? area).focus(); },
        close() { view?.destroy(); },
    };
}
