// SPDX-License-Identifier: MIT
// What outlives a reload: drafts of what a person typed, and choices. Never a key (login.js).

const PREFIX = 'sandbox-executor:';

export function load(name, otherwise) {
    try {
        return JSON.parse(localStorage.getItem(PREFIX + name)) ?? otherwise;
    } catch {
        return otherwise; // switched off, or not ours
    }
}

export function save(name, value) {
    try {
        localStorage.setItem(PREFIX + name, JSON.stringify(value));
    } catch {
        // full, or switched off: the page works without
    }
}
