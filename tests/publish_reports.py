"""Runs become pages of papers/reports: ``python -m tests.publish_reports RUN ...``, folders of ``tokdfa run``.

The report's Markdown goes to ``NAME.md`` with the command that makes it below its title, its plots and tables to
``figures/NAME``. What was there of an earlier run goes. ``--with NAME=VALUE`` says what was set on the command line. No
page names a folder of the machine, nor repeats the experiment, whose file and commit it names.
"""

from __future__ import annotations

import argparse
import re
import shlex
import shutil
from pathlib import Path

REPORTS = Path(__file__).parent.parent / "papers" / "reports"


BUSY = "- The machine was busy:"


def publish(run: Path, extra: list[str]) -> Path:
    """Write the page of one run. Returns its path. A run that was made on a busy machine is not published."""
    name = re.sub(r"-[0-9a-f]{10}$", "", run.name)
    page, figures = REPORTS / f"{name.replace('_', '-')}.md", REPORTS / "figures" / name
    report = run / "report"
    text = (report / "report.md").read_text(encoding="utf-8")
    if BUSY in text:
        raise SystemExit(f"{run}: {text[text.index(BUSY) + 2 :].partition(chr(10))[0]} Measure again on a quiet one.")
    shutil.rmtree(figures, ignore_errors=True)
    for folder, kept in (("plots", figures), ("tables", figures / "tables")):
        named = sorted(set(re.findall(rf"\]\({folder}/([^)]+)\)", text)))
        for file in named:
            kept.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(report / folder / file, kept / file)
        text = text.replace(f"]({folder}/", f"](figures/{kept.relative_to(REPORTS / 'figures').as_posix()}/")
    settings = " ".join(f"--set {shlex.quote(one)}" for one in extra)
    made = (
        f"*Made by `tokdfa run experiments/{name}.yaml`{f', with `{settings}`' if extra else ''}, which makes it "
        "again; times are those of the machine named at the end, so read ratios.*"
    )
    # what repeats it, and on which folders, stands at the end
    title, _, rest = text.partition("\n## Repeat it\n")[0].partition("\n")
    page.write_text(f"{title}\n\n{made}\n{rest}", encoding="utf-8")
    return page


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN")
    parser.add_argument("--with", dest="extra", action="append", default=[], metavar="NAME=VALUE")
    given = parser.parse_args()
    for one in given.runs:
        print(publish(one, given.extra))
