# SPDX-License-Identifier: MIT
"""What the daemon answers; made by tools/make-clients: change that, or the table it reads, instead."""
from __future__ import annotations

from typing import Any, Dict, List, Optional

from ._record import Record


class Capabilities(Record):
    version: Optional[str]
    jail: Optional[str]  # the default one
    isolation_level: Optional[str]
    traits: Optional[List[str]]  # what the default jail isolates
    traits_missing: Optional[List[str]]  # what it does not
    advice: Optional[List[str]]  # what on this host is in the way of them, and what to do about it
    templates: Any  # warmed interpreters, and why one cannot be warmed
    jails: Optional[List[Record]]  # name, allowed, available, default, version, reason
    limits: Optional[Record]  # of one execution
    languages: Optional[List[Record]]  # name, version, available
    wasm: Optional[Record]  # languages of the engine wasm
    settings: Optional[Record]  # sizes and sources of options
    dependency_sync: Optional[bool]  # packages can be installed


class CellResult(Record):
    context: Optional[str]  # id of the interpreter
    language: Optional[str]
    execution_count: Optional[int]  # number of the cell in its context
    status: str  # ok, error, timeout, interrupted or crashed
    stdout: str
    stderr: str
    stdout_truncated: Optional[bool]
    stderr_truncated: Optional[bool]
    results: List[Record]  # what was displayed: a MIME bundle each; main: the value of the last expression
    results_truncated: Optional[bool]
    error: Optional[Record]
    restarted: Optional[bool]  # the state of the context was lost before this cell
    failure: Optional[str]  # why the interpreter did not start
    termination: Optional[Record]  # how an interpreter ended that crashed
    timings: Optional[Record]  # queue_ms, start_ms, run_ms


class Changed(Record):
    error: Optional[str]  # why not
    success: bool


class CommandResult(Record):
    stdout: str
    stderr: str
    error: Optional[str]  # if the code is not 0
    code: int  # -1: ended by a signal
    stdout_truncated: Optional[bool]  # only when it was cut
    stderr_truncated: Optional[bool]  # only when it was cut
    denied: Optional[List[Record]]  # what was refused, setting, advice
    hint: Optional[str]  # below /v1/sandboxes: what may help
    termination: Optional[Record]  # below /v1/sandboxes: reason, signal
    timings: Optional[Record]  # below /v1/sandboxes: queue_ms, start_ms, run_ms, total_ms


class ConsoleSession(Record):
    key: str  # a bearer token that opens what the secret opens
    expires_at: str  # UTC


class ConsoleTicket(Record):
    ticket: str  # is exchanged for a key, once
    path: str  # with the ticket in its fragment
    expires_in: Optional[int]  # seconds


class Context(Record):
    id: str
    language: str  # python, javascript, typescript, bash or r
    cwd: Optional[str]  # where it began
    state: str  # starting, idle, busy or down
    default: Optional[bool]  # made on first use for cells that name only a language
    execution_count: Optional[int]  # cells that began
    waiting: Optional[int]  # cells that wait
    created_at: Optional[str]


class Contexts(Record):
    contexts: List[Context]  # in the order of their making


class DependencySync(Record):
    status: str  # completed
    installed_dependencies: Optional[List[Record]]  # name, version, install_location, install_time, is_from_template; transitive ones, too
    error: Optional[str]  # empty
    started_at: Optional[str]  # UTC
    completed_at: Optional[str]  # UTC


class Entries(Record):
    entries: Optional[List[str]]  # names, sorted
    error: Optional[str]  # why not


class Execution(Record):
    execution_id: str
    session_id: Optional[str]
    state: str  # queued, running, done
    status: Optional[str]  # of a finished one
    language: Optional[str]
    created_at: Optional[str]  # UTC
    progress: Any  # what the program last reported, or null
    result: Any  # of a finished one


class ExecutionPending(Record):
    execution_id: str  # ask for it at /v1/executions/{id}
    status: str  # PENDING
    message: Optional[str]  # Execution submitted


