"""Gates get the states that every circuit breaker has, and health by the time of the request.

What was `open` (all may go) is `closed` from now on, and so on. What the old breaker had seen says
nothing to the new one: each gate begins afresh, an outage with a probe that is due at once.
"""

from django.db import migrations, models
from django.db.models import Case, Value, When
from django.db.models.functions import Now
from django.utils import timezone

STATES = {"open": "closed", "shut": "open", "probing": "open", "ramping": "open"}
BACK = {"closed": "open", "open": "shut", "half_open": "shut", "recovering": "shut"}
CAP, OLD_CAP = 15.0, 60.0  # the default of the pause's cap
NAMES = ("Policy", "HistoricalPolicy")
WHY = "the default is shorter now: a recovery is not to be noticed late"


def _renamed(gates, names, waiting):
    found = Case(*(When(state=old, then=Value(new)) for old, new in names.items()))
    due = Case(When(state__in=waiting, then=Now()), default=None)
    gates.update(probe_at=due, allowance=0)
    gates.update(state=found)


def forwards(apps, _editor):
    """Rename the states; give the new default to policies that have the old one."""
    waiting = [old for old, new in STATES.items() if new == "open"]
    _renamed(apps.get_model("orchestration", "Gate").objects.all(), STATES, waiting)
    Policy, History = (apps.get_model("orchestration", name) for name in NAMES)
    for policy in Policy.objects.filter(breaker_pause_cap=OLD_CAP, breaker_pause__lte=CAP):
        Policy.objects.filter(pk=policy.pk).update(breaker_pause_cap=CAP)
        values = {field.attname: getattr(policy, field.attname) for field in Policy._meta.fields}
        History.objects.create(
            **{**values, "breaker_pause_cap": CAP}, history_date=timezone.now(),
            history_type="~", history_change_reason=WHY,
        )  # fmt: skip


def backwards(apps, _editor):
    """Give the states their old names; the policies stay as they are."""
    waiting = [new for new, old in BACK.items() if old == "shut"]
    _renamed(apps.get_model("orchestration", "Gate").objects.all(), BACK, waiting)


