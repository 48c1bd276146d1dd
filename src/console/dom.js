// SPDX-License-Identifier: MIT
// Elements from calls. Text is always text: nothing here parses HTML.

export function h(tag, props, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(props ?? {})) {
        if (value === undefined || value === null || value === false) continue;
        if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
        else if (name === 'value' || name === 'checked' || name === 'disabled' || name === 'open') element[name] = value;
        else element.setAttribute(name, value === true ? '' : value);
    }
    element.append(...children.flat().filter(child => child !== null && child !== undefined && child !== false));
    return element;
}

export function fill(element, ...children) {
    element.replaceChildren(...children.flat().filter(child => child !== null && child !== undefined && child !== false));
    return element;
}

export const button = (label, onclick, props) => h('button', {type: 'button', onclick, ...props}, label);

// A label and what it names.
export function field(label, control, hint) {
    return h('label', {class: 'field'}, h('span', {}, label), control, hint && h('small', {}, hint));
}

export function select(options, value, onchange, props) {
    return h('select', {onchange: event => onchange?.(event.target.value), ...props},
        options.map(option => {
            const [key, label] = Array.isArray(option) ? option : [option, option];
            return h('option', {value: key, selected: key === value}, label);
        }));
}

// Tabs: [{name, label}], of which one is chosen; arrows move between them.
export function tabs(items, current, onchoose, label) {
    const move = (event, by) => {
        const all = [...event.currentTarget.querySelectorAll('[role=tab]')];
        const next = all[(all.indexOf(document.activeElement) + by + all.length) % all.length];
        next.focus();
        next.click();
    };
    const bar = h('div', {
        role: 'tablist', class: 'tabs', 'aria-label': label,
        onkeydown: event => {
            if (event.key === 'ArrowRight') move(event, 1);
            else if (event.key === 'ArrowLeft') move(event, -1);
        },
    });
    const choose = name => {
        for (const tab of bar.children) {
            tab.setAttribute('aria-selected', tab.dataset.name === name);
            tab.tabIndex = tab.dataset.name === name ? 0 : -1;
        }
        onchoose(name);
    };
    for (const item of items)
        bar.append(h('button', {type: 'button', role: 'tab', 'data-name': item.name, onclick: () => choose(item.name)}, item.label));
    queueMicrotask(() => choose(current));
    return bar;
}

// Said to everybody, also to those who listen.
export function toast(words, kind = 'info') {
    let place = document.getElementById('toasts');
    if (!place) document.body.append(place = h('div', {id: 'toasts', role: 'status', 'aria-live': 'polite'}));
    const one = h('div', {class: `toast ${kind}`}, words, button('×', () => one.remove(), {'aria-label': 'Dismiss', class: 'plain'}));
    place.append(one);
    if (kind !== 'error') setTimeout(() => one.remove(), 5000);
}

// An error with its advice, in place of what could not be shown.
export function problem(error) {
    return h('div', {class: 'problem', role: 'alert'},
        h('strong', {}, error.message || String(error)),
        error.detail && h('p', {}, error.detail),
        error.hint && h('p', {class: 'hint'}, error.hint));
}

// Asks in a dialog; null: no.
export function ask(title, body, accept = 'OK') {
    return new Promise(resolve => {
        const dialog = h('dialog', {'aria-label': title, onclose: () => {
            dialog.remove();
            resolve(dialog.returnValue === 'yes' ? Object.fromEntries(new FormData(form)) : null);
        }});
        const form = h('form', {method: 'dialog'}, h('h2', {}, title), body,
            h('div', {class: 'row end'},
                h('button', {value: 'no', formnovalidate: true}, 'Cancel'),
                h('button', {value: 'yes', class: 'primary'}, accept)));
        dialog.append(form);
        form.addEventListener('keydown', event => {
            if (event.key === 'Enter' && event.target.tagName === 'INPUT') {
                event.preventDefault();
                if (form.reportValidity()) dialog.close('yes');
            }
        });
        document.body.append(dialog);
        dialog.showModal();
    });
}

export async function copy(text) {
    try {
        await navigator.clipboard.writeText(text);
        toast('Copied');
    } catch {
        toast('The browser does not let this page copy: select the text instead', 'error');
    }
}

// Does something that may fail, and says so.
export async function attempt(work, success) {
    try {
        await work();
        if (success) toast(success);
        return true;
    } catch (error) {
        toast([error.message, error.detail, error.hint].filter(Boolean).join('. '), 'error');
        return false;
    }
}
