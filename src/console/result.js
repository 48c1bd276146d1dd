// SPDX-License-Identifier: MIT
// What became of a run: output while it comes, then the end in words, values, pictures, files and times.
import {blobUrl, download, pathOf, segment, send} from './api.js';
import {button, fill, h, problem} from './dom.js';
import * as rich from './rich.js';
import {bytes, ending, ms} from './words.js';

const stages = [['queue', 'waiting for a place'], ['start', 'a sandbox'], ['run', 'the program'], ['collect', 'its files']];

function timings(times) {
    if (!times) return null;
    const parts = stages.map(([name, what]) => ({name, what, ms: times[`${name}_ms`] ?? 0})).filter(part => part.ms > 0);
    return h('div', {class: 'timings', role: 'group', 'aria-label': 'Times'},
        h('div', {class: 'bar', 'aria-hidden': 'true'}, parts.map(part => h('span', {class: part.name, style: `flex-grow:${part.ms}`}))),
        h('p', {}, parts.map(part => h('span', {class: 'key'}, h('i', {class: part.name}), `${part.name} ${ms(part.ms)} `)),
            `total ${ms(times.total_ms ?? parts.reduce((sum, part) => sum + part.ms, 0))}`));
}

function preview(id, file) {
    const path = `/v1/executions/${segment(id)}/artifacts/${pathOf(file.path)}`;
    const place = h('div', {class: 'preview'});
    const show = async () => {
        try {
            if (file.mime_type?.startsWith('image/') && file.size < 16 << 20)
                fill(place, h('img', {src: await blobUrl(path), alt: file.path}));
            else if (/\.csv$/.test(file.path) && file.size < 1 << 20)
                fill(place, rich.csv(await (await send('GET', path)).text()));
            else if (/\.html?$/.test(file.path) && file.size < 1 << 20)
                fill(place, rich.html(await (await send('GET', path)).text()));
        } catch (error) {
            fill(place, problem(error));
        }
    };
    show();
    return h('li', {}, h('div', {class: 'row'},
        h('code', {}, file.path), h('small', {}, bytes(file.size)),
        button('Download', () => download(path, file.path.split('/').pop()).catch(error => fill(place, problem(error))), {'aria-label': `Download ${file.path}`})), place);
}

function artifacts(result) {
    const files = result.artifact_metadata ?? [];
    return files.length > 0 && h('div', {}, h('h2', {}, 'Files'),
        h('ul', {class: 'files'}, files.map(file => preview(result.execution_id, file))));
}

function denied(list) {
    return list?.length > 0 && h('ul', {class: 'hint'}, list.map(one => h('li', {}, `${one.what}: ${one.advice}`)));
}

const good = result => ['success', 'ok'].includes(result.status) || (result.status === undefined && result.code === 0);

// Why, in words, as each family tells it.
function words(result) {
    if (result.code !== undefined && result.termination === undefined) return `It ended with status ${result.code}.`;
    if (result.termination) return ending({exit_code: result.exit_code ?? result.exitCode ?? result.code, ...result});
    const cells = {ok: 'Done.', error: 'It failed.', timeout: 'Its time was up, so it was interrupted.', interrupted: 'It was interrupted.',
        crashed: 'The interpreter ended under the cell; its state is lost.'};
    return cells[result.status] ?? '';
}

export function resultView() {
    const status = h('div', {class: 'status', role: 'status', 'aria-live': 'polite'});
    const output = h('pre', {class: 'output', tabindex: '0', 'aria-label': 'Output'});
    const progress = h('div', {});
    const displayed = h('div', {class: 'displayed'});
    const rest = h('div', {});
    const element = h('div', {class: 'result', role: 'group', 'aria-label': 'Result'}, status, progress, output, displayed, rest);
    output.hidden = true;

    const write = (stream, text) => {
        if (!text) return;
        const atEnd = output.scrollTop + output.clientHeight >= output.scrollHeight - 8;
        output.hidden = false;
        output.append(stream === 'stdout' ? text : h('span', {class: 'stderr'}, text));
        if (atEnd) output.scrollTop = output.scrollHeight;
    };

    return {
        element,
        clear(saying) {
            fill(status, saying ?? '');
            fill(output);
            output.hidden = true;
            for (const place of [progress, displayed, rest]) fill(place);
        },
        // An event of a run under way.
        on(event, data) {
            if (event === 'stdout' || event === 'stderr') write(event, data.data ?? data.text ?? '');
            else if (event === 'display') displayed.append(rich.bundle(data.data ?? data));
            else if (event === 'clear') fill(displayed);
            else if (event === 'progress') fill(progress, h('p', {class: 'progress'}, `Progress: ${JSON.stringify(data)}`));
            else if (event === 'error') displayed.append(h('pre', {class: 'stderr'}, traceback(data)));
        },
        // streamed: what it wrote has been shown already
        end(result, streamed) {
            if (!streamed) {
                write('stdout', result.stdout);
                write('stderr', result.stderr);
                for (const one of result.results ?? []) displayed.append(rich.bundle(one.data));
            }
            fill(progress);
            const value = result.return_value ?? result.result;
            fill(status, h('span', {class: good(result) ? 'badge good' : 'badge bad'}, result.status ?? (result.code === 0 ? 'success' : 'failed')),
                h('span', {class: 'words'}, words(result)),
                (result.termination?.hint || result.hint) && h('p', {class: 'hint'}, result.termination?.hint ?? result.hint),
                denied(result.denied));
            fill(rest,
                (result.stdout_truncated || result.stderr_truncated) && h('p', {class: 'hint'}, 'It wrote more than is kept.'),
                result.error && (result.error.stack || result.error.traceback) && !streamed && h('pre', {class: 'stderr'}, traceback(result.error)),
                value !== null && value !== undefined && h('div', {}, h('h2', {}, 'Value'), rich.json(value)),
                artifacts(result), timings(result.timings));
        },
        fail(error) { fill(status, problem(error)); },
    };
}

function traceback(error) {
    const lines = error.traceback ?? error.stack ?? `${error.name}: ${error.value}`;
    // colours of IPython
    return (Array.isArray(lines) ? lines.join('\n') : lines).replace(/\x1b\[[0-9;]*m/g, '');
}