class Migration(migrations.Migration):

    dependencies = [
        ('orchestration', '0027_times_to_be_moved'),
    ]

    operations = [
        migrations.RemoveConstraint(
            model_name='gate',
            name='gate_state_known',
        ),
        migrations.RemoveConstraint(
            model_name='gate',
            name='gate_shut_until_probe',
        ),
        migrations.RunPython(forwards, backwards),
        migrations.RemoveField(
            model_name='gate',
            name='heard_at',
        ),
        migrations.RemoveField(
            model_name='gate',
            name='recent',
        ),
        migrations.RemoveField(
            model_name='gate',
            name='successes',
        ),
        migrations.AddField(
            model_name='gate',
            name='answered_at',
            field=models.DateTimeField(help_text='When the last request was sent that was answered.', null=True),
        ),
        migrations.AddField(
            model_name='gate',
            name='opened_at',
            field=models.DateTimeField(help_text='When the breaker opened last.', null=True),
        ),
        migrations.AddField(
            model_name='gate',
            name='since',
            field=models.DateTimeField(help_text='Only what was sent from then on says something about the service.', null=True),
        ),
        migrations.AddField(
            model_name='gate',
            name='slots',
            field=models.JSONField(db_default=[], default=list, help_text='What came of it, by the time it was sent: [Unix time, good, bad, put off].'),
        ),
        migrations.AddField(
            model_name='step',
            name='failed_at',
            field=models.DateTimeField(help_text='When it last failed, since it was resubmitted.', null=True),
        ),
        migrations.AddField(
            model_name='step',
            name='own_trouble',
            field=models.BooleanField(db_default=False, default=False, help_text='It failed before and after its service answered others: its failures are its own.'),
        ),
        migrations.AddField(
            model_name='step',
            name='retry_after',
            field=models.FloatField(help_text='Seconds for which the service asked that it be put off, if it failed.', null=True),
        ),
        migrations.AlterField(
            model_name='gate',
            name='allowance',
            field=models.PositiveIntegerField(db_default=0, default=0, help_text='While recovering: requests that may be in flight.'),
        ),
        migrations.AlterField(
            model_name='gate',
            name='probe_at',
            field=models.DateTimeField(help_text='While open: when a probe is due.', null=True),
        ),
        migrations.AlterField(
            model_name='gate',
            name='state',
            field=models.CharField(choices=[('closed', 'Closed'), ('open', 'Open'), ('half_open', 'Half-open'), ('recovering', 'Recovering')], db_default='closed', default='closed', help_text='Of its circuit breaker.', max_length=10),
        ),
        migrations.AlterField(
            model_name='gate',
            name='trips',
            field=models.PositiveSmallIntegerField(db_default=0, default=0, help_text='Times it opened since a probe last succeeded.'),
        ),
        migrations.AlterField(
            model_name='step',
            name='stood_still',
            field=models.FloatField(db_default=0.0, default=0.0, help_text="Seconds that its task's deadline has yet to be put off, for waits at an open breaker or in a hold; negative while more was granted than has been counted."),
        ),
        migrations.AlterField(
            model_name='historicalpolicy',
            name='breaker_calls',
            field=models.PositiveSmallIntegerField(default=20, help_text='The circuit breaker looks at the attempts of the last seconds, and further back as long as they are fewer than these.'),
        ),
        migrations.AlterField(
            model_name='historicalpolicy',
            name='breaker_failures',
            field=models.PositiveSmallIntegerField(default=5, help_text='Failures among them below which it stays closed: all requests go.'),
        ),
        migrations.AlterField(
            model_name='historicalpolicy',
            name='breaker_pause',
            field=models.FloatField(default=5.0, help_text='Seconds an open breaker waits for its first probe; doubles with each that fails.'),
        ),
        migrations.AlterField(
            model_name='historicalpolicy',
            name='breaker_pause_cap',
            field=models.FloatField(default=15.0, help_text='Seconds that the wait for a probe never exceeds.'),
        ),
        migrations.AlterField(
            model_name='historicalpolicy',
            name='breaker_share',
            field=models.FloatField(default=0.5, help_text='Share of failures among them (0 to 1) at which it opens: none go.'),
        ),
        migrations.AlterField(
            model_name='policy',
            name='breaker_calls',
            field=models.PositiveSmallIntegerField(default=20, help_text='The circuit breaker looks at the attempts of the last seconds, and further back as long as they are fewer than these.'),
        ),
        migrations.AlterField(
            model_name='policy',
            name='breaker_failures',
            field=models.PositiveSmallIntegerField(default=5, help_text='Failures among them below which it stays closed: all requests go.'),
        ),
        migrations.AlterField(
            model_name='policy',
            name='breaker_pause',
            field=models.FloatField(default=5.0, help_text='Seconds an open breaker waits for its first probe; doubles with each that fails.'),
        ),
        migrations.AlterField(
            model_name='policy',
            name='breaker_pause_cap',
            field=models.FloatField(default=15.0, help_text='Seconds that the wait for a probe never exceeds.'),
        ),
        migrations.AlterField(
            model_name='policy',
            name='breaker_share',
            field=models.FloatField(default=0.5, help_text='Share of failures among them (0 to 1) at which it opens: none go.'),
        ),
        migrations.AddConstraint(
            model_name='gate',
            constraint=models.CheckConstraint(condition=models.Q(('state__in', ['closed', 'open', 'half_open', 'recovering'])), name='gate_state_known'),
        ),
        migrations.AddConstraint(
            model_name='gate',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('probe_at__isnull', False), ('state', 'open')), models.Q(('state', 'open'), _negated=True), _connector='OR'), name='gate_open_until_probe'),
        ),
        migrations.AlterConstraint(
            model_name='policy',
            name='policy_breaker',
            constraint=models.CheckConstraint(condition=models.Q(('breaker_calls__gte', 1), ('breaker_calls__lte', 200), ('breaker_failures__gte', 1), ('breaker_failures__lte', models.F('breaker_calls')), ('breaker_share__gt', 0), ('breaker_share__lte', 1)), name='policy_breaker', violation_error_message='The breaker wants to see 1 to 200 attempts, and opens when at least so many failed (breaker failures, at most all) and at least that share (0 to 1).'),
        ),
    ]
