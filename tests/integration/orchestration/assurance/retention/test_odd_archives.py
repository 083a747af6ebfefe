"""Archives of rows that Python cannot read come back; a file of other content is named as damaged."""

import gzip
import hashlib
import json

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from orchestration.assurance.retention import archive, lines
from orchestration.assurance.retention.folder import MANIFEST, Damaged
from orchestration.database import sql
from orchestration.models import StatusMessage, Step, Task
from orchestration.models.fields import Unreadable
from tests.support.engine import new_task, run_to_end

pytestmark = pytest.mark.django_db
LEVELS = (102, 500, 3000)
ODD = (
    "0044-03-15 12:00:00+00 BC",
    "-infinity",
    "11533-01-01 00:00:00+00",
    "294276-12-31 23:59:59+00",
    "infinity",
)


def nested(levels):
    return '{"name":' * levels + "1" + "}" * levels


@pytest.fixture
def ended():
    """Return three tasks that have ended."""
    tasks = [new_task(reference) for reference in ("1", "2", "3")]
    for task in tasks:
        run_to_end(task)
    StatusMessage.objects.all().delete()
    return tasks


def everything():
    tasks = [str(key) for key in Task.objects.values_list("id", flat=True)]
    return dict(lines.write(tasks, lines.shape()))


def archived(path):
    return archive.archive(path, timezone.now(), ["greet"], print, size=1)


@pytest.mark.parametrize("levels", LEVELS)
def test_tasks_with_deep_rows_come_back_beside_others(ended, tmp_path, levels):
    deep = {"deep": nested(levels), "id": str(ended[1].id)}
    sql.run("UPDATE orchestration_task SET data = %(deep)s::jsonb WHERE id = %(id)s", deep)
    sql.run(
        "UPDATE orchestration_step SET request = %(deep)s::jsonb, result = %(deep)s::jsonb"
        " WHERE task_id = %(id)s",
        deep,
    )
    sql.run(
        "INSERT INTO orchestration_event (task_id, kind, actor, reason, detail, at)"
        " VALUES (%(id)s, 'retry', 'ann', 'why', %(deep)s::jsonb, clock_timestamp())",
        deep,
    )
    before = everything()
    assert archived(tmp_path) == 3
    assert not Task.objects.exists()
    assert archive.restore(tmp_path, print) == 3
    assert everything() == before
    assert isinstance(Task.objects.get(reference="2").data, Unreadable)
    assert archive.restore(tmp_path, print) == 0


@pytest.mark.parametrize("odd", ODD)
def test_tasks_with_odd_times_come_back_beside_others(ended, tmp_path, odd):
    values = {"odd": odd, "id": str(ended[1].id)}
    sql.run("UPDATE orchestration_task SET created_at = %(odd)s, complete_by = %(odd)s"
            " WHERE id = %(id)s", values)  # fmt: skip
    if odd.endswith("BC") or odd.startswith("-"):
        sql.run("UPDATE orchestration_task SET ended_at = %(odd)s WHERE id = %(id)s", values)
    sql.run("UPDATE orchestration_step SET ended_at = %(odd)s, dispatched_at = %(odd)s"
            " WHERE task_id = %(id)s", values)  # fmt: skip
    sql.run("INSERT INTO orchestration_hold (scope, agent, workflow, step, task_id, cause, reason,"
            " actor, since, until, released_by, released_why)"
            " VALUES ('task', '', '', '', %(id)s, 'hand', 'r', 'a', %(odd)s, %(odd)s, '', '')",
            values)  # fmt: skip
    before = everything()
    assert archived(tmp_path) == 3
    assert archive.restore(tmp_path, print) == 3
    assert everything() == before
    assert Step.objects.count() == 6


def rewrite(path, change):
    """Have another program write the first file of an archive, with a manifest that fits."""
    manifest = json.loads((path / MANIFEST).read_text())
    entry = manifest["files"][0]
    file = path / entry["file"]
    packed = gzip.compress(change(gzip.decompress(file.read_bytes()).decode()).encode(), mtime=0)
    file.write_bytes(packed)
    entry |= {"bytes": len(packed), "sha256": hashlib.sha256(packed).hexdigest()}
    (path / MANIFEST).write_text(json.dumps(manifest))


WRITTEN_BY_OTHERS = {
    "deep": lambda text: f'{{"orchestration_task": {nested(5000)}}}\n',
    "no json": lambda text: "{\n",
    "no object": lambda text: "[1]\n",
    "no task": lambda text: '{"orchestration_task": []}\n',
    "task without columns": lambda text: '{"orchestration_task": [{}]}\n',
}


@pytest.mark.parametrize("change", WRITTEN_BY_OTHERS.values(), ids=WRITTEN_BY_OTHERS)
def test_file_that_cannot_be_read_is_named_and_nothing_is_put_back(ended, tmp_path, change):
    archived(tmp_path)
    rewrite(tmp_path, change)
    with pytest.raises(Damaged, match=r"tasks-000001.jsonl.gz: line 1"):
        archive.restore(tmp_path, print)
    assert not Task.objects.exists()
    with pytest.raises(CommandError, match="tasks-000001"):
        call_command("archive", "--restore", str(tmp_path))


@pytest.mark.parametrize("text", [nested(5000), "[1]", '{"files": [1]}', '{"files": 1}', "\udcff"])
def test_manifest_that_cannot_be_read_is_named(ended, tmp_path, text):
    archived(tmp_path)
    (tmp_path / MANIFEST).write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(Damaged, match="is not a manifest"):
        archive.restore(tmp_path, print)
