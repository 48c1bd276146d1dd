// SPDX-License-Identifier: MIT
/*
 * A bridge from WebAssembly to what is written in JavaScript.
 *
 * Whenever a module imports functions of JavaScript, V8 compiles a way out of WebAssembly for each kind
 * of signature. Functions of another module need none. So one small module imports everything once, in
 * the zygote, and its functions do nothing but call on; those are put into the table of a program.
 */
'use strict';

/* Parameters: i: i32, I: i64. All return i32, those after the line nothing. Programs know them by their
   order (src/lang/wrap/call_wasi.inc). */
const SIGNATURES = `
args_get ii, args_sizes_get ii, environ_get ii, environ_sizes_get ii, clock_res_get ii, clock_time_get iIi,
fd_advise iIIi, fd_allocate iII, fd_close i, fd_datasync i, fd_fdstat_get ii, fd_fdstat_set_flags ii,
fd_fdstat_set_rights iII, fd_filestat_get ii, fd_filestat_set_size iI, fd_filestat_set_times iIIi,
fd_pread iiiIi, fd_prestat_get ii, fd_prestat_dir_name iii, fd_pwrite iiiIi, fd_read iiii, fd_readdir iiiIi,
fd_renumber ii, fd_seek iIii, fd_sync i, fd_tell ii, fd_write iiii, path_create_directory iii,
path_filestat_get iiiii, path_filestat_set_times iiiiIIi, path_link iiiiiii, path_open iiiiiIIii,
path_readlink iiiiii, path_remove_directory iii, path_rename iiiiii, path_symlink iiiii, path_unlink_file iii,
poll_oneoff iiii, random_get ii, sched_yield, sandbox_cwd ii
| proc_exit i, sandbox_leave i`;

const I32 = 0x7f, I64 = 0x7e, FUNC = 0x60;
const LOCAL_GET = 0x20, CALL = 0x10, END = 0x0b;
const TYPES = 1, IMPORTS = 2, FUNCTIONS = 3, EXPORTS = 7, CODE = 10;

function rowsOf(text) {
    return text.split('|').flatMap((part, i) => part.split(',').map((row) => {
        const [name, kinds = ''] = row.trim().split(' ');
        return { name, kinds: [...kinds].map((k) => (k === 'I' ? I64 : I32)), results: i === 0 ? [I32] : [] };
    }));
}

function number(n) {
    return n < 128 ? [n] : [n & 127 | 128, ...number(n >> 7)];
}

function sized(bytes) {
    return [...number(bytes.length), ...bytes];
}

function section(id, items) {
    return [id, ...sized([...number(items.length), ...items.flat()])];
}

/* Function i of the imports is called by the one behind all of them. */
function bytesOf(rows) {
    const name = (text) => sized([...Buffer.from(text)]);
    const body = ({ kinds }, i) => sized([0, ...kinds.flatMap((_, k) => [LOCAL_GET, k]), CALL, ...number(i), END]);
    return Uint8Array.from([0, 0x61, 0x73, 0x6d, 1, 0, 0, 0,
        ...section(TYPES, rows.map(({ kinds, results }) => [FUNC, ...sized(kinds), ...sized(results)])),
        ...section(IMPORTS, rows.map((row, i) => [...name('js'), ...name(row.name), 0, ...number(i)])),
        ...section(FUNCTIONS, rows.map((_, i) => number(i))),
        ...section(EXPORTS, rows.map((row, i) => [...name(row.name), 0, ...number(rows.length + i)])),
        ...section(CODE, rows.map(body))]);
}

const rows = rowsOf(SIGNATURES);
const compiled = new WebAssembly.Module(bytesOf(rows));

/* The same functions, in the order above. */
module.exports = function makeBridge(js) {
    const { exports: made } = new WebAssembly.Instance(compiled, { js });
    return rows.map(({ name }) => made[name]);
};
