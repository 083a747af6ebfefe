"""Notice code that blocks an agent's event loop, and say which: all its other calls wait meanwhile.

A task of the loop notes the time; a thread looks whether it still does. It reads the stack of the loop's
thread while that is blocked, so it can name the line.
"""

import asyncio
import logging
import sys
import sysconfig
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import Any

from .. import conf
from ..messaging.messages import Request
from ..tracing.subject import about

logger = logging.getLogger(__name__)

BLOCKED = "loop_blocked"  # the code of an attempt whose time ran out because of that
LOCKED = "by code that held the interpreter's lock, such as a regular expression or a library in C"
LIBRARIES = tuple({sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")})


@dataclass(frozen=True, kw_only=True)
class Blocked:
    """One time that the loop was blocked; `since` and `until` are monotonic, `until` None while it is."""

    agent: str
    request: Request | None  # whose code ran, if that is known
    where: str
    stack: str
    since: float
    until: float | None = None

    @property
    def action(self) -> str:
        """Return the action that was the cause, or nothing if that is not known."""
        return self.request.action if self.request else ""

    def __str__(self) -> str:
        took = (self.until or time.monotonic()) - self.since
        lasts = "" if self.until else " so far"
        if self.action:
            return f"{self.agent}.{self.action} blocked the event loop for {took:.1f} s{lasts}, {self.where}"
        return f"the event loop of {self.agent} was blocked for {took:.1f} s{lasts}, {self.where}"


class LoopWatch:
    """Watches one event loop while it serves; `tell` is called in the watch's own thread."""

    def __init__(
        self,
        agent: str,
        request_of: Callable[["asyncio.Task[Any]"], Request | None],
        tell: Callable[[Blocked], None] | None = None,
    ) -> None:
        self._agent = agent
        self._request_of = request_of
        self._tell = tell
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = 0  # that runs the loop
        self._beat = 0.0
        self._silent = 0.0  # the longest time between two beats since the watch looked
        self._last: Blocked | None = None
        self._reported = False
        self._serving, self._closed = threading.Event(), threading.Event()
        self._watch: threading.Thread | None = None

    async def beat(self) -> None:
        """Note the time again and again, as a task of the loop; the thread watches meanwhile."""
        self._loop, self._thread = asyncio.get_running_loop(), threading.get_ident()
        self._beat = time.monotonic()
        if self._watch is None:
            name = f"watch of {self._agent}"
            self._watch = threading.Thread(target=self._run, name=name, daemon=True)
            self._watch.start()
        self._serving.set()
        try:
            while True:
                await asyncio.sleep(conf.LOOP_BEAT_S)
                now = time.monotonic()
                self._silent = max(self._silent, now - self._beat)
                self._beat = now
        finally:
            self._beat = time.monotonic()
            self._serving.clear()

    def close(self) -> None:
        """End the thread."""
        self._closed.set()
        self._serving.set()

    @property
    def beat_at(self) -> float:
        """Return when the loop last showed that it goes on (monotonic)."""
        return self._beat

    def during(self, began: float) -> Blocked | None:
        """Return how the loop was blocked last, if that was after a moment (monotonic)."""
        last = self._last
        return last if last and (last.until is None or last.until > began) else None

    def _run(self) -> None:
        while not self._closed.is_set():
            self._serving.wait()
            looked, computed, self._silent = time.monotonic(), time.process_time(), 0.0
            self._closed.wait(conf.LOOP_BEAT_S)
            late = time.monotonic() - looked - conf.LOOP_BEAT_S
            if late < conf.LOOP_BLOCKED_AFTER_S:
                self._look()
            elif time.process_time() - computed > late / 10 and self._is_silent():
                self._last = Blocked(
                    agent=self._agent, request=None, where=LOCKED, stack="", since=looked,
                    until=time.monotonic(),
                )  # fmt: skip
                self._report(self._last)
            # otherwise the whole process stood still, and this thread with it

    def _is_silent(self) -> bool:
        """Return whether the loop was silent since the last look, or is."""
        silent = max(self._silent, time.monotonic() - self._beat)
        return self._serving.is_set() and silent > conf.LOOP_BEAT_S + conf.LOOP_BLOCKED_AFTER_S

    def _look(self) -> None:
        """Read where the loop is if it is silent; tell of it when it goes on, or if it is silent for long."""
        beat, now = self._beat, time.monotonic()
        last = self._last
        if last and last.until is None:
            if beat > last.since:
                self._last = last = replace(last, until=max(beat - conf.LOOP_BEAT_S, last.since))
                self._report(last)
            elif now - beat > conf.LOOP_BLOCKED_LONG_S and not self._reported:
                self._reported = True
                self._report(last)
        elif self._serving.is_set() and now - beat > conf.LOOP_BEAT_S + conf.LOOP_BLOCKED_AFTER_S:
            self._last = self._capture(beat)
            self._reported = False

    def _capture(self, beat: float) -> Blocked | None:
        """Return what the loop's thread does; None if it waits for its next task, for lack of a processor."""
        task = asyncio.current_task(self._loop)
        frame = sys._current_frames().get(self._thread)  # noqa: SLF001 - there is no other way to it
        if task is None or frame is None or self._beat != beat:
            return None
        stack = [outer for outer in _outward(frame) if outer.f_code.co_filename != __file__]
        mine = next((outer for outer in stack if not _is_library(outer)), frame)
        file, line = Path(mine.f_code.co_filename), mine.f_lineno
        (entry,) = traceback.extract_stack(mine, limit=1)
        return Blocked(
            agent=self._agent,
            request=self._request_of(task),
            where=f"at {file.parent.name}/{file.name}:{line}: {entry.line}",
            stack="".join(traceback.format_stack(frame, limit=conf.LOOP_STACK_FRAMES)),
            since=beat,
        )

    def _report(self, blocked: Blocked) -> None:
        # The alert first: what blocks the loop may be the log, which then blocks this thread as well.
        if self._tell:
            self._tell(blocked)
        extra = about(blocked.request) if blocked.request else None
        logger.error("%s", f"{blocked}\n{blocked.stack}".rstrip(), extra=extra)


def _outward(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def _is_library(frame: FrameType) -> bool:
    return frame.f_code.co_filename.startswith((*LIBRARIES, "<frozen"))
