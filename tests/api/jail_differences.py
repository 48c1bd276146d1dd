# SPDX-License-Identifier: MIT
"""What the black-box suite finds different under another jail, test by test, and why.

SBX_ISOLATION=bwrap or subprocess runs the suite on that jail. A test that is not named here must
pass there as it does on the native jail. docs/jails.md says the same in words.
"""

ZYGOTE = "only the native jail forks programs from warmed interpreters"
WALLS = "the jail declares no walls"
PATHS = "/workspace and /tmp are directories of the host with longer names"
DISK = "a directory of the host has no limit of bytes or files"
HOST = "a persistent sandbox is the host itself: its files, its user, its network"
SUICIDE = "the program would end the whole host"
ROOT = "the suite runs it with RUN_AS=root"

# jail -> (words in the test's id, reason); the first that fits counts
TABLE = {
    "bwrap": [
        ("test_node_zygote.py", ZYGOTE),
    ],
    "subprocess": [
        ("test_node_zygote.py", ZYGOTE),
        ("test_isolation.py", WALLS),
        ("test_rootless.py", WALLS),
        ("test_sandboxes_rootless.py", WALLS),
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
    ],
}


def reason(jail, nodeid):
    for words, why in TABLE.get(jail, []):
        if words in nodeid:
            return why
    return None
