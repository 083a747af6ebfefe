"""The log's output: its reader blocks no process."""

import os

from sasweb.stack.manager import LONGEST_BACKLOG, Output


def pipe():
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    return reader, writer


def read(reader):
    """Read what is available."""
    available = b""
    try:
        while data := os.read(reader, 65_536):
            available += data
    except BlockingIOError:
        pass
    return available


def test_blocked_output_is_written_later_in_order():
    reader, writer = pipe()
    output = Output(writer)
    lines = b"".join(b"line %d\n" % number for number in range(50_000))
    output.write(lines)  # a pipe holds 64 kB
    data = b""
    while more := read(reader):
        data += more
        output.flush()
    assert data == lines


def test_oldest_output_is_dropped_when_the_buffer_is_full():
    reader, writer = pipe()
    output = Output(writer)
    for number in range(30):
        output.write(b"%02d" % number * 50_000)
    data = b""
    while more := read(reader):
        data += more
        output.flush()
    assert data.endswith(b"29" * 50_000)
    assert len(data) < LONGEST_BACKLOG + 200_000


def test_pending_output_is_dropped_on_close():
    reader, writer = pipe()
    output = Output(writer)
    os.close(reader)
    output.write(b"no one reads this\n")
    output.write(b"nor this\n")  # no error


def test_file_takes_all_output_at_once(tmp_path):
    with (tmp_path / "log").open("wb") as file:
        Output(file.fileno()).write(b"x" * 300_000)
    assert (tmp_path / "log").stat().st_size == 300_000
