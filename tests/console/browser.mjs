// SPDX-License-Identifier: MIT
// A scenario in a headless browser: node browser.mjs SCENARIO ADDRESS
//
// The scenario is a function of scenarios.mjs. Whatever it does, these are failures: a violation of the page's policy,
// a request to another host, an error of the page that nobody caught, and what axe-core finds on the pages that a
// scenario shows it. SCREENSHOTS is where pictures are kept. A line on standard output asks the test for something
// ("restart"); a line on standard input says that it is done.
import {createRequire} from 'node:module';
import {readFileSync} from 'node:fs';
import {createInterface} from 'node:readline';

const [scenario, address] = process.argv.slice(2);
const require = createRequire(process.env.PACKAGES + '/node_modules/x.js');
const {chromium} = require('playwright-core');
const axe = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');
const PATIENCE = Number(process.env.PATIENCE ?? 60) * 1000;

const wrong = [];
const answers = createInterface({input: process.stdin})[Symbol.asyncIterator]();

function listen(page) {
    page.on('pageerror', error => wrong.push(`error of the page: ${error.stack ?? error}`));
    page.on('console', message => {
        if (test.expected?.test(message.text())) return;
        if (message.text().startsWith('policy: ')) wrong.push(message.text());
    });
    page.on('request', request => {
        const url = new URL(request.url());
        if (!['data:', 'blob:', 'about:'].includes(url.protocol) && url.host !== new URL(address).host && !test.hosts.has(url.host))
            wrong.push(`a request to another host: ${request.url()}`);
        if (/ticket|console_/.test(url.pathname + url.search)) wrong.push(`a secret in an address: ${request.url()}`);
        if (request.headers().referer) wrong.push(`a Referer: ${request.url()}`);
    });
}

const test = {
    address, hosts: new Set(), expected: null,
    // From now on: violations of the policy that a scenario provokes.
    expects(pattern) { test.expected = pattern; },
    check(what, ok) { if (!ok) throw new Error(`not so: ${what}`); },
    // Accessibility of what is shown now.
    async axe(page, what) {
        for (const one of await test.axeAside(page))
            wrong.push(`accessibility of ${what}: ${one.id} (${one.impact}): ${one.nodes.map(n => n.target.join(' ')).slice(0, 4).join(', ')}: ${one.nodes[0].failureSummary}`);
    },
    // The page's policy forbids eval(); the debugger's own world does not.
    async axeAside(page) {
        const client = await page.context().newCDPSession(page);
        const {frameTree} = await client.send('Page.getFrameTree');
        const {executionContextId} = await client.send('Page.createIsolatedWorld', {frameId: frameTree.frame.id, worldName: 'axe'});
        const evaluate = async expression => {
            const {result, exceptionDetails} = await client.send('Runtime.evaluate', {expression, contextId: executionContextId, awaitPromise: true, returnByValue: true});
            if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
            return result.value;
        };
        await evaluate(axe + '; 0');
        const value = await evaluate("axe.run(document, {resultTypes: ['violations']}).then(r => r.violations.map(v => ({id: v.id, impact: v.impact, nodes: v.nodes.map(n => ({target: n.target.map(String), failureSummary: n.failureSummary}))})))");
        await client.detach();
        return value;
    },
    picture: (page, name) => page.screenshot({path: `${process.env.SCREENSHOTS}/${name}.png`, fullPage: true}),
    async askFor(what) {
        console.log(what);
        await answers.next();
    },
    async open(options = {}) {
        const context = await test.browser.newContext({viewport: {width: 1280, height: 800}, acceptDownloads: true, ...options});
        await context.grantPermissions(['clipboard-read', 'clipboard-write']);
        context.setDefaultTimeout(PATIENCE);
        await context.addInitScript(() => document.addEventListener('securitypolicyviolation', event => {
            // Chromium itself puts a style on a line of an editable element when text replaces a selection; it is
            // refused, and the editor draws the line anew.
            if (event.violatedDirective === 'style-src-attr' && event.target.closest?.('.cm-content')) return;
            console.log(`policy: ${event.violatedDirective} ${event.blockedURI} ${event.target.outerHTML?.slice(0, 300)}`);
        }));
        const page = await context.newPage();
        listen(page);
        return page;
    },
};

const scenarios = await import('./scenarios.mjs');
test.browser = await chromium.launch({executablePath: process.env.CHROMIUM, args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage']});
try {
    await scenarios[scenario](test);
} catch (error) {
    wrong.push(error.stack);
    for (const context of test.browser.contexts())
        for (const page of context.pages())
            await page.screenshot({path: `${process.env.SCREENSHOTS}/failed-${scenario}.png`, fullPage: true}).catch(() => {});
}
await test.browser.close();
for (const one of wrong) console.error(one);
process.exit(wrong.length ? 1 : 0);