class ExecutionResult(Record):
    execution_id: str  # as asked for, or made
    status: str  # error: the sandbox failed or a resource limit was met
    stdout: str  # exactly what the program wrote
    stderr: str  # the same, and at the end why it was stopped, if it was
    exit_code: int  # 128 + signal; -1 when it did not end by itself
    execution_time: Optional[float]  # seconds of wall time
    return_value: Any  # what the handler returned, any JSON value
    metrics: Optional[Record]  # duration_ms, cpu_time_ms, peak_memory_mb, io_*_bytes
    artifacts: Optional[List[str]]  # files left in the workspace, relative, sorted
    artifact_metadata: Optional[List[Record]]  # path, size, mime_type, type, created_at, checksum (SHA-256)
    left_out: Optional[List[Record]]  # only when files could not be kept: path, size, reason
    artifacts_left_out: Optional[int]  # only when some were: how many files are not in the list
    stdout_truncated: Optional[bool]  # only when stdout was cut
    stderr_truncated: Optional[bool]  # only when stderr was cut
    error: Optional[Record]  # type, message and stack of an exception, if there was one
    termination: Optional[Record]  # reason, and signal, limit, limit_value, observed, hint if known
    denied: Optional[List[Record]]  # only after a failure: what was refused, setting, advice
    network: Optional[List[NetworkRow]]  # of one with a network: what was reached and refused
    network_left_out: Optional[int]  # connections to hosts beyond the first 64
    isolation: Optional[Record]  # jail, template, warm, traits
    timings: Optional[Record]  # queue_ms, start_ms, run_ms, collect_ms, total_ms


class ExecutionRow(Record):
    execution_id: str
    session_id: Optional[str]
    state: str  # queued, running, collecting, done
    status: Optional[str]  # of a finished one
    reason: Optional[str]  # of a finished one: why it ended
    language: Optional[str]
    created_at: Optional[str]  # UTC
    exit_code: Optional[int]  # of a finished one
    total_ms: Optional[float]  # of a finished one
    stdout_bytes: Optional[int]  # of a finished one
    stderr_bytes: Optional[int]  # of a finished one
    artifacts: Optional[int]  # of a finished one: how many


class ExecutionStopping(Record):
    execution_id: Optional[str]
    state: Optional[str]  # stopping


class Executions(Record):
    executions: List[ExecutionRow]  # the newest first
    next: Optional[str]  # cursor of the next page; null: there is none


class FileContent(Record):
    content: Optional[str]  # the file as text
    error: Optional[str]  # why not


class FileEntries(Record):
    path: str  # the directory
    entries: List[FileEntry]  # each directory before what is in it, sorted by bytes
    next: Optional[str]  # `after` of the next part; null: this is the last one


class FileEntry(Record):
    name: str  # the last part of the path
    path: str  # absolute
    path_base64: Optional[str]  # only of a path that is not UTF-8: its bytes
    type: str  # file, directory, symlink, fifo, socket or device
    size: int  # bytes
    mode: str  # octal, such as 0644
    permissions: Optional[str]  # as ls writes them, such as -rw-r--r--
    owner: Optional[str]  # a name, or its number
    group: Optional[str]  # a name, or its number
    uid: Optional[int]
    gid: Optional[int]
    modified_at: Optional[str]  # UTC
    accessed_at: Optional[str]  # UTC
    changed_at: Optional[str]  # UTC, also of its mode and its name
    link: Optional[str]  # only of a symbolic link: its text
    target: Optional[str]  # the same: where it leads, absolute; null: nowhere
    target_type: Optional[str]  # the same: what is there
    metadata: Optional[Record]  # only when it has some: names and values of an upload


class FileExists(Record):
    exists: bool


class FileUrl(Record):
    method: str  # GET or PUT
    url: str  # path and query; it opens this file alone
    expires_at: str  # UTC


class FileWritten(Record):
    path: str
    size: Optional[int]  # bytes
    files: Optional[int]  # of an archive
    directories: Optional[int]  # of an archive


class FilesWritten(Record):
    files: List[FileEntry]  # in the order of the body


class FunctionFiles(Record):
    created: Optional[List[Record]]  # type, path, content, size, timestamp
    modified: Optional[List[Record]]  # the same, and oldContent
    deleted: Optional[List[Record]]  # type, path, oldContent
    denied: Optional[List[Record]]  # path, operation
    leftOut: Optional[int]  # changes that are not listed, if there are any


class FunctionResult(Record):
    status: str  # what became of it
    success: bool  # status is success
    result: Any  # what the function returned, any JSON value
    error: Optional[Record]  # type, message, stack
    stdout: Optional[str]  # exactly what was written
    stderr: Optional[str]  # the same
    exitCode: Optional[int]  # 0; 1 after an error, 124 a timeout, 143 cancelled
    files: Optional[FunctionFiles]  # what it changed
    sync: Optional[Record]  # synced, failed, skipped, rolledBack, events
    meta: Optional[Record]  # duration, signatureSource, callId, engine, language, functionName, argsMode, loading, ...
    session: Optional[Record]  # of a session: id, generation, call, restarted, reason, interrupted, reset
    id: Optional[str]  # of a session that was created
    items: Optional[int]  # of a stream: how many there were
    termination: Optional[Record]  # reason, and signal, limit, limit_value, hint if known
    isolation: Optional[Record]  # jail, warm, traits
    timings: Optional[Record]  # queue_ms, start_ms, run_ms, collect_ms, total_ms


