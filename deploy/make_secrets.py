"""`python3 deploy/make_secrets.py`: make the secrets that `compose.yaml` names, where they are missing.

What it cannot know has a value for trying things out: the payment provider's key, and e-mail, which goes to
the log. Other users of this machine cannot enter the folder; the containers' users can read the files.
"""

import secrets
from pathlib import Path

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
    postgres = keep("postgres_password", secrets.token_urlsafe(24))
    redis = keep("redis_password", secrets.token_urlsafe(24))
    keep("database_url", f"postgresql://sas:{postgres}@postgres:5432/sas")
    keep("redis_url", f"redis://:{redis}@redis:6379/0")
    keep("payment_secret_key", "sk_test_sandbox")
    keep("email_url", "console:")


if __name__ == "__main__":
    main()
