# SPDX-License-Identifier: MIT
if os.environ.get("SELFTEST_EVENT"):
    handler(json.loads(os.environ["SELFTEST_EVENT"]))
