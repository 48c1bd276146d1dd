# SPDX-License-Identifier: MIT
"""Tests that take long because they do the same again and again, and why.

They look for what piles up, tears or grows after many times, or they spend their time in programs of
others. ./check runs them whenever anything they depend on is another than when they last passed
(tools/run-suite), and with --fresh; a test that is not named here runs every time.
"""

OFTEN = "does the same hundreds or thousands of times, to see what piles up"
LARGE = "moves so much that time goes into the moving"
RACE = "tries for a while to hit a moment"
SWEEP = "goes through a table of system calls, each of which fails once"
PIP = "installs with pip, which takes a second of a processor each time; the tests beside it install, too"
COMPILER = "waits a second or more for a compiler of WebAssembly; the tests beside it compile, too"
FOREIGN = "runs dozens of programs of others (compilers, version control, numpy) behind the walls"
TABLE = "one of a long table of programs, of which some run every time"

# Of the programs that are compared in a copy of a warmed Node.js and in a fresh one these run every time.
NODE_ALWAYS = {"sync", "async", "esm", "errors", "worker", "wasm_sync", "fs_promises", "child_process", "signals",
               "http_and_fetch", "timers", "process", "globals", "exit_code", "uncaught"}

# file -> {test, or test without its parameters: reason}
HEAVY = {
    "test_processes.py": {"test_ten_thousand_reattachments_lose_no_byte": OFTEN},
    "test_leaks.py": {
        "test_the_leak_checker_finds_nothing": OFTEN,
        "test_a_thousand_runs_leave_nothing": OFTEN,
        "test_cancelled_and_refused_requests_leave_nothing": OFTEN,
        "test_memory_of_the_daemon_does_not_grow_with_runs": OFTEN,
        "test_a_soak_holds_its_invariants": OFTEN,
    },
    "test_bars.py": {
        "test_no_program_of_another_tenant_fails_beside_bombs": OFTEN,
        "test_a_crowd_is_cheap": OFTEN,
    },
    "test_faults.py": {
        "test_a_failing_call_is_told_and_leaves_nothing": SWEEP,
        "test_a_failing_call_of_the_daemon_costs_at_most_one_connection": SWEEP,
        "test_a_host_that_fails_at_the_start_is_named": SWEEP,
    },
    "test_control_plane.py": {
        "test_sigkill_at_any_moment_loses_no_finished_result": RACE,
    },
    "test_koyeb_ports.py": {
        "test_ten_thousand_opened_and_closed_leave_nothing_behind": OFTEN,
        "test_large_transfers_are_exact": LARGE,
    },
    "test_koyeb_processes.py": {
        "test_fifty_thousand_lines_reach_five_readers": LARGE,
        "test_two_thousand_idle_readers_are_cheap": OFTEN,
        "test_lines_dropped_for_want_of_room_are_counted": LARGE,
        "test_a_flood_of_output_without_readers_is_bounded": LARGE,
        "test_a_slow_reader_is_waited_for_up_to_the_budget_and_slows_nobody": LARGE,
    },
    "test_koyeb_streaming.py": {
        "test_fifty_thousand_lines": LARGE,
        "test_a_slow_client_slows_the_command_and_loses_nothing": LARGE,
    },
    "test_files_entries.py": {
        "test_a_large_directory_is_listed_in_parts_and_whole": LARGE,
    },
    "test_files_transfer.py": {
        "test_size_costs_the_daemon_no_memory": LARGE,
    },
    "test_files_watch.py": {
        "test_lost_events_are_told": LARGE,
    },
    "test_koyeb_files.py": {
        "test_a_hundred_megabytes": LARGE,
        "test_races_with_a_hostile_tenant": RACE,
    },
    "test_archive.py": {
        "test_packing_what_changes_meanwhile": RACE,
        "test_unpacking_into_what_changes_meanwhile": RACE,
        "test_a_slow_client_holds_the_packer_back": LARGE,
        "test_large_directories_are_streamed_both_ways": LARGE,
    },
    "test_attacks.py": {
        "test_everything_holds[ordinary work]": FOREIGN,
    },
    "test_limits.py": {
        "test_a_hundred_really_run_at_the_same_time": OFTEN,
    },
    "test_inspect.py": {
        "test_hostile_code_is_answered_or_refused[1000000]": LARGE,
    },
    "test_functions_large.py": {
        "test_64_mib": LARGE,
    },
    "test_functions_lazy.py": {
        "test_thousands_of_files": OFTEN,
    },
    "test_wasm.py": {
        "test_vector[cpp-abort]": COMPILER,
        "test_what_cpp_throws_is_its_error": COMPILER,
        "test_paths_and_memory_of_the_c_library[cpp]": COMPILER,
        "test_memory_ends": COMPILER,
        "test_threads_are_for_programs_that_go_on": COMPILER,
    },
    "test_sessions_wasm.py": {
        "test_the_first_one_may_be_in_a_hurry": COMPILER,
        "test_c_goes_on_after_a_call_that_was_left": COMPILER,
        "test_compiled_code_that_makes_no_session": COMPILER,
    },
    "test_node_zygote.py": {
        "test_a_program_sees_what_a_fresh_node_shows": TABLE,
    },
    "test_dependencies.py": {
        "test_warmed_and_cold_runs_see_the_same": PIP,
        "test_the_list_is_complete_in_both_modes": PIP,
        "test_files_keep_modes_times_and_hidden_names": PIP,
        "test_survives_a_restart": PIP,
        "test_a_running_execution_keeps_what_it_had": PIP,
        "test_one_at_a_time_for_each_session": PIP,
        "test_goes_on_when_nobody_waits": PIP,
        "test_the_end_of_the_daemon_is_its_end": PIP,
        "test_only_indexes_of_the_operator": PIP,
        "test_files_from_a_host_that_is_allowed": PIP,
        "test_endless_file": PIP,
        "test_slow_index": PIP,
        "test_packages_that_are_too_large": PIP,
        "test_what_a_package_leaves_elsewhere_is_not_kept": PIP,
        "test_the_secret_of_an_index_shows_nowhere": PIP,
        "test_log_and_metrics": PIP,
        "test_rootless": PIP,
    },
}


def reason(nodeid):
    """Why a test is heavy; None: it is not."""
    path, _, test = nodeid.partition("::")
    name, _, case = test.partition("[")
    table = HEAVY.get(path.rpartition("/")[2], {})
    why = table.get(test) or table.get(name)
    return None if why == TABLE and case.rstrip("]") in NODE_ALWAYS else why
