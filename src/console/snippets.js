// SPDX-License-Identifier: MIT
// The same request for a terminal and for two languages.
import {base} from './api.js';

const shellQuoted = text => `'${text.replaceAll("'", `'\\''`)}'`;
const address = path => location.origin + base.replace(/\/$/, '') + path;

export const kinds = ['curl', 'Python', 'JavaScript'];

// E2B's SDKs, which are told where this daemon is by their own variables.
function sdk(kind, {language, code}) {
    const where = `export E2B_API_URL=${address('')} E2B_SANDBOX_URL=${address('')}
export E2B_API_KEY=e2b_$(printf 'e2b key of %s' "$SANDBOX_SECRET" | sha256sum | cut -c1-40)
`;
    const comment = mark => where.split('\n').filter(Boolean).map(line => `${mark} ${line}`).join('\n');
    if (kind === 'curl') return `${where}# then one of E2B's SDKs: see Python and JavaScript\n`;
    if (kind === 'Python')
        return `${comment('#')}
from e2b_code_interpreter import Sandbox

with Sandbox.create() as sandbox:
    run = sandbox.run_code(${JSON.stringify(code)}, language="${language}")
    print(run.text, run.logs)
`;
    return `${comment('//')}
import {Sandbox} from '@e2b/code-interpreter';

const sandbox = await Sandbox.create();
const run = await sandbox.runCode(${JSON.stringify(code)}, {language: '${language}'});
console.log(run.text, run.logs);
await sandbox.kill();
`;
}

export function snippet(kind, {path, json, sdk: bySdk}) {
    if (bySdk) return sdk(kind, json);
    const body = JSON.stringify(json, null, 2);
    if (kind === 'curl')
        return `curl -sS ${address(path)} \\
  -H "Authorization: Bearer $SANDBOX_SECRET" -H 'Content-Type: application/json' \\
  -d ${shellQuoted(body)}
`;
    if (kind === 'Python')
        return `import json, os, urllib.request

body = json.loads(r"""${body.includes('"""') ? JSON.stringify(json).replaceAll('"""', '\\u0022\\u0022\\u0022') : body}""")
request = urllib.request.Request(
    "${address(path)}", json.dumps(body).encode(),
    {"Authorization": "Bearer " + os.environ["SANDBOX_SECRET"], "Content-Type": "application/json"})
print(json.load(urllib.request.urlopen(request)))
`;
    return `const response = await fetch(${JSON.stringify(address(path))}, {
  method: 'POST',
  headers: {Authorization: 'Bearer ' + process.env.SANDBOX_SECRET, 'Content-Type': 'application/json'},
  body: JSON.stringify(${body}),
});
console.log(await response.json());
`;
}
