"""What a session is on, in words."""

import pytest

from sasweb.accounts.session_list import device

CHROME = "(KHTML, like Gecko) Chrome/140.0.0.0"


@pytest.mark.parametrize(
    ("agent", "expected"),
    [
        ("Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0", "Firefox, Linux"),
        (f"Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 {CHROME} Safari/537.36", "Chrome, Windows"),
        (f"Mozilla/5.0 (Windows NT 10.0) {CHROME} Safari/537.36 Edg/140.0", "Edge, Windows"),
        (f"Mozilla/5.0 (Linux; Android 15) {CHROME} Mobile Safari/537.36", "Chrome, Android"),
        ("Mozilla/5.0 (iPhone; like Mac OS X) Version/18.0 Safari/604.1", "Safari, iPhone"),
        ("curl/8.9", "curl/8.9"),
        ("", ""),
        ("x" * 200, "x" * 80),
    ],
)  # fmt: skip
def test_device_is_named_by_browser_and_system(agent, expected):
    assert device(agent) == expected
