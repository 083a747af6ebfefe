"""The order of tests, and which of them are left out of `make quick`."""

# The files that take longest, those first, as `--durations=0` says. Those without a stack take five seconds
# of processor time or more.
LONGEST = (
    "stack/test_survival.py",
    "stack/test_drill_red.py",
    "stack/test_deploys.py",
    "stack/test_starting.py",
    "stack/test_crash_points.py",
    "stack/test_flow_drills.py",
    "stack/test_clock_jump.py",
    "stack/test_readme.py",
    "stack/test_hosting.py",
    "stack/test_other_workflow.py",
    "stack/test_recipes.py",
    "stack/test_branches.py",
    "stack/test_duplicates.py",
    "stack/test_replica.py",
    "integration/sasweb/test_odd_values.py",
    "interleave/test_interleave.py",
    "integration/orchestration/console/test_access.py",
    "integration/orchestration/database/test_query_plans.py",
    "integration/orchestration/database/test_database_errors.py",
    "integration/orchestration/transitions/test_claim_race.py",
    "integration/sasweb/test_second_person.py",
    "integration/orchestration/transitions/test_circuit_breaker.py",
    "integration/orchestration/transitions/test_unmended.py",
    "integration/orchestration/assurance/audit/test_audit.py",
    "integration/orchestration/console/queries/test_search_meaning.py",
    "integration/orchestration/workers/test_hosting.py",
    "integration/orchestration/operations/test_race.py",
    "integration/orchestration/installation/test_package.py",
    "integration/orchestration/console/admin/test_records.py",
    "integration/orchestration/models/test_low_water.py",
    "integration/sasweb/test_two_admins.py",
    "integration/orchestration/console/test_task_list.py",
    "integration/orchestration/schedules/test_submitting.py",
    "integration/orchestration/schedules/test_races.py",
    "integration/orchestration/console/test_schedules.py",
    "integration/orchestration/supervision/test_takeover.py",
    "integration/orchestration/test_odd_holds.py",
    "integration/orchestration/transitions/test_attempt_ends.py",
    "integration/orders/api/test_schema.py",
    "integration/orders/subscriptions/test_renewal.py",
    "integration/orders/stock/test_levels.py",
    "integration/orders/stock/test_corrections.py",
    "integration/orders/subscriptions/test_pages.py",
    "integration/orders/subscriptions/test_cards.py",
    "integration/orchestration/incidents/test_incidents.py",
    "integration/orchestration/console/test_incidents.py",
    "integration/orchestration/console/admin/test_policy_replay.py",
    "integration/orchestration/assurance/retention/test_archive.py",
    "integration/orchestration/console/admin/test_notifications.py",
    "integration/orchestration/console/test_overview.py",
    "integration/orchestration/transitions/test_foreign_locks.py",
    "integration/orchestration/console/test_operations.py",
    "integration/orchestration/workers/test_idle_connections.py",
    "integration/orchestration/workers/test_blocked_log.py",
    "integration/orchestration/console/test_searches_at_scale.py",
    "integration/orchestration/console/test_live.py",
    "integration/orchestration/functions/test_worker_death.py",
    "integration/orchestration/testing/test_documented.py",
    "integration/orchestration/models/test_migration_rules.py",
    "integration/orders/shop/test_operator_search.py",
    "integration/orchestration/console/admin/test_settings.py",
    "integration/orchestration/console/test_task_filters.py",
    "integration/orchestration/console/test_actions.py",
    "integration/orchestration/test_submission.py",
    "integration/orders/shop/test_order_changes.py",
    "integration/orders/shop/test_account_access.py",
    "integration/orchestration/testing/test_run.py",
    "integration/recipes/test_patterns.py",
    "integration/recipes/test_payments.py",
    "unit/orchestration/agents/test_performers.py",
    "unit/drill/test_modes_table.py",
    "unit/test_writes.py",
    "unit/test_wheels.py",
    "unit/sasweb/test_settings.py",
    "unit/orchestration/management/test_startworkflow.py",
    "unit/sandbox/test_main.py",
)
PLACES = {f"tests/{name}": place for place, name in enumerate(LONGEST)}
TURN = {"browser": -1, "stack": 1, "unit": 2}  # of a folder; the others come after the browser
QUICK = {"unit", "integration"}


def folder(test: str) -> str:
    """Return the tier of a test."""
    return test.split("/")[1]


def key(test: str) -> tuple[int, int]:
    """Return what tests are sorted by.

    What is timed, people at a browser, goes first, on one stack, beside tests without one. The stacks under
    fault come late: for them a busy machine only takes longer. A file of theirs may take minutes, one of unit
    tests takes seconds: these come last, and the longest files of a turn first, so that all processes end at
    about the same time.
    """
    return TURN.get(folder(test), 0), PLACES.get(test.partition("::")[0], len(PLACES))


def is_quick(test: str) -> bool:
    """Return whether `make quick` runs a test."""
    return folder(test) in QUICK and test.partition("::")[0] not in PLACES