class Health(Record):
    status: str  # ok, healthy where there is a control plane, or unhealthy with 503
    version: Optional[str]
    isolation: Optional[str]  # name of the default jail
    warning: Optional[str]  # if programs run without isolation
    state_directory: Optional[str]  # if it is full: artifacts are not kept
    platform: Optional[str]
    uptime_seconds: Optional[float]
    active_executions: Optional[int]
    reason: Optional[str]  # of what is wrong
    detail: Any  # the same where older clients look


class Info(Record):
    service: Optional[str]
    version: Optional[str]
    isolation: Optional[str]  # name of the default jail
    platform: Optional[str]
    kernel: Optional[str]  # release
    machine: Optional[str]
    workspace_path: Optional[str]
    uptime_seconds: Optional[float]
    active_executions: Optional[int]
    queued_executions: Optional[int]
    retained_executions: Optional[int]
    languages: Optional[List[Record]]  # name, version, available


class Inspection(Record):
    language: Optional[str]
    functions: Optional[List[Record]]  # name, signature, schema
    complete: Optional[bool]  # all could be read
    issues: Optional[List[Record]]  # what could not be read


class NetworkRow(Record):
    host: str  # as the program named it
    port: int
    verdict: str  # allowed or denied
    connections: Optional[int]
    requests: Optional[int]  # plain HTTP requests that were looked at
    bytes_up: Optional[int]  # from the program
    bytes_down: Optional[int]  # to the program
    reason: Optional[str]  # of one that was denied
    advice: Optional[str]  # what can be done about it


class OpenApi(Record):
    openapi: str  # version
    paths: Record


class PackageSet(Record):
    name: Optional[str]  # null: it has none
    id: str  # made from its lists
    state: str
    created_at: Optional[str]  # UTC
    python: Optional[List[str]]  # as asked for
    npm: Optional[List[str]]  # as asked for
    installed: Optional[List[Record]]  # name, version, kind (python or npm); transitive ones, too
    files: Optional[int]
    bytes: Optional[int]
    error: Optional[str]  # of one that failed: why, and the last lines of the installer
    progress: Optional[Record]  # while it is installed: elapsed_ms, downloaded_bytes, files, output


class PackageSets(Record):
    packages: List[PackageSet]  # those there are


class PortBound(Record):
    message: Optional[str]
    port: Optional[str]
    proxy_port: Optional[int]  # where it can be reached, of a named sandbox
    current_port: Optional[str]  # of a conflict
    error: Optional[str]
    success: bool


class Process(Record):
    command: Optional[str]
    id: str
    pid: Optional[int]  # inside
    status: str  # running, completed, failed, killed
    exit_code: Optional[int]  # null while it runs
    started_at: Optional[str]  # RFC 3339
    completed_at: Optional[str]  # null while it runs


class ProcessKilled(Record):
    success: bool
    message: Optional[str]
    error: Optional[str]  # why not


class ProcessStarted(Record):
    id: str
    pid: Optional[int]  # inside
    status: Optional[str]  # running, completed, failed, killed
    error: Optional[str]  # why not


class Processes(Record):
    processes: List[Process]  # in the order of their start


class Root(Record):
    service: str  # sandbox-executor
    version: str
    console: Optional[str]  # path of the console; null: there is none
    docs: Optional[str]  # path of this documentation
    health: Optional[str]  # path
    execute: Optional[str]  # path
    openapi: Optional[str]  # path


class Sandbox(Record):
    id: str
    name: str
    state: str  # running, paused or ending
    created_at: Optional[str]  # UTC
    timeout: Optional[float]  # seconds without a request; 0: never
    ends_at: Optional[str]  # UTC; null: at no fixed time
    on_end: Optional[str]  # delete or pause
    auto_resume: Optional[bool]  # a request resumes it while it is paused
    template: Optional[str]
    metadata: Optional[Record]  # texts of its owner's own
    home: Optional[str]  # where commands begin, and HOME
    access: Optional[Record]  # token, traffic_token, private_ports; of one that is made or asked for alone
    limits: Optional[Record]  # memory_mb, disk_mb, files, pids
    isolation: Optional[str]  # name of its jail
    network: Optional[Record]  # mode: none, allow, public or host; with allow or deny, ports, transparent and bytes_max
    env: Optional[List[str]]  # names of variables
    bound_port: Optional[str]
    proxy_port: Optional[int]
    processes: Optional[Record]  # running, kept
    writable: Optional[List[str]]  # directories; of one that is asked for alone
    usage: Optional[Record]  # cpu_ms, memory_bytes, memory_peak_bytes, oom_kills, pids, disk_bytes


