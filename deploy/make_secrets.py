"""`python3 deploy/make_secrets.py`: make the secrets that `compose.yaml` names, where they are missing.

What it cannot know has a value for trying things out: the payment provider's key, and e-mail, which goes to
the log. Other users of this machine cannot enter the folder; the containers' users can read the files.
"""

import secrets
import sys
from pathlib import Path
from urllib.parse import urlsplit

sys.path.insert(0, str(Path(__file__).parents[1]))  # as a program it is in no package

from deploy import redis_users

FOLDER = Path(__file__).with_name("secrets")


def keep(name: str, value: str) -> str:
    """Write a secret unless it is there; return the one that counts."""
    file = FOLDER / name
    if not file.exists():
        file.write_text(value)
    file.chmod(0o644)  # a container's user is another than the one whose umask counts
    return file.read_text()


def main() -> None:
    """Make them all."""
    FOLDER.mkdir(exist_ok=True)
    FOLDER.chmod(0o700)
    keep("secret_key", secrets.token_urlsafe(48))
    keep("message_key", secrets.token_urlsafe(48))
    owner = keep("postgres_password", secrets.token_urlsafe(24))
    shop = keep("shop_database_password", secrets.token_urlsafe(24))
    keep("database_url", f"postgresql://sas:{owner}@postgres:5432/sas")
    keep("shop_database_url", f"postgresql://shop_web:{shop}@postgres:5432/sas")
    keep("redis_users.acl", redis_users.acl({user: _redis(user) for user in redis_users.RULES}))
    keep("payment_secret_key", "sk_test_sandbox")
    keep("payment_webhook_secret", f"whsec_{secrets.token_urlsafe(24)}")
    keep("email_url", "console:")


def _redis(user: str) -> str:
    """Make a user's address; return its password."""
    url = keep(f"redis_url_{user}", f"redis://{user}:{secrets.token_urlsafe(24)}@redis:6379/0")
    return urlsplit(url.strip()).password or ""


if __name__ == "__main__":
    main()
