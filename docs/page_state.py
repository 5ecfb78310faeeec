"""What has changed since a page of `papers/reports` was made: said in the first line of the page on the site.

A page names its experiment and the commit that it was made with. It is *older* than that experiment, than its kind or
than one of its engines, if the history has later commits to their files. `site` checks this when the site is built, so
no page is marked by hand; ``python docs/page_state.py`` prints the line of every page that has one.
"""

from __future__ import annotations

import re
import subprocess
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent
_COMMIT = re.compile(r"\| git · commit +\| ([0-9a-f]{40}) \|")
_EXPERIMENT = re.compile(r"`tokdfa run experiments/(\w+)\.yaml`")
#: What a kind measures with, beside its own file and those of its name.
_INSTRUMENTS = {
    "backends": ("contenders.py", "memory.py", "warm_up.py", "workloads.py"),
    "maskbench": ("servants.py", "warm_up.py", "schema_corpus.py"),
    "skew": ("skew_rows.py", "drawn_skew.py"),
}


def commit_of(page: str) -> str:
    """The commit that a page names; empty if it names none."""
    found = _COMMIT.search(page)
    return found[1] if found else ""


def in_history(commit: str) -> bool:
    """Whether a commit is one of those that lead here."""
    return _git("merge-base", "--is-ancestor", commit, "HEAD") is not None


def first_line(page: str) -> str:
    """The line about the page's age; empty where nothing has changed, or nothing is known of the page."""
    commit, named = commit_of(page), _EXPERIMENT.search(page)
    if not commit or named is None or _git("rev-parse", "HEAD") is None:
        return ""
    if not in_history(commit):
        return f"*This page names the commit {commit[:10]}, which is not in the history: measure it again.*"
    experiment = ROOT / "experiments" / f"{named[1]}.yaml"
    changed = [
        title
        for title, paths in _parts(experiment)
        if _git("log", "-1", "--format=%h", f"{commit}..HEAD", "--", *paths)
    ]
    if not changed:
        return ""
    day = (_git("show", "-s", "--format=%cs", commit) or "").strip()
    return f"*This page is older than {_listed(changed)}: it was made with commit {commit[:10]} of {day}.*"


@cache
def _parts(experiment: Path) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """What an experiment rests on: in words, and the files."""
    import yaml

    from tokdfa.backends.registry import BUILT_IN

    text = experiment.read_text(encoding="utf-8")
    content = yaml.safe_load(text)
    kind = content.get("kind", "backends")
    kinds = [kind, *(content.get("settings", {}) if kind == "backends" else ())]
    found = [("its experiment", (f"experiments/{experiment.name}",))]
    for one in kinds:
        instruments = [f"tokdfa/lab/measure/{name}" for name in _INSTRUMENTS.get(one, ())]
        instruments += [path.relative_to(ROOT).as_posix() for path in ROOT.glob(f"tokdfa/lab/measure/{one}*.py")]
        found.append((f"the kind {one}", (f"tokdfa/lab/kinds/{one}.py", *sorted(instruments))))
    for name in sorted(set(re.findall(r"\w+", text)) & set(BUILT_IN)):
        module = BUILT_IN[name].partition(":")[0].replace(".", "/")
        folder = module.rpartition("/")[0]
        own = folder not in ("tokdfa/backends", "tokdfa/backends/peers")
        found.append((name, (folder if own else f"{module}.py",)))
    return tuple(found)


def _listed(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def _git(*arguments: str) -> str | None:
    """What git says; None if there is no git, or no history, or it says no."""
    try:
        done = subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=False)
    except OSError:
        return None
    return done.stdout if done.returncode == 0 else None


if __name__ == "__main__":
    for path in sorted((ROOT / "papers" / "reports").glob("*.md")):
        if line := first_line(path.read_text(encoding="utf-8")):
            print(f"{path.name}: {line}")
