// SPDX-License-Identifier: MIT
// Facts in words.

export function bytes(n) {
    if (n === null || n === undefined) return '–';
    const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
    let i = 0;
    for (; n >= 1024 && i < units.length - 1; i++) n /= 1024;
    return `${i && n < 10 ? n.toFixed(1) : Math.round(n)} ${units[i]}`;
}

export function ms(n) {
    if (n === null || n === undefined) return '–';
    if (n < 10) return `${n.toFixed(n < 1 ? 2 : 1)} ms`;
    if (n < 1000) return `${Math.round(n)} ms`;
    return n < 60000 ? `${(n / 1000).toFixed(1)} s` : `${Math.floor(n / 60000)} min ${Math.round(n % 60000 / 1000)} s`;
}

export function ago(time) {
    const s = Math.max(0, (Date.now() - Date.parse(time)) / 1000);
    if (!Number.isFinite(s)) return '–';
    if (s < 60) return `${Math.floor(s)} s`;
    if (s < 3600) return `${Math.floor(s / 60)} min`;
    return s < 86400 ? `${Math.floor(s / 3600)} h` : `${Math.floor(s / 86400)} d`;
}

// Why it ended, as a sentence.
export function ending(result) {
    const t = result.termination ?? {};
    const limit = t.limit_value === undefined ? '' : ` (${t.limit ?? 'limit'}: ${t.limit_value})`;
    const words = {
        exit: result.exit_code ? `It ended by itself with status ${result.exit_code}.` : 'It ended by itself, without an error.',
        signal: `It was killed by a signal of its own${t.signal ? ` (${t.signal})` : ''}.`,
        timeout: `Its time was up${limit}, so it was stopped.`,
        cpu: `It used all the processor time it may have${limit}, so it was stopped.`,
        oom: `It needed more memory than it may have${limit}, so it was stopped. Files in /workspace and /tmp count.`,
        disk: `It filled the disk space it may have${limit}, so it was stopped.`,
        pids: `It failed after it was refused another process or thread${limit}.`,
        cancelled: 'It was stopped from outside.',
        shutdown: 'The daemon ended while it ran.',
        failed: 'The sandbox itself failed; the error output says how.',
        output: `It wrote more than it may${limit}.`,
    };
    if (result.error && t.reason === 'exit') return `It failed: ${result.error.type}: ${result.error.message}`;
    return words[t.reason] ?? (t.reason ? `It ended: ${t.reason}.` : '');
}
