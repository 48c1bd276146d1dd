// SPDX-License-Identifier: MIT
// What a person does with the console, step by step (browser.mjs).

const ready = page => page.getByRole('button', {name: 'Run', exact: true}).waitFor();
const type = async (page, text) => {
    const box = page.locator('.cm-content').first();
    await box.click();
    await page.keyboard.press('Control+A');
    await page.keyboard.insertText(text);
};
const choose = (page, label, value) => page.getByLabel(label, {exact: true}).selectOption(value);

// From the printed address to a plot: one click.
export async function first_visit(t) {
    const page = await t.open();
    await page.goto(t.address);
    await ready(page);
    t.check('the ticket is not in the address any more', !page.url().includes('ticket'));
    let clicks = 0;
    await page.getByRole('button', {name: 'Run', exact: true}).click();
    clicks++;
    await page.locator('.preview img').waitFor();
    t.check('at most three clicks to a plot', clicks <= 3);
    t.check('the picture has a size', await page.locator('.preview img').evaluate(async img => { await img.decode(); return img.naturalWidth; }) > 100);
    await page.getByText('It ended by itself, without an error.').waitFor();
    await page.locator('.timings .bar span').first().waitFor();
    await page.locator('.cm-content').waitFor();
    await t.axe(page, 'the playground');
    await t.picture(page, 'playground');
    await page.getByRole('button', {name: /^Theme/}).click();
    await page.getByRole('button', {name: /^Theme/}).click();
    await t.axe(page, 'the playground in the dark');
    await t.picture(page, 'playground-dark');
    const kept = await page.evaluate(() => [JSON.stringify(localStorage), JSON.stringify(sessionStorage), document.cookie]);
    t.check('the key is in the storage of the session only', !kept[0].includes('console_') && kept[1].includes('console_') && kept[2] === '');
}

export async function used_address(t) {
    const page = await t.open();
    await page.goto(t.address);
    await ready(page);
    const other = await t.open();
    await other.goto(t.address);
    await other.getByText('This address does not open the console').waitFor();
    await t.axe(other, 'the form for the secret');
    await t.picture(other, 'login');
    await other.getByLabel('Secret of the daemon').fill('not it');
    await other.getByRole('button', {name: 'Open the console'}).click();
    await other.getByText('That is not the secret').waitFor();
    await other.getByLabel('Secret of the daemon').fill(process.env.SECRET);
    await other.keyboard.press('Enter');
    await ready(other);
    t.check('the secret is not kept', !(await other.evaluate(() => JSON.stringify(sessionStorage))).includes(process.env.SECRET));
}

export async function streaming_and_stop(t) {
    const page = await t.open();
    await page.goto(t.address);
    await ready(page);
    await choose(page, 'Language', 'shell');
    await type(page, 'echo first; sleep 1000; echo never');
    await page.keyboard.press('Control+Enter');
    await page.locator('.output', {hasText: 'first'}).waitFor();
    t.check('it is under way', await page.locator('.result .badge').count() === 0);
    await page.reload(); // it goes on, and is shown again
    await page.locator('.output', {hasText: 'first'}).waitFor();
    t.check('the code is still there', (await page.locator('.cm-content').innerText()).includes('sleep 1000'));
    await page.getByRole('button', {name: 'Stop', exact: true}).click();
    await page.getByText('It was stopped from outside.').waitFor();
}

export async function values_and_errors(t) {
    const page = await t.open();
    await page.goto(t.address);
    await ready(page);
    await choose(page, 'Language', 'python');
    await type(page, 'def handler(event):\n    return [{"n": n, "square": n * n} for n in range(event["count"])]\n');
    await page.getByText('Event, input, limits').click();
    await page.getByLabel('Event (JSON, for a handler)').fill('{"count": 3}');
    await page.getByRole('button', {name: 'Run', exact: true}).click();
    await page.getByRole('columnheader', {name: 'square'}).waitFor();
    await page.getByText('The same as curl, Python, JavaScript').click();
    t.check('curl has the event', (await page.getByLabel('The same request').innerText()).includes('"count": 3'));
    await page.getByRole('tab', {name: 'Python'}).click();
    await page.getByRole('button', {name: 'Copy'}).click();
    await page.getByText('Copied').waitFor();
    t.check('Python was copied', (await page.evaluate(() => navigator.clipboard.readText())).includes('urllib.request'));
    await page.getByLabel('Event (JSON, for a handler)').fill('{"count": ');
    await page.getByRole('button', {name: 'Run', exact: true}).click();
    await page.getByRole('alert').getByText('The event is not JSON').waitFor();
    await page.getByLabel('Event (JSON, for a handler)').fill('');
    await type(page, 'import nosuchmodule');
    await page.getByRole('button', {name: 'Run', exact: true}).click();
    await page.locator('.result .hint').first().waitFor();
    await page.getByLabel('Time limit in seconds').fill('0.2');
    await type(page, 'while True: pass');
    await page.getByRole('button', {name: 'Run', exact: true}).click();
    await page.getByText('Its time was up').waitFor();
}

