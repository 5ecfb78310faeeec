"""``tokdfa warmup``: compile all kernels; and what commands that need them do first."""

from __future__ import annotations


def warmup() -> None:
    """Compile all kernels now (they are kept on disk)."""
    from rich.console import Console

    from tokdfa.core import jit

    if jit.is_warm():
        Console().print(f"all kernels are compiled already, in {jit.kernel_folder()}", highlight=False, soft_wrap=True)
        return
    ensure_warm()


def ensure_warm() -> None:
    """Compile the kernels if this machine has not yet, saying so."""
    from tokdfa.core import jit

    if jit.is_warm():
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console()
    console.print(
        f"compiling kernels, once (a minute or two; kept in {jit.kernel_folder()})", highlight=False, soft_wrap=True
    )
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed}/{task.total}"))
    with Progress(*columns, TimeElapsedColumn(), console=console) as progress:
        bar = progress.add_task("kernels", total=len(jit.WARMUP_STEPS))
        for title, done, total in jit.warm_up():
            progress.update(bar, description=title, completed=done, total=total)
        progress.update(bar, description="kernels", completed=len(jit.WARMUP_STEPS))
