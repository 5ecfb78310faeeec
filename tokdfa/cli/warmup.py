"""``tokdfa warmup``: compile all kernels."""

from __future__ import annotations


def warmup() -> None:
    """Compile all kernels now (they are kept on disk)."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    from tokdfa.core import jit
    from tokdfa.core.kernel_store import kernel_folder, prebuilt_folder

    console = Console()
    if jit.is_warm():
        where = prebuilt_folder() or kernel_folder()
        console.print(f"all kernels are compiled already, in {where}", highlight=False, soft_wrap=True)
        return
    console.print(
        f"compiling kernels, once (a minute or two; kept in {kernel_folder()})", highlight=False, soft_wrap=True
    )
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed}/{task.total}"))
    with Progress(*columns, TimeElapsedColumn(), console=console) as progress:
        bar = progress.add_task("kernels", total=len(jit.WARMUP_STEPS))
        for title, done, total in jit.warm_up():
            progress.update(bar, description=title, completed=done, total=total)
        progress.update(bar, description="kernels", completed=len(jit.WARMUP_STEPS))