export async function phone(t) {
    const page = await t.open({viewport: {width: 390, height: 800}, hasTouch: true, isMobile: true});
    await page.goto(t.address);
    await ready(page);
    await page.getByRole('button', {name: 'Run', exact: true}).tap();
    await page.locator('.preview img').waitFor();
    t.check('nothing is wider than the screen', await page.evaluate(() => document.documentElement.scrollWidth) <= 390);
    await t.picture(page, 'phone');
    await page.getByRole('link', {name: 'Sandboxes', exact: true}).tap();
    await page.getByRole('link', {name: 'Terminal', exact: true}).tap();
    await screen(page).getByText('$').first().waitFor();
    await t.picture(page, 'phone-terminal');
    for (const name of ['Files', 'Cells', 'Processes', 'Ports']) {
        await page.getByRole('tab', {name, exact: true}).tap();
        await page.getByRole('tabpanel').locator('button').first().waitFor();
        t.check(`${name} is not wider than the screen`, await page.evaluate(() => document.documentElement.scrollWidth) <= 390);
    }
    for (const name of ['Sandboxes', 'Executions', 'Functions', 'Overview']) {
        await page.getByRole('link', {name, exact: true}).tap();
        await page.getByRole('heading', {name, exact: true, includeHidden: true}).waitFor({state: 'attached'});
        t.check(`${name} is not wider than the screen`, await page.evaluate(() => document.documentElement.scrollWidth) <= 390);
    }
    await page.locator('.uplot canvas').nth(4).waitFor();
    await t.picture(page, 'phone-overview');
}

// Each family has an example that runs.
export async function examples(t) {
    const page = await t.open();
    await page.goto(t.address);
    await ready(page);
    const titles = await page.locator('select[aria-label=Examples] option').allInnerTexts();
    for (const title of titles.slice(1)) {
        await page.getByLabel('Examples', {exact: true}).selectOption({label: title});
        await page.getByRole('button', {name: 'Run', exact: true}).click();
        await page.locator('.result .badge').waitFor();
        const good = await page.locator('.result .badge.good').count() === 1;
        t.check(`${title}: ${await page.locator('.result').innerText()}`, good === !title.startsWith('Killed'));
    }
    await page.getByLabel('Examples', {exact: true}).selectOption({label: 'Killed for its memory'});
    await page.getByRole('button', {name: 'Run', exact: true}).click();
    await page.getByText(/^It needed more memory than it may have/).waitFor();
    await t.picture(page, 'killed');
}

// What is drawn first needs no editor: here it never comes.
export async function without_the_editor(t) {
    const page = await t.open();
    await page.route('**/part-*.js', async route => {
        const response = await route.fetch();
        if ((await response.body()).length > 300000) await route.abort();
        else await route.fulfill({response});
    });
    await page.goto(t.address);
    await page.locator('textarea[aria-label=Code]').fill('print("plain text field")');
    await page.getByRole('button', {name: 'Run', exact: true}).click();
    await page.locator('.output', {hasText: 'plain text field'}).waitFor();
    t.check('there is no editor', await page.locator('.cm-content').count() === 0);
}

// ---- sandboxes ----

const dialogFill = async (page, label, text, accept) => {
    const dialog = page.getByRole('dialog');
    if (label) await dialog.getByLabel(label).fill(text);
    await dialog.getByRole('button', {name: accept}).click();
};

