"""The progress bar of ``tokdfa run``: items done, what is being measured, time gone and an estimate of what is left."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import TracebackType

    from rich.console import Console

    from tokdfa.lab.run.execute import Progress


class RunProgress:
    """A context manager that is called with the events of `tokdfa.lab.run.execute.run`.

    On a terminal it draws a bar; elsewhere it prints a line for each finished group, so that logs stay readable.
    """

    def __init__(self, console: Console) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Bar

        self._console = console
        self._bar = Bar(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}"),
            console=console,
            disable=not console.is_terminal,
            transient=True,
        )
        self._task: Any = None

    def __enter__(self) -> RunProgress:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def __call__(self, event: Progress) -> None:
        from rich.markup import escape

        if self._task is None:
            self._task = self._bar.add_task("starting", total=event.total, left="")
        changes: dict[str, Any] = {"completed": event.done, "total": event.total}
        if event.remaining is not None:
            changes["left"] = f"about {_duration(event.remaining)} left"
        if event.message:
            changes["description"] = escape(event.message[:60])
        self._bar.update(self._task, **changes)
        if event.event == "note":
            self._console.print(escape(event.message), highlight=False)
        elif event.event == "group_finished" and not self._console.is_terminal:
            self._console.print(f"{event.done} of {event.total} items, {_duration(event.elapsed)}", highlight=False)


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"
