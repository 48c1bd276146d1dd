// SPDX-License-Identifier: MIT
// The same request for a terminal and for two languages.
import {base} from './api.js';

const shellQuoted = text => `'${text.replaceAll("'", `'\\''`)}'`;
const address = path => location.origin + base.replace(/\/$/, '') + path;

export const kinds = ['curl', 'Python', 'JavaScript'];

export function snippet(kind, {path, json}) {
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
