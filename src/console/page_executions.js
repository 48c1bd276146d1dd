// SPDX-License-Identifier: MIT
// Executions: those under way and those that are kept.
import {events, get, poll, remove, segment} from './api.js';
import {attempt, button, fill, h, problem, select} from './dom.js';
import {resultView} from './result.js';
import {ago, ms} from './words.js';

export function mount(root, [chosen]) {
    const list = h('div', {class: 'scroll'});
    const detail = h('div', {});
    let state = '', shown = null, following = null;

    async function refresh() {
        try {
            const {executions} = await get(`/v1/executions?limit=100${state ? `&state=${state}` : ''}`);
            const now = executions.map(x => x.execution_id + x.state).join();
            if (now === shown) return;
            shown = now;
            fill(list, executions.length ? h('table', {},
                h('thead', {}, h('tr', {}, ['Execution', 'State', 'Language', 'Begun', 'Took', 'Why it ended'].map(name => h('th', {scope: 'col'}, name)), h('td', {}))),
                h('tbody', {}, executions.map(row))) : h('p', {}, 'There is none.'));
        } catch (error) {
            shown = null;
            fill(list, problem(error));
        }
    }

    function row(x) {
        const done = x.state === 'done';
        return h('tr', {}, h('td', {}, h('a', {href: `#/executions/${segment(x.execution_id)}`}, x.execution_id)),
            h('td', {}, h('span', {class: `badge ${!done ? 'warm' : x.status === 'success' ? 'good' : 'bad'}`}, done ? x.status : x.state)),
            h('td', {}, x.language), h('td', {}, `${ago(x.created_at)} ago`), h('td', {}, done ? ms(x.total_ms) : ''), h('td', {}, x.reason ?? ''),
            h('td', {class: 'actions'}, button(done ? 'Forget' : 'Cancel', () => attempt(() => remove(`/v1/executions/${segment(x.execution_id)}`)).then(() => { shown = null; refresh(); }),
                {class: 'danger', 'aria-label': `${done ? 'Forget' : 'Cancel'} ${x.execution_id}`})));
    }

    async function follow(id) {
        const result = resultView();
        following = new AbortController();
        let streamed = false;
        fill(detail, h('section', {class: 'card', 'aria-label': 'One execution'}, h('div', {class: 'row'}, h('h2', {}, id), h('span', {class: 'grow'}), h('a', {href: '#/executions'}, 'Close')), result.element));
        result.clear('Under way…');
        try {
            for await (const {event, data} of events('GET', `/v1/executions/${segment(id)}`, {signal: following.signal})) {
                if (event === 'result') {
                    result.end(data, streamed);
                } else {
                    streamed ||= event !== 'progress';
                    result.on(event, data);
                }
            }
        } catch (error) {
            if (error.name !== 'AbortError') result.fail(error);
        }
    }

    fill(root, h('div', {class: 'row'}, h('h1', {}, 'Executions'), h('span', {class: 'grow'}),
        select([['', 'All'], ['queued', 'Queued'], ['running', 'Running'], ['done', 'Done']], '', value => { state = value; refresh(); }, {'aria-label': 'Which'})),
        detail, h('section', {class: 'card', 'aria-label': 'Executions there are'}, list));
    if (chosen) follow(chosen);
    const end = poll(refresh, 2000);
    return () => {
        end();
        following?.abort();
    };
}