class SandboxNetwork(Record):
    mode: str  # none, allow, public or host
    allow: Optional[List[Any]]  # of mode allow: hosts, or objects with methods and paths
    deny: Optional[List[str]]  # of mode public
    ports: Optional[List[int]]  # of mode public
    transparent: Optional[bool]
    bytes_max: Optional[int]
    network: List[NetworkRow]  # what was reached and what was refused so far
    network_left_out: Optional[int]  # connections to hosts beyond the first 64


class SandboxProcess(Record):
    pid: int  # its number inside
    id: str
    tag: Optional[str]  # a name of its owner's own
    command: Optional[str]  # the text, or the program
    config: Optional[Record]  # cmd, args, envs, cwd as asked for
    terminal: Optional[Record]  # columns, rows; null: none
    status: str  # running, completed, failed or killed
    exit_code: Optional[int]  # -1: by a signal or a limit; null: it runs
    reason: Optional[str]  # exit, signal, timeout, oom, cancelled, ...; null: it runs
    signal: Optional[int]  # that ended it; null: none
    started_at: Optional[str]  # UTC
    ended_at: Optional[str]  # UTC; null: it runs
    output: Optional[Record]  # from: number of the oldest byte that is kept; bytes: how many there were; closed


class SandboxProcesses(Record):
    processes: List[SandboxProcess]  # in the order of their start


class Sandboxes(Record):
    sandboxes: List[Sandbox]  # those there are
    next: Optional[int]  # for `after`; null: there are no more


class Session(Record):
    id: str
    language: Optional[str]
    engine: Optional[str]
    isolation: Optional[str]  # name of its jail
    state: str  # down: there is no process until the next call
    createdAt: Optional[str]  # UTC
    generation: Optional[int]  # processes so far
    calls: Optional[int]  # begun so far
    queued: Optional[int]  # calls that wait
    timeout: Optional[float]  # of a call that names none
    idleTimeout: Optional[float]  # 0: never
    idleFor: Optional[float]  # seconds, while it rests
    lost: Optional[str]  # why its state was lost, until a call has told
    limits: Optional[Record]  # memoryMb, workspaceMb, pids, outputBytes, resultBytes, queue
    usage: Optional[Record]  # cpuMs, memoryPeakBytes


class Sessions(Record):
    sessions: List[Session]  # those there are


class SyncReport(Record):
    synced: Optional[List[str]]  # paths written back
    failed: Optional[List[Record]]  # path and error
    skipped: Optional[List[str]]  # paths
    rolledBack: Optional[bool]  # what was written was undone
    aborted: Optional[bool]  # a rule ended it
    events: Optional[List[Record]]  # what happened, in order


class ToolBundle(Record):
    bundle: str  # its name
    version: int  # from 1 on
    language: Optional[str]  # of its source text
    sha256: Optional[str]  # of its source text
    created_at: Optional[str]  # when this version was published
    by: Optional[str]  # the interface it was published through: rest or mcp
    timeout: Optional[int]  # seconds of a call
    tools: List[Record]  # name, title, description, inputSchema, annotations, as in tools/list
    warnings: Optional[List[str]]  # functions that were left out, and what their users will miss
    code: Optional[str]  # its source text, if that was asked for


class ToolCalls(Record):
    execution_id: str  # the run, as its result names it under io.sandbox-executor/run
    tool_calls: List[Record]  # tool, ms, ok, bytes_in, bytes_out, arguments, answer


class Tools(Record):
    bundles: List[Record]  # name, version, language, sha256, created_at, by, tools (names)
    tools: List[Record]  # all of them by name, as in tools/list


class Workspace(Record):
    session_id: Optional[str]  # null: not known until the session is used again
    bytes: Optional[int]  # on disk, when it was measured; null: never yet
    files: Optional[int]  # files and directories in it, the same
    measured_at: Optional[str]  # UTC; after each execution, and for each GET of it alone
    created_at: str  # UTC
    last_used_at: str  # UTC: when an execution of the session began or ended
    in_use: bool  # an execution of the session is running or waiting


class Workspaces(Record):
    workspaces: List[Workspace]  # the newest first
    next: Optional[str]  # `cursor` of the next page; null: there is none
