// SPDX-License-Identifier: MIT
// How this page gets its key. The address that a person opened has a ticket behind '#', which a browser sends to
// nobody. It is taken out of the address before anything else happens and exchanged for a key. The key is kept in
// sessionStorage: other tabs do not see it, and it ends with this one.
import {call, getKey, post, setKey, ApiError} from './api.js';
import {button, fill, h, problem} from './dom.js';

function takeTicket() {
    const found = /^#ticket=([0-9a-f]+)$/.exec(location.hash);
    if (found) history.replaceState(null, '', location.pathname);
    return found?.[1];
}

// Resolves when requests are answered; shows a form in `place` as long as they are not.
export async function logIn(place) {
    const ticket = takeTicket();
    let why = null;
    if (ticket) {
        try {
            setKey((await post('/console/login', {ticket})).key);
        } catch (error) {
            why = error;
        }
    }
    for (;;) {
        try {
            await call('GET', '/info');
            return;
        } catch (error) {
            if (error.status !== 401 && error.status !== 403) {
                await showGone(place, error);
                continue;
            }
            if (getKey() && !why) why = Object.assign(new Error('This session has ended'), {hint: 'Nothing you typed is lost.'});
            setKey(null);
            await showForm(place, why);
            why = null;
        }
    }
}

function showGone(place, error) {
    fill(place, h('main', {class: 'narrow'}, h('h1', {}, 'Sandbox Executor'), problem(error)));
    return new Promise(resolve => setTimeout(resolve, 1000));
}

function showForm(place, why) {
    return new Promise(resolve => {
        const secret = h('input', {type: 'password', name: 'secret', autocomplete: 'current-password', required: true, 'aria-describedby': 'where'});
        const said = h('div', {});
        const form = h('form', {onsubmit: async event => {
            event.preventDefault();
            try {
                setKey((await call('POST', '/console/sessions', undefined, {headers: {Authorization: `Bearer ${secret.value}`}})).key);
                resolve();
            } catch (error) {
                fill(said, problem(error instanceof ApiError && error.status === 401 ? new Error('That is not the secret') : error));
            }
        }},
        h('label', {class: 'field'}, h('span', {}, 'Secret of the daemon'), secret),
        h('p', {id: 'where'}, 'Open the address that the daemon printed at its start, once; or give its secret. The start names the file that it is in (',
            h('code', {}, 'Secret'), '). The page keeps neither of them: it gets a key of its own for this tab.'),
        button('Open the console', null, {type: 'submit', class: 'primary'}));
        fill(place, h('main', {class: 'narrow'}, h('h1', {}, 'Sandbox Executor'), why && problem(why), said, form));
        secret.focus();
    });
}
