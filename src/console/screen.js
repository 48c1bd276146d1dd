// SPDX-License-Identifier: MIT
// xterm.js, in the colours of the page.
import {FitAddon} from '@xterm/addon-fit';
import {Terminal} from '@xterm/xterm';

const dark = {background: '#14161a', foreground: '#e6e9ee', cursor: '#e6e9ee', selectionBackground: '#2f4a7d'};

export function screen(parent, label) {
    const fit = new FitAddon();
    const terminal = new Terminal({
        fontFamily: 'ui-monospace, "DejaVu Sans Mono", Menlo, monospace', fontSize: 14, scrollback: 10000, theme: dark,
        screenReaderMode: false, cursorBlink: false, convertEol: false,
    });
    terminal.loadAddon(fit);
    terminal.open(parent);
    terminal.textarea.setAttribute('aria-label', label);
    fit.fit();
    return {terminal, fit: () => fit.fit()};
}
