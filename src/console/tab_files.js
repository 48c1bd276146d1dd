// SPDX-License-Identifier: MIT
// Files of a sandbox: browse, edit, upload by button or by dropping, download.
import {download, events, pathOf, post, remove, segment, send, upload, blobUrl} from './api.js';
import {ask, attempt, button, field, fill, h, problem} from './dom.js';
import {editor} from './editor.js';
import {load, save} from './store.js';
import {ago, bytes} from './words.js';

const EDIT_MAX = 1 << 20; // bytes that an editor is opened for
const languageOf = {py: 'python', js: 'javascript', mjs: 'javascript', ts: 'typescript', json: 'json', sh: 'shell', rb: 'ruby', pl: 'perl', c: 'c', h: 'c', cpp: 'cpp'};
const join = (folder, name) => `${folder === '/' ? '' : folder}/${name}`;

export function mount(root, id) {
    const at = `/v1/sandboxes/${segment(id)}`;
    const fileAt = path => `${at}/files/${pathOf(path.replace(/^\//, ''))}`;
    let folder = load(`folder:${id}`, '/workspace'), ended = false, watching = null, opened = null;
    const list = h('div', {class: 'scroll drop'});
    const where = h('nav', {class: 'row crumbs', 'aria-label': 'Folder'});
    const progress = h('div', {role: 'status', 'aria-live': 'polite'});
    const place = h('div', {});

    function crumbs() {
        const parts = folder.split('/').filter(Boolean);
        fill(where, button('/', () => go('/'), {class: 'plain', 'aria-label': 'Top'}),
            parts.map((name, i) => [button(name, () => go('/' + parts.slice(0, i + 1).join('/')), {class: 'plain', 'aria-current': i === parts.length - 1}), i < parts.length - 1 && '/']).flat());
    }

    function go(path) {
        folder = path;
        save(`folder:${id}`, path);
        crumbs();
        refresh();
        watch();
    }

    const opens = entry => entry.type === 'directory' || entry.target_type === 'directory' ? go(entry.path) : open(entry);

    async function refresh() {
        try {
            const {entries, next} = await post(`${at}/files/list`, {path: folder, limit: 1000});
            if (ended) return;
            entries.sort((a, b) => (b.type === 'directory') - (a.type === 'directory') || a.name.localeCompare(b.name));
            fill(list, h('table', {},
                h('thead', {}, h('tr', {}, ['Name', 'Size', 'Changed', 'Mode'].map(name => h('th', {scope: 'col'}, name)), h('td', {}))),
                h('tbody', {}, entries.map(row))),
                entries.length === 0 && h('p', {}, 'Empty. Drop files here.'), next !== null && h('p', {class: 'hint'}, 'Only the first 1,000 are shown.'));
        } catch (error) {
            fill(list, problem(error));
        }
    }

    function row(entry) {
        const folderLike = entry.type === 'directory';
        return h('tr', {},
            h('td', {}, button(entry.name + (folderLike ? '/' : ''), () => opens(entry), {class: 'plain link'}), entry.type === 'symlink' && h('small', {}, ` → ${entry.link}`)),
            h('td', {}, folderLike ? '' : bytes(entry.size)), h('td', {}, `${ago(entry.modified_at)} ago`), h('td', {}, h('code', {}, entry.permissions)),
            h('td', {class: 'actions'},
                button('Download', () => attempt(() => download(fileAt(entry.path) + (folderLike ? '?archive=tar' : ''), entry.name + (folderLike ? '.tar' : ''))), {'aria-label': `Download ${entry.name}`}),
                button('Rename', async () => {
                    const asked = await ask(`Rename ${entry.name}`, field('New name', h('input', {name: 'to', value: entry.name, required: true})), 'Rename');
                    if (asked) attempt(() => post(`${at}/files/move`, {from: entry.path, to: asked.to.startsWith('/') ? asked.to : join(folder, asked.to)})).then(refresh);
                }, {'aria-label': `Rename ${entry.name}`}),
                button('Delete', async () => {
                    if (await ask(`Delete ${entry.name}?`, h('p', {}, entry.path), 'Delete'))
                        attempt(() => remove(fileAt(entry.path) + '?recursive=true')).then(refresh);
                }, {class: 'danger', 'aria-label': `Delete ${entry.name}`})));
    }

    // ---- one file ----

    async function open(entry) {
        close();
        try {
            if (/\.(png|jpe?g|gif|webp|svg)$/i.test(entry.name))
                return fill(place, h('h2', {}, entry.name), h('img', {src: await picture(entry), alt: entry.name}), button('Close', close));
            if (entry.size > EDIT_MAX) throw Object.assign(new Error(`${entry.name} is too large to be edited here`), {hint: 'Download it instead.'});
            const data = new Uint8Array(await (await send('GET', fileAt(entry.path))).arrayBuffer());
            edit(entry.path, new TextDecoder('utf-8', {fatal: true}).decode(data));
        } catch (error) {
            fill(place, problem(error instanceof TypeError ? Object.assign(new Error(`${entry.name} is not text`), {hint: 'Download it instead.'}) : error));
        }
    }

    async function picture(entry) {
        if (!/\.svg$/i.test(entry.name)) return blobUrl(fileAt(entry.path));
        const text = await (await send('GET', fileAt(entry.path))).text();
        return URL.createObjectURL(new Blob([text], {type: 'image/svg+xml'}));
    }

    function edit(path, text) {
        const name = path.split('/').pop();
        const saveIt = () => attempt(async () => {
            await send('PUT', fileAt(path), {body: opened.value});
            refresh();
        }, `${name} is written`);
        opened = editor({value: text, language: languageOf[name.split('.').pop()], label: `Text of ${name}`, onrun: saveIt});
        fill(place, h('h2', {}, path), opened.element, h('div', {class: 'row'}, button('Save', saveIt, {class: 'primary', title: 'Ctrl+Enter'}), button('Close', close)));
        opened.focus();
    }

    function close() {
        opened?.close();
        opened = null;
        fill(place);
    }

    // ---- uploads ----

    // files: [{file, path}], relative to the folder
    async function sendAll(files) {
        const goal = folder, abort = new AbortController();
        const bar = h('progress', {max: '1', value: 0, 'aria-label': 'Upload'});
        const words = h('span', {});
        fill(progress, h('div', {class: 'row'}, bar, words, button('Stop', () => abort.abort())));
        const all = files.reduce((sum, one) => sum + one.file.size, 0) || 1;
        let done = 0;
        for (const [i, {file, path}] of files.entries()) {
            words.textContent = `${i + 1} of ${files.length}: ${path}`;
            try {
                await upload(fileAt(join(goal, path)), file, n => { bar.value = (done + n) / all; }, abort.signal);
            } catch (error) {
                fill(progress, error.name === 'AbortError' ? 'Stopped.' : problem(error));
                return refresh();
            }
            done += file.size;
        }
        fill(progress, files.length === 1 ? `${files[0].path} is uploaded.` : `${files.length} files are uploaded.`);
        refresh();
    }

    async function walk(entry, path, out) {
        if (entry.isFile) {
            out.push({path: path + entry.name, file: await new Promise((good, bad) => entry.file(good, bad))});
            return;
        }
        const reader = entry.createReader();
        for (;;) {
            const part = await new Promise((good, bad) => reader.readEntries(good, bad));
            if (!part.length) return;
            for (const one of part) await walk(one, `${path}${entry.name}/`, out);
        }
    }

    async function drop(event) {
        event.preventDefault();
        list.classList.remove('over');
        const out = [];
        const entries = [...event.dataTransfer.items].map(item => item.webkitGetAsEntry?.()).filter(Boolean);
        if (entries.length) for (const entry of entries) await walk(entry, '', out);
        else for (const file of event.dataTransfer.files) out.push({path: file.name, file});
        if (out.length) sendAll(out);
    }

    list.addEventListener('dragover', event => {
        event.preventDefault();
        list.classList.add('over');
    });
    list.addEventListener('dragleave', () => list.classList.remove('over'));
    list.addEventListener('drop', event => attempt(() => drop(event)));

    const picker = folders => h('input', {type: 'file', multiple: true, webkitdirectory: folders, class: 'hidden', tabindex: '-1', 'aria-label': folders ? 'A folder' : 'Files',
        onchange: event => {
            sendAll([...event.target.files].map(file => ({file, path: file.webkitRelativePath || file.name})));
            event.target.value = '';
        }});
    const files = picker(false), folders = picker(true);

    // ---- what others change ----

    async function watch() {
        watching?.abort();
        const mine = watching = new AbortController();
        let timer = 0;
        try {
            for await (const {event} of events('POST', `${at}/files/watch`, {json: {path: folder}, signal: mine.signal})) {
                if (event === 'ready') continue;
                clearTimeout(timer);
                timer = setTimeout(refresh, 200);
            }
        } catch {
            // what this page does itself is shown all the same
        }
    }

    fill(root, h('div', {class: 'row'}, where, h('span', {class: 'grow'}),
        button('New file', async () => {
            const asked = await ask('New file', field('Name', h('input', {name: 'name', required: true})), 'Make it');
            if (asked) attempt(() => send('PUT', fileAt(join(folder, asked.name)), {body: ''})).then(good => { if (good) { refresh(); edit(join(folder, asked.name), ''); } });
        }),
        button('New folder', async () => {
            const asked = await ask('New folder', field('Name', h('input', {name: 'name', required: true})), 'Make it');
            if (asked) attempt(() => post(`${at}/make_dir`, {path: join(folder, asked.name)})).then(refresh);
        }),
        button('Upload files', () => files.click()), button('Upload a folder', () => folders.click()), files, folders), progress, list, place);
    go(folder);
    return () => {
        ended = true;
        watching?.abort();
        close();
    };
}
