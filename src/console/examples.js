// SPDX-License-Identifier: MIT
// A few programs for each family of requests. The first is what a newcomer sees.

export const examples = [
    {title: 'A plot', family: 'execute', language: 'python', code: `# What a program leaves in its workspace comes back; pictures are shown.
import math

points = [(x, math.sin(x / 25) * math.exp(-x / 250)) for x in range(600)]
line = " ".join(f"{20 + x},{110 - 90 * y:.1f}" for x, y in points)
with open("plot.svg", "w") as file:
    file.write(f'''<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 640 220" width="640" height="220">
  <rect width="640" height="220" fill="white"/>
  <path d="M20 110H620M20 15V205" stroke="#888"/>
  <polyline points="{line}" fill="none" stroke="#2563eb" stroke-width="2"/>
</svg>''')
print(len(points), "points")
`},
    {title: 'A plot with matplotlib', family: 'cell', language: 'python', code: `import matplotlib.pyplot as plt
import numpy as np

x = np.linspace(0, 10, 400)
plt.plot(x, np.sin(x), label="sin")
plt.plot(x, np.cos(x), label="cos")
plt.legend()
plt.show()
`},
    {title: 'A handler and its event', family: 'execute', language: 'python', event: '{"name": "World"}', code: `def handler(event):
    print("asked by", event["name"])
    return {"greeting": f"Hello, {event['name']}!"}
`},
    {title: 'Output as it comes', family: 'execute', language: 'shell', code: `for i in 1 2 3 4 5; do
    echo "line $i"
    sleep 0.5
done
echo "and a word to stderr" >&2
`},
    {title: 'JavaScript, and a file', family: 'execute', language: 'javascript', code: `const fs = require('node:fs');
const rows = [...Array(8).keys()].map(n => [n, n * n, n ** 3]);
fs.writeFileSync('powers.csv', 'n,square,cube\\n' + rows.map(row => row.join()).join('\\n') + '\\n');
console.log(process.version);
`},
    {title: 'Standard input', family: 'execute', language: 'python', stdin: '3\n4\n5\n', code: `import sys

print("sum:", sum(int(line) for line in sys.stdin))
`},
    {title: 'Killed for its memory', family: 'execute', language: 'python', code: `# A limit is met: see how the end is told.
block = []
while True:
    block.append(bytearray(50_000_000))
`},
    {title: 'A table', family: 'cell', language: 'python', code: `import pandas as pd

pd.DataFrame({"city": ["Berlin", "Oslo", "Rome"], "people": [3_700_000, 700_000, 2_800_000]})
`},
    {title: 'State between cells', family: 'cell', language: 'javascript', code: `globalThis.count = (globalThis.count ?? 0) + 1;
display({'text/html': '<b>Run</b> number <i>' + count + '</i>: run it again'});
`},
    {title: 'A function of C', family: 'function', language: 'c', args: '{"a": 6, "b": 7}', code: `int multiply(int a, int b)
{
    return a * b;
}
`},
    {title: 'A function of Ruby', family: 'function', language: 'ruby', args: '{"words": ["to", "be", "or", "not", "to", "be"]}', code: `# How often is each word there?
def tally(words)
  words.tally
end
`},
    {title: 'As a language model runs code', family: 'mcp', language: 'python', code: `import platform

print("for a model:", platform.python_version())
sum(range(101))
`},
    {title: 'As E2B\'s SDKs run code', family: 'e2b', language: 'python', code: `import os

print(os.getcwd())
{"answer": 42}
`},
    {title: 'Look around', family: 'command', language: 'shell', code: 'id; uname -a; df -h /workspace; ls -la\n'},
];
