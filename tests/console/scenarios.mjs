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
}
