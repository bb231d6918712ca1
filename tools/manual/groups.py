# SPDX-License-Identifier: Apache-2.0
"""The pages of section 3: which calls, structs, enums and constants are described together.

Each name that the public headers declare matches the pattern of exactly one page; section3.py stops
where one does not."""

import re


class Group:
    """`introduces`: the header whose own comment opens the page; None: none."""

    def __init__(self, page, about, pattern, introduces=None):
        self.page, self.about, self.introduces = page, about, introduces
        self.pattern = re.compile(pattern)


GROUPS = [
    Group(
        "weft_session",
        "a trainer's session with the pservers of its job",
        r"weft_session_(open|seal|start|close|abort|stop|save|load|restore|opts_init(_sized)?)"
        r"|weft_version|weft_poll",
        introduces="weft.h",
    ),
    Group(
        "weft_session_opts",
        "the options of a session",
        r"weft_(session_opts|optimizer_opts|progress|dense_mode|sparse_mode|dense_wire|rounding"
        r"|grad_reduce|log_level)",
    ),
    Group(
        "weft_settings",
        "settings of sessions, tensors and tables by name",
        r"weft_settings_\w+",
    ),
    Group(
        "weft_tensor",
        "tensors of a session and their arrays",
        r"weft_tensor_(add|param|grad|count|name|opts|mode)",
    ),
    Group(
        "weft_step",
        "push gradients, and wait for fresh values, step by step",
        r"weft_(steps?|samples|push|wait|wait_all|exchange|pull|pull_all|pass_end|digest)",
    ),
    Group(
        "weft_reduce",
        "sums over all trainers",
        r"weft_(reduce|barrier|all_reduce|type)",
    ),
    Group(
        "weft_state",
        "the optimizer's state and numbers: fetch, average, change and assign",
        r"weft_(state_count|pull_state|tensor_(state|exact|average|change|change_numbers|assign))",
    ),
    Group(
        "weft_stats",
        "what a session has done, and what the lanes know about trainers and tables",
        r"weft_(session|trainer|table|table_lane|sparse)_stats|WEFT_TABLE_HOT_KEYS",
    ),
    Group(
        "weft_table",
        "sparse tables: rows of values found by 64-bit keys",
        r"weft_table_(add|name|dim|key_lane|opts|opts_init(_sized)?)|weft_row_optimizer_opts"
        r"|weft_value_format",
        introduces="sparse.h",
    ),
    Group(
        "weft_rows",
        "batches of rows: pull, wait, push",
        r"weft_rows_\w+",
    ),
    Group(
        "weft_table_records",
        "all rows of a table with their state, for saving and restoring",
        r"weft_table_(read|write|step|record_floats|counter_count|record|partition|reader|writer)"
        r"|WEFT_TABLE_PARTITIONS",
    ),
    Group(
        "weft_restart",
        "jobs that go on where an earlier run of them stopped",
        r"weft_session_(position|resumed|rejoin|finish)|weft_resumed|WEFT_POSITION_BYTES_MAX",
        introduces="restart.h",
    ),
    Group(
        "weft_members",
        "trainers that leave a job, or join it, while it goes on",
        r"weft_session_(leave|joined)",
        introduces="members.h",
    ),
    Group(
        "weft_status",
        "the result of a call, and the text of a failure",
        r"weft_status(_name)?|weft_last_error|WEFT_STATUS_COUNT",
        introduces="status.h",
    ),
]