async function newSandbox(page, name) {
    await page.getByRole('link', {name: 'Sandboxes', exact: true}).click();
    await page.getByRole('button', {name: 'New sandbox'}).click();
    await dialogFill(page, 'Name', name, 'Make it');
    await page.getByRole('heading', {name}).waitFor();
}

const screen = page => page.locator('.xterm-rows');
const tab = (page, name) => page.getByRole('tab', {name, exact: true}).click();

export async function terminal(t) {
    const page = await t.open();
    await page.goto(t.address);
    await newSandbox(page, 'demo');
    await screen(page).getByText('$').first().waitFor();
    await page.keyboard.type('echo $((6 * 7))-answer; echo kept >note.txt\n');
    await screen(page).getByText('42-answer').waitFor();
    await page.keyboard.type("printf '\\033[38;2;255;100;0mcoloured\\033[0m\\n'\n");
    await screen(page).locator('span', {hasText: /^coloured$/}).waitFor();
    await t.axe(page, 'a terminal');
    await t.picture(page, 'terminal');
    await page.reload(); // the same terminal, with what it said
    await screen(page).getByText('42-answer').waitFor();
    await page.keyboard.type('cat note.txt\n');
    await screen(page).getByText(/^kept/).waitFor();
    await page.getByRole('button', {name: 'New terminal'}).click();
    await page.getByLabel('Terminals').waitFor();
    await page.keyboard.type('exit\n');
    await screen(page).getByText('[the terminal has ended]').waitFor();
}

export async function files(t) {
    const page = await t.open();
    await page.goto(t.address);
    await newSandbox(page, 'demo');
    await tab(page, 'Files');
    await page.getByText('Empty. Drop files here.').waitFor();
    await page.locator('input[type=file]').first().setInputFiles([{name: 'one.txt', mimeType: 'text/plain', buffer: Buffer.from('first\n')},
        {name: 'ä b.bin', mimeType: 'application/octet-stream', buffer: Buffer.from([0, 255, 1])}]);
    await page.getByText('2 files are uploaded.').waitFor();
    // dropped
    const data = await page.evaluateHandle(() => {
        const transfer = new DataTransfer();
        transfer.items.add(new File(['dropped here'], 'dropped.txt'));
        return transfer;
    });
    await page.locator('.drop').dispatchEvent('drop', {dataTransfer: data});
    await page.getByRole('button', {name: 'dropped.txt', exact: true}).waitFor();
    await page.getByRole('button', {name: 'one.txt', exact: true}).click();
    await page.locator('.cm-content', {hasText: 'first'}).click();
    await page.keyboard.press('Control+A');
    await page.keyboard.insertText('second line');
    await page.getByRole('button', {name: 'Save'}).click();
    await page.getByText('one.txt is written').waitFor();
    const [file] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', {name: 'Download one.txt'}).click()]);
    t.check('what is downloaded is what was written', (await streamed(file)) === 'second line');
    const [raw] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', {name: 'Download ä b.bin'}).click()]);
    t.check('bytes stay bytes', (await streamed(raw, 'latin1')) === '\0\xff\x01');
    await page.getByRole('button', {name: 'New folder'}).click();
    await dialogFill(page, 'Name', 'sub', 'Make it');
    await t.axe(page, 'files');
    await t.picture(page, 'files');
    await page.getByRole('button', {name: 'sub/', exact: true}).click();
    await page.getByText('Empty. Drop files here.').waitFor();
    await page.reload();
    await page.getByRole('button', {name: 'sub', exact: true}).waitFor(); // still in that folder
    await page.getByRole('button', {name: 'workspace', exact: true}).click();
    await page.getByRole('button', {name: 'Delete dropped.txt'}).click();
    await dialogFill(page, null, null, 'Delete');
    await page.getByRole('button', {name: 'dropped.txt', exact: true}).waitFor({state: 'detached'});
    // what others change is shown
    await tab(page, 'Processes');
    await page.getByLabel('Command').fill('sleep 1; echo later >/workspace/by-a-program.txt');
    await page.getByRole('button', {name: 'Start', exact: true}).click();
    await tab(page, 'Files');
    await page.getByRole('button', {name: 'by-a-program.txt', exact: true}).waitFor();
}

async function streamed(file, encoding = 'utf8') {
    const parts = [];
    for await (const part of await file.createReadStream()) parts.push(part);
    return Buffer.concat(parts).toString(encoding);
}

