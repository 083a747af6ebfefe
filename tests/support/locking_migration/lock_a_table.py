from django.db import migrations


class Migration(migrations.Migration):
    operations = [
        migrations.RunSQL("LOCK TABLE orchestration_step IN ACCESS EXCLUSIVE MODE", ""),
    ]
