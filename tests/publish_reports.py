"""Runs become pages of papers/reports: ``python -m tests.publish_reports RUN ...``, folders of ``tokdfa run``.

The report's Markdown goes to ``NAME.md`` with the command that makes it below its title, its plots and tables to
``figures/NAME``. What was there of an earlier run goes. ``--with NAME=VALUE`` says what was set
on the command line. No page names a folder of the machine.
"""

from __future__ import annotations

import argparse
import re
import shutil
from pathlib import Path

REPORTS = Path(__file__).parent.parent / "papers" / "reports"


def without_places(text: str, name: str) -> str:
    """A page that names no folder of the machine on which it was made."""
    text = re.sub(r"^tokdfa run /.*$", f"tokdfa run experiments/{name}.yaml", text, flags=re.MULTILINE)
    text = re.sub(r"(?<= )/\S*/(?=experiments/inputs)", "", text)
    return re.sub(r"^(\s*(?:data|suite|remotes): )/\S+$", r"\1DIR", text, flags=re.MULTILINE)


def publish(run: Path, extra: list[str]) -> Path:
    """Write the page of one run. Returns its path."""
    name = re.sub(r"-[0-9a-f]{10}$", "", run.name)
    page, figures = REPORTS / f"{name.replace('_', '-')}.md", REPORTS / "figures" / name
    report = run / "report"
    shutil.rmtree(figures, ignore_errors=True)
    text = (report / "report.md").read_text(encoding="utf-8")
    for folder, kept in (("plots", figures), ("tables", figures / "tables")):
        named = sorted(set(re.findall(rf"\]\({folder}/([^)]+)\)", text)))
        for file in named:
            kept.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(report / folder / file, kept / file)
        text = text.replace(f"]({folder}/", f"](figures/{kept.relative_to(REPORTS / 'figures').as_posix()}/")
    settings = " ".join(f"--set {one}" for one in extra)
    made = (
        f"*Made by `tokdfa run experiments/{name}.yaml`{f', with `{settings}`' if extra else ''}, which makes it "
        "again; times are those of the machine named at the end, so read ratios.*"
    )
    title, _, rest = without_places(text, name).partition("\n")
    page.write_text(f"{title}\n\n{made}\n{rest}", encoding="utf-8")
    return page


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN")
    parser.add_argument("--with", dest="extra", action="append", default=[], metavar="NAME=VALUE")
    given = parser.parse_args()
    for one in given.runs:
        print(publish(one, given.extra))