export async function cells(t) {
    const page = await t.open();
    await page.goto(t.address);
    await newSandbox(page, 'demo');
    await tab(page, 'Cells');
    await page.getByRole('button', {name: 'Run all'}).click();
    const table = page.frameLocator('iframe').first();
    await table.getByRole('columnheader', {name: 'square'}).waitFor();
    await page.locator('.displayed img').waitFor();
    t.check('the plot has a size', await page.locator('.displayed img').evaluate(async img => { await img.decode(); return img.naturalWidth; }) > 100);
    await t.axe(page, 'cells');
    await t.picture(page, 'cells');
    // HTML of a program: no script of it runs, nothing is loaded, it reaches nothing of ours
    await page.getByRole('button', {name: 'Add a cell'}).click();
    const last = page.locator('.cell').last();
    await last.locator('.cm-content').click();
    await page.keyboard.insertText(`from IPython.display import HTML
HTML('<p id=seen>shown</p><b onclick="document.title=1">bold</b><script>parent.document.title="taken"</' + 'script><img src=x onerror="parent.document.title=2">')`);
    t.expects(/script-src|img-src/); // refused, which is the point
    await last.getByRole('button', {name: 'Run this cell'}).click();
    const frame = last.frameLocator('iframe');
    await frame.locator('#seen').waitFor();
    t.check('no script of a program has run', (await page.title()).includes('Sandbox Executor'));
    await page.keyboard.press('Control+Home');
    // an error, and what is kept
    await page.getByRole('button', {name: 'Restart interpreters'}).click();
    await page.getByText('The interpreters are new').waitFor();
    await page.reload();
    await page.locator('.cell').nth(2).waitFor();
    t.check('cells are kept', await page.locator('.cell').count() === 3);
    await page.getByRole('button', {name: 'Run this cell'}).nth(1).click();
    await page.locator('.cell').nth(1).getByText('NameError').first().waitFor();
}

export async function processes_and_ports(t) {
    const page = await t.open();
    await page.goto(t.address);
    await newSandbox(page, 'demo');
    await tab(page, 'Processes');
    await page.getByLabel('Command').fill('for i in 1 2 3; do echo line $i; done; sleep 1000');
    await page.getByRole('button', {name: 'Start', exact: true}).click();
    await page.locator('.output', {hasText: 'line 3'}).waitFor();
    await t.axe(page, 'processes');
    await t.picture(page, 'processes');
    await page.getByRole('button', {name: /^Kill for/}).click();
    await page.getByText('killed').waitFor();
    await tab(page, 'Ports');
    await page.getByRole('button', {name: 'Start a small server'}).click();
    const link = page.getByRole('link', {name: /8000-/});
    await link.waitFor();
    t.hosts.add(new URL(await link.getAttribute('href')).host);
    const [other] = await Promise.all([page.context().waitForEvent('page'), link.click()]);
    await other.getByText('Hello from a sandbox').waitFor();
    t.check('it cannot reach back', await other.evaluate(() => opener === null && sessionStorage.length === 0));
    await t.axe(page, 'ports');
    await t.picture(page, 'ports');
    await page.getByRole('link', {name: '← Sandboxes'}).click();
    const row = page.getByRole('row', {name: /demo/});
    await row.getByRole('button', {name: 'Pause'}).click();
    await row.getByText('paused').waitFor();
    await t.axe(page, 'sandboxes');
    await t.picture(page, 'sandboxes');
    await row.getByRole('button', {name: 'Resume'}).click();
    await row.getByText('running').waitFor();
    await row.getByRole('button', {name: 'Delete demo'}).click();
    await dialogFill(page, null, null, 'Delete');
    await page.getByText('There is none yet.').waitFor();
}

// ---- the rest ----

export async function executions(t) {
    const page = await t.open();
    await page.goto(t.address);
    await ready(page);
    await choose(page, 'Language', 'shell');
    await type(page, 'echo begun; sleep 1000');
    await page.keyboard.press('Control+Enter');
    await page.locator('.output', {hasText: 'begun'}).waitFor();
    await page.getByRole('link', {name: 'Executions'}).click();
    const link = page.getByRole('link', {name: /^console-/});
    await link.click();
    await page.locator('.output', {hasText: 'begun'}).waitFor();
    await page.getByRole('button', {name: /^Cancel console-/}).click();
    await page.getByText('It was stopped from outside.').waitFor();
    await page.getByRole('cell', {name: 'cancelled'}).waitFor();
    await t.axe(page, 'executions');
    await t.picture(page, 'executions');
    await page.getByRole('button', {name: /^Forget console-/}).click();
    await page.getByText('There is none.').waitFor();
}

