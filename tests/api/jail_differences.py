# SPDX-License-Identifier: MIT
"""What the black-box suite finds different under another jail, test by test, and why.

SBX_ISOLATION=bwrap or subprocess runs the suite on that jail. A test that is not named here must
pass there as it does on the native jail. docs/jails.md says the same in words.
"""

ZYGOTE = "only the native jail forks programs from warmed interpreters"
AHEAD = "only the native jail starts interpreters before anybody wants them"
WASM = "the engine wasm runs inside the native jail only"
WALLS = "the jail declares no walls"
PATHS = "/workspace and /tmp are directories of the host with longer names"
DISK = "a directory of the host has no limit of bytes or files"
HOST = "a persistent sandbox is the host itself: its files, its user, its network"
SUICIDE = "the program would end the whole host"
ROOT = "the suite runs it with RUN_AS=root"
LENT = "it mounts nothing: files of a mount are copied, and the result says so"
ROLES = "whose call is to fail is told by pid namespaces, and the jail has none"
TERMINALS = "a terminal would be one of the host, and is refused"
PACKAGES = "sessions have no packages there: they need a mount and a network of their own"

# Vectors whose code names /workspace or a mount by its whole path.
VECTORS = [
    "c-create-file",
    "mount-error-still-syncs",
    "mount-lazy",
    "mount-max-file-size",
    "mount-sync-truncate",
    "perm-delete-allowed",
    "perm-delete-denied",
    "perm-glob-class",
    "perm-priority",
    "py-binary-write-over-text-file",
    "py-create-then-delete",
    "py-delete-file",
    "py-mkdir-nested",
    "py-report-no-changes",
    "rb-delete-file",
]

# What only the native jail has: three files that are about nothing else, and single tests.
NATIVE = [
    ("test_wasm.py", WASM),
    ("test_sessions_wasm.py", WASM),
    ("test_attack_through_the_api[wasm-", WASM),
    ("-wasm]", WASM),
    ("test_functions_lazy.py::test_a_runtime_in_webassembly", WASM),
    ("test_node_zygote.py", ZYGOTE),
    ("test_prestart.py", AHEAD),
    ("test_shell_ahead.py", AHEAD),
    ("test_cleanliness.py", ZYGOTE),
    ("test_a_program_that_says_it_is_done_is_taken_at_its_word", ZYGOTE),
    ("test_a_program_that_says_it_has_left_is_gone", ZYGOTE),
    ("test_faults.py::test_a_dead_zygote_is_replaced", ZYGOTE),
    ("test_faults.py::test_a_failing_call_is_told_and_leaves_nothing[python]", ZYGOTE),
    ("test_templates.py::test_data_science_", ZYGOTE),
    ("test_templates.py::test_without_the_packages_it_is_python_all_the_same", ZYGOTE),
    ("test_templates.py::test_nothing_of_a_rehearsal_has_ended_yet", ZYGOTE),
    ("test_templates.py::test_a_generation_shares_its_hash_seed_and_ends_when_packages_change", ZYGOTE),
    ("test_templates.py::test_a_pool_grows_with_demand_and_shrinks_when_it_is_calm", ZYGOTE),
    ("test_templates.py::test_a_pool_does_not_grow_beyond_its_memory", ZYGOTE),
    ("test_templates.py::test_a_pool_does_not_grow_for_requests_that_come_one_after_the_other", ZYGOTE),
    ("test_templates.py::test_a_warmed_interpreter_holds_on_to_nothing_that_files_have", ZYGOTE),
    ("test_templates.py::test_a_handler_that_is_asked_for_again_is_not_compiled_again", ZYGOTE),
    ("test_templates.py::test_nobody_can_say_what_a_text_compiles_to", ZYGOTE),
    ("test_templates.py::test_compiled_code_need_not_be_kept", ZYGOTE),
    ("test_python_zygote.py", ZYGOTE),
]

