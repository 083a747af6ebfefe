"""The operators' dashboard's addresses, below /ops/."""

from django.urls import URLPattern, URLResolver, path

from .views import (
    agents,
    alerts,
    audit_log,
    dead_letters,
    holds,
    incidents,
    operation_actions,
    operations,
    overview,
    priority,
    resubmit,
    runbook,
    saved_views,
    step_rows,
    system,
    task,
    task_export,
    task_list,
    undo,
    workflows,
)

app_name = "ops"
urlpatterns: list[URLPattern | URLResolver] = [
    path("", overview.overview, name="overview"),
    path("incidents/", incidents.incident_list, name="incidents"),
    path("incidents/<int:incident_id>/", incidents.incident, name="incident"),
    *(
        path(f"incidents/<int:incident_id>/{name}/", view, name=f"incident_{name}")
        for name, view in (
            ("acknowledge", incidents.acknowledge_incident),
            ("assign", incidents.assign_incident),
            ("note", incidents.note_incident),
            ("mute", incidents.mute_incident),
            ("unmute", incidents.unmute_incident),
            ("resolve", incidents.resolve_incident),
        )
    ),
    path("tasks/", task_list.task_list, name="tasks"),
    path("tasks/export/", task_export.export_tasks, name="tasks_export"),
    path("runbook/", runbook.runbook, name="runbook"),
    path("views/", saved_views.save_view, name="save_view"),
    path("views/<int:view_id>/forget/", saved_views.forget_view, name="forget_view"),
    path("tasks/<uuid:task_id>/", task.task, name="task"),
    path("tasks/<uuid:task_id>/undo/", undo.undo, name="undo"),
    path("tasks/<uuid:task_id>/priority/", priority.priority, name="priority"),
    path("steps/<int:step_id>/resubmit/", resubmit.resubmit, name="resubmit"),
    path("steps/<int:step_id>/row/", step_rows.row, name="row"),
    path("steps/<int:step_id>/change/", resubmit.change, name="change"),
    path("steps/<int:step_id>/by-hand/", resubmit.by_hand, name="by_hand"),
    path("holds/new/", holds.hold, name="hold"),
    path("holds/<int:hold_id>/release/", holds.release, name="release"),
    path("alerts/<int:alert_id>/acknowledge/", alerts.acknowledge, name="acknowledge"),
    path("alerts/<int:alert_id>/settle/", alerts.settle, name="settle"),
    path("operations/", operations.operation_list, name="operations"),
    path("operations/new/", operation_actions.operation_new, name="operation_new"),
    path("operations/<int:operation_id>/", operations.operation, name="operation"),
    path(
        "operations/<int:operation_id>/confirm/",
        operation_actions.operation_confirm,
        name="operation_confirm",
    ),
    path(
        "operations/<int:operation_id>/likewise/",
        operation_actions.operation_likewise,
        name="operation_likewise",
    ),
    path(
        "operations/<int:operation_id>/look/",
        operation_actions.operation_look,
        name="operation_look",
    ),
    path(
        "operations/<int:operation_id>/approve/",
        operation_actions.operation_approve,
        name="operation_approve",
    ),
    path(
        "operations/<int:operation_id>/pause/",
        operation_actions.operation_pause,
        name="operation_pause",
    ),
    path(
        "operations/<int:operation_id>/resume/",
        operation_actions.operation_resume,
        name="operation_resume",
    ),
    path(
        "operations/<int:operation_id>/abort/",
        operation_actions.operation_abort,
        name="operation_abort",
    ),
    path("agents/", agents.agents, name="agents"),
    path("agents/<str:agent>/probe/", agents.probe, name="probe"),
    path("dead-letters/", dead_letters.letters, name="dead_letters"),
    path("dead-letters/retry/", dead_letters.retry_letters, name="dead_letters_retry"),
    path("dead-letters/close/", dead_letters.close_letters, name="dead_letters_close"),
    path("system/", system.system, name="system"),
    path("audit/", audit_log.audit, name="audit"),
    path("workflows/", workflows.workflows, name="workflows"),
]