export async function functions(t) {
    const page = await t.open();
    await page.goto(t.address);
    await page.getByRole('link', {name: 'Functions'}).click();
    await page.locator('form .about', {hasText: 'How large is it?'}).waitFor();
    await page.getByLabel(/^width/).fill('3');
    await page.getByLabel(/^height/).fill('4');
    await page.getByRole('button', {name: 'Call'}).click();
    await page.getByText('12 m²').waitFor();
    await t.axe(page, 'functions');
    await t.picture(page, 'functions');
    await page.reload();
    await page.getByLabel(/^width/).waitFor();
    t.check('the form is kept', await page.getByLabel(/^width/).inputValue() === '3');
    await type(page, 'def twice(words: list[str], loud: bool = False):\n    return [w.upper() if loud else w for w in words] * 2\n');
    await page.getByLabel(/^words/).fill('["a"]');
    await page.getByLabel(/^loud/).selectOption('true');
    await page.getByRole('button', {name: 'Call'}).click();
    await page.locator('.result pre', {hasText: '"A"'}).waitFor();
}

export async function overview(t) {
    const page = await t.open();
    await page.goto(t.address);
    await ready(page);
    await page.getByRole('link', {name: 'Overview'}).click();
    await page.locator('.uplot canvas').nth(4).waitFor();
    await page.getByRole('heading', {name: /^Isolation of this host/}).waitFor();
    await page.evaluate(async () => { // something to see
        const headers = {'Content-Type': 'application/json', Authorization: `Bearer ${sessionStorage.getItem('sandbox-executor:key')}`};
        for (let i = 0; i < 5; i++) await fetch('/execute', {method: 'POST', headers, body: JSON.stringify({language: 'shell', code: 'true'})});
    });
    await page.getByText(/^half of them: \d/).waitFor();
    await t.axe(page, 'the overview');
    await t.picture(page, 'overview');
}

// The daemon ends and comes back: the page goes on with its key.
export async function restart(t) {
    const page = await t.open();
    await page.goto(t.address);
    await newSandbox(page, 'demo');
    await screen(page).getByText('$').first().waitFor();
    await t.askFor('restart');
    await page.getByText('This terminal is gone with its sandbox').waitFor();
    const anew = page.getByRole('button', {name: 'Make it anew'});
    await anew.click();
    await anew.waitFor({state: 'detached'}); // and with it the screen of the one before
    await screen(page).getByText('$').first().waitFor();
    await page.keyboard.type('echo again-$((1 + 1))\n');
    await screen(page).getByText('again-2').waitFor();
    await page.getByRole('link', {name: 'Playground'}).click();
    await page.getByRole('button', {name: 'Run', exact: true}).click();
    await page.locator('.preview img').waitFor();
}

// All of a run by keys alone.
export async function keyboard(t) {
    const page = await t.open({colorScheme: 'dark'});
    await page.goto(t.address);
    await ready(page);
    await page.locator('.cm-content').waitFor();
    const reach = async test => {
        for (let i = 0; i < 40; i++) {
            await page.keyboard.press('Tab');
            if (await page.evaluate(test)) return;
        }
        throw new Error(`not reached by keys: ${test}, but ${await page.evaluate('document.activeElement.outerHTML.slice(0, 200)')}`);
    };
    await reach("document.activeElement.classList.contains('skip')");
    await reach("document.activeElement.getAttribute('aria-label') === 'Language'");
    await page.keyboard.press('s');
    await reach("document.activeElement.classList.contains('cm-content')");
    await page.keyboard.press('Control+A');
    await page.keyboard.insertText('echo by keys');
    await page.keyboard.press('Escape');
    await reach("document.activeElement.tagName === 'SUMMARY'"); // the editor lets go
    await page.keyboard.press('Shift+Tab');
    await page.keyboard.press('Control+Enter');
    await page.locator('.output', {hasText: 'by keys'}).waitFor();
}