# jail -> (words in the test's id, reason); the first that fits counts
TABLE = {
    "bwrap": [*NATIVE, ("test_a_sandbox_has_a_limit_of_terminals", "bubblewrap mounts terminals without a limit")],
    "subprocess": [
        *NATIVE,
        ("test_attacks.py", SUICIDE),  # every attack would succeed, the container around the suite included
        ("test_dependencies.py", PACKAGES),
        ("test_packages.py", PACKAGES),
        ("test_leaks.py::test_the_leak_checker_finds_nothing", HOST),
        ("test_leaks.py::test_a_soak_holds_its_invariants", HOST),
        ("test_isolation.py", WALLS),
        ("test_rootless.py", WALLS),
        ("test_sandboxes_rootless.py", WALLS),
        ("test_terminals.py", TERMINALS),
        ("test_processes.py::test_a_relative_directory_begins_where_commands_do", HOST),
        ("test_e2b_process.py", HOST),
        ("test_state_of_one_run_is_not_seen_by_the_next", PATHS),
        ("test_cwd_home_path_and_locale", PATHS),
        ("test_environment_is_made_from_nothing", PATHS),
        ("test_variables_of_the_request_come_last", PATHS),
        ("test_process_looks_ordinary", PATHS),
        ("test_termination_isolation_and_timings_are_told", WALLS),
        ("test_files_count_as_memory", DISK),
        ("test_a_tenant_cannot_shield_itself", WALLS),
        ("test_a_full_disk_", DISK),
        ("test_the_number_of_files_is_bounded", DISK),
        ("test_the_daemon_gives_up_root", ROOT),
        ("test_every_thread_of_the_daemon_is_confined", ROOT),
        ("test_stacks_show_the_programs_own_lines", PATHS),
        ("test_any_working_directory", PATHS),
        ("test_links_do_not_lead_out_of_a_mount", PATHS),
        ("test_sync_does_not_follow_links_made_inside", PATHS),
        ("test_koyeb_files.py::test_write_and_read", HOST),
        ("test_relative_paths_begin_in_the_workspace", HOST),
        ("test_errors_have_the_words_of_the_original[read_file-{here}/closed", HOST),
        ("test_errors_have_the_words_of_the_original[write_file-/proc/version", HOST),
        ("test_errors_have_the_words_of_the_original[make_dir-/new-at-the-root", HOST),
        ("test_delete_dir_names_what_stands_in_the_way", HOST),
        ("test_files_of_the_kernel_can_be_read", HOST),
        ("test_full_disk_is_an_answer", DISK),
        ("test_links_lead_nowhere_outside", HOST),
        ("test_the_host_s_own_ports_are_not_reached", HOST),
        ("test_koyeb_run.py", SUICIDE),
        ("test_create_list_inspect_delete", HOST),
        ("test_two_sandboxes_see_nothing_of_each_other", HOST),
        ("test_the_default_sandbox_can_be_deleted_and_comes_back_fresh", HOST),
        ("test_the_network_of_the_host_only_where_the_operator_allows_it", HOST),
        ("test_sandboxes.py::test_limits_hold", DISK),
        ("test_sandboxes.py::test_many_sandboxes", HOST),
        ("test_sandboxes.py::test_types_and_names", HOST),
        ("test_sandboxes.py::test_errors[PUT-/new-root-403]", HOST),
        ("test_sandboxes.py::test_errors[PUT-/proc/version-403]", HOST),
        ("test_sandboxes.py::test_errors[DELETE-/workspace-403]", HOST),
        ("test_each_workspace_has_a_host_user_of_its_own", HOST),
        ("test_nothing_special_can_be_made_in_a_workspace", WALLS),
        ("test_a_link_out_of_the_workspace_leads_nowhere", WALLS),
        ("test_a_foreign_directory_is_not_taken_over", HOST),
        ("test_a_killed_init_is_an_error_of_its_run_only", "init is not pid 1; test_jails.py kills it in another way"),
        ("test_rollback_restores_everything", PATHS),
        ("test_sync_rules_and_events", PATHS),
        ("test_a_prefix_is_not_a_mount", PATHS),
        ("test_denied_changes", PATHS),
        ("test_what_may_not_be_read_is_not_there", PATHS),
        ("test_functions_files.py", PATHS),
        ("test_functions_lazy.py", LENT),
        ("test_functions_sync.py", PATHS),
        ("test_functions_perl.py::test_errors[0]", PATHS),
        ("test_functions_call.py::test_value[php-43]", PATHS),
        ("test_functions_call.py::test_error[javascript-10]", PATHS),
        ("test_functions_call.py::test_syntax_errors_show_where[python]", PATHS),
        ("test_sessions.py::test_code_that_cannot_be_loaded_again", PATHS),
        ("test_sessions.py::test_files_environment_and_directory", PATHS),
        ("test_sessions.py::test_a_soft_reset_loads_what_lies_beside_the_code_anew", PATHS),
        ("test_inspect.py::test_without_the_program_it_says_so", "its programs lie where only root can go"),
        ("test_archive.py::test_what_is_inside_looks_as_it_did_outside", HOST),
        ("test_archive.py::test_set_id_bits_and_owners_are_not_taken", HOST),
        ("test_archive.py::test_directories_that_cannot_be[PUT-/new-at-the-root-403]", HOST),
        ("test_archive.py::test_a_download_that_fails_half_way_is_not_taken_for_complete", HOST),
        ("test_denials.py", WALLS),
        ("test_faults.py::test_a_failing_call_is_told_and_leaves_nothing", ROLES),
        ("test_faults.py::test_a_lasting_shortage_refuses_and_passes", ROLES),
        ("test_functions_stream.py::test_sync_events_follow_the_items", PATHS),
        *((f"test_sessions_files.py::{name}", PATHS) for name in (
            "test_a_directory_of_the_session_takes_files", "test_a_mount_with_sync",
            "test_a_mount_is_read_anew_when_the_session_restarts",
            "test_a_mount_that_goes_away_fails_the_restart_and_says_so", "test_permissions_in_a_session",
            "test_manual_sync_of_a_session_call", "test_events_of_a_sync_are_streamed")),
        *((f"test_vector[{name}]", PATHS) for name in VECTORS),
        *((f"test_vector_in_every_mode[{name}-", PATHS) for name in VECTORS),
    ],
}

def reason(jail, nodeid):
    for words, why in TABLE.get(jail, []):
        if words in nodeid:
            return why
    return None
