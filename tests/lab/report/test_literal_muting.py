"""Reports on muted literals, from made-up rows with known answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

from tests.lab.report.synthetic import HOSTILE, PROVENANCE, FakeRun, config
from tokdfa.lab.config.resolve import load_config
from tokdfa.lab.kinds.literal_muting import check_settings
from tokdfa.lab.report.data import RunData
from tokdfa.lab.report.kinds import build_headlines, build_plots, build_tables
from tokdfa.lab.report.literal_muting_data import muting_pairs, rows_of, tokenization_counts
from tokdfa.lab.report.page import Page

FOLDER = Path("made-up")
EXPERIMENTS = Path(__file__).parents[3] / "experiments"
TOKENIZERS = (("small", 32_000), ("large", 131_072))
#: token_classes -> seconds of the plain variant; constraint -> plain over muted seconds, literals
PLAIN = {"strings": 0.2, "transformations": 0.1}
GAINS = {"url": (4.0, 2), "date": (0.5, 6), "email": (1.0, 0)}


def cost_row(constraint: str, tokenizer: str, size: int, **changes: Any) -> dict[str, Any]:
    return {
        "item_id": f"{tokenizer}/{constraint}",
        "part": "cost",
        "tokenizer": tokenizer,
        "vocab_size": size,
        "constraint": constraint,
        "backend": "tokens_dfa",
        "status": "ok",
        "message": "",
        "samples": 5,
        "states": 10,
        "muted": False,
        **changes,
    }


def made_up_run() -> FakeRun:
    rows: list[dict[str, Any]] = []
    for tokenizer, size in TOKENIZERS:
        scale = 1 if tokenizer == "small" else 2
        for constraint, (gain, literals) in GAINS.items():
            for classes, seconds in PLAIN.items():
                for muted in (False, True):
                    time = scale * seconds / (gain if muted else 1)
                    rows.append(
                        cost_row(
                            constraint,
                            tokenizer,
                            size,
                            variant=classes + (", muted" if muted else ""),
                            token_classes=classes,
                            muted=muted,
                            seconds=time,
                            seconds_min=0.9 * time,
                            walks_s=(0.01 if muted else 0.08) if classes == "strings" else None,
                            class_strings=(100 if muted else 1000) if classes == "strings" else None,
                            literals=literals if muted else None,
                            ghosts=literals + 1 if muted else None,
                        )
                    )
        rows.append(
            cost_row("url", tokenizer, size, backend="outlines_core", variant="outlines_core", seconds=4.0 * scale)
        )
        for axis, words, length in (("words", 1, 8), ("words", 64, 8), ("length", 16, 2), ("length", 16, 32)):
            for muted in (False, True):
                rows.append(
                    cost_row(
                        "object",
                        tokenizer,
                        size,
                        part="growth",
                        **{"axis": axis, "words": words, "length": length, "token_classes": "strings", "muted": muted},
                        variant="strings" + (", muted" if muted else ""),
                        seconds=0.01 * words * (1 if muted else 3),
                        ghosts=words if muted else None,
                    )
                )
        rows += text_rows(tokenizer, size)
    return FakeRun(
        FOLDER, config(name="m", kind="literal_muting", reference=""), dict(PROVENANCE), {"results": pd.DataFrame(rows)}
    )


def text_rows(tokenizer: str, size: int) -> list[dict[str, Any]]:
    """Per tokenizer: url, 1 given text, forbidden; 4 drawn, one forbidden, one changed; email, 2 drawn, allowed."""
    texts = [("url", "given", "https://a", 1), ("email", "drawn", "a@b", -1), ("email", "drawn", HOSTILE, -1)]
    texts += [("url", "drawn", f"{number}.com", 0 if number == 1 else -1) for number in range(3)]
    rows = [
        {
            **{"item_id": f"{tokenizer}/{constraint}", "part": "text", "tokenizer": tokenizer, "vocab_size": size},
            **{"constraint": constraint, "source": source, "text": text, "status": "ok", "message": ""},
            **{"literals": GAINS[constraint][1], "stops_at": stop, "plain_stops_at": -1},
            **{"positions": 5 if stop < 0 else stop + 1, "proper_count": 4, "fewest_count": 4, "muted_count": 6},
            **{"proper_tokens": json.dumps(["https", "://", "a", "|\n"]), "muted_tokens": json.dumps(["http", "s"])},
        }
        for constraint, source, text, stop in texts
    ]
    changed = {"status": "changed", "message": "another text", "source": "drawn", "text": "ﬁ.com", "proper_count": 3}
    return [*rows, {**rows[-1], **changed, **dict.fromkeys(("stops_at", "positions", "muted_count"))}]


@pytest.fixture(scope="module")
def data() -> RunData:
    return RunData.read(made_up_run())


def table(data: RunData, name: str) -> pd.DataFrame:
    return next(one for one in build_tables(data) if one.name == name).frame


def test_all_tables_are_there(data: RunData) -> None:
    names = ["cost", "effects", "phases", "growth", "tokenizations", "examples", "failed"]
    assert [one.name for one in build_tables(data)] == [*(f"muting_{name}" for name in names), "environment"]


def test_costs_stand_side_by_side(data: RunData) -> None:
    frame = table(data, "muting_cost").set_index(["tokenizer", "constraint"])
    assert len(frame) == 6
    row = frame.loc[("large", "url")]
    assert (row["literals"], row["ghosts"]) == (2, 3)
    assert row["strings"] == pytest.approx(0.4)
    assert row["strings, muted"] == pytest.approx(0.1)
    assert row["strings, muted: ratio"] == pytest.approx(4)
    cells = next(one for one in build_tables(data) if one.name == "muting_cost").rows
    assert [row[5].detail for row in cells[:3]] == ["4.0x faster", "2.0x slower", "equal"]


def test_effects_and_phases(data: RunData) -> None:
    frame = table(data, "muting_effects")
    assert list(frame["constraint"]) == ["url", "date"] * 2  # email has no literals
    assert set(frame["class strings, muted: ratio"]) == {10}
    assert frame["walks, muted: ratio"].tolist() == pytest.approx([8] * 4)
    phases = table(data, "muting_phases")
    assert list(phases["variant"][:5]) == [
        *("strings", "strings, muted", "transformations", "transformations, muted", "outlines_core")
    ]
    assert set(phases["constraint"]) == {"url"}


def test_growth_has_a_row_for_each_size(data: RunData) -> None:
    frame = table(data, "muting_growth")
    assert list(zip(frame["words"], frame["letters"], strict=True)) == [(1, 8), (64, 8), (16, 2), (16, 32)] * 2
    assert frame["strings, muted: ratio"].tolist() == pytest.approx([3] * 8)


def test_tokenizations_are_counted(data: RunData) -> None:
    counts = tokenization_counts(data).set_index(["tokenizer", "constraint", "source"])
    drawn = counts.loc[("small", "url", "drawn")]
    assert (drawn["texts"], drawn["followed"], drawn["changed"], drawn["forbidden"]) == (4, 3, 1, 1)
    assert drawn["positions"] == 5 + 1 + 5
    assert drawn["muted_count"] == 6
    assert counts.loc[("small", "email", "drawn"), "forbidden"] == 0
    frame = table(data, "muting_tokenizations").set_index(["tokenizer", "constraint", "source"])
    assert frame.loc[("small", "url", "drawn"), "tokenizations forbidden"] == pytest.approx(1 / 3)
    assert frame.loc[("small", "url", "drawn"), "positions forbidden"] == pytest.approx(1 / 11)


def test_an_example_shows_the_stop(data: RunData) -> None:
    (row,) = table(data, "muting_examples").itertuples(index=False)
    assert list(row) == ["small", "url", "https://a", r"https · :// · a · |\n", "://", 1, "http · s"]


def test_headlines_are_computed(data: RunData) -> None:
    assert build_headlines(data) == [
        "url: plain over muted compile time, strings: 4.0 (small), 4.0 (large); transformations: 4.0 (small), 4.0 "
        "(large); 001 reports 20.",
        "url, strings: muting divides the class strings by 10 and the walks over them by 8.0; the walks are 30.0% of "
        "the plain compile time (medians of 2 tokenizers).",
        "url: outlines_core's compile time over that of tokens_dfa: strings 20; strings, muted 80; transformations 40; "
        "transformations, muted 160.",
        "strings: muting makes compiling at least 1.1 times as fast in 2 of 4 cases with literals; plain over muted "
        "compile time 2.2 (0.50–4.0), highest for url on small.",
        "transformations: muting makes compiling at least 1.1 times as fast in 2 of 4 cases with literals; plain over "
        "muted compile time 2.2 (0.50–4.0), highest for url on small.",
        "strings: over these 4 cases muting divides the class strings by 10 and the walks by 8.0.",
        "object: plain over muted compile time at 64 words, strings: 3.0; 32 letters a word, strings: 3.0.",
        "given texts: muting forbids 100% – 100% – 100% of the proper tokenizations and 50.0% – 50.0% – 50.0% of the "
        "positions they reach (lowest, median and highest of 2 cases with literals); the shortest allowed sequence "
        "has 1.5 times as many tokens as the proper one.",
        "drawn texts: muting forbids 33.3% – 33.3% – 33.3% of the proper tokenizations and 9.09% – 9.09% – 9.09% of "
        "the positions they reach (lowest, median and highest of 2 cases with literals); the shortest allowed sequence "
        "has 1.5 times as many tokens as the proper one.",
        "Without muting none of the 12 proper tokenizations is forbidden.",
        "2 texts were not followed, since their tokenizer changes them.",
        "2 of 56 rows have no result: 2 changed.",
    ]


def test_the_page_can_be_written(data: RunData) -> None:
    text = Page.of(made_up_run()).markdown({})
    assert "Compile time, plain and muted" in text


def test_a_failed_variant_is_listed_and_leaves_the_comparison() -> None:
    run = made_up_run()
    frame = run.frames["results"]
    lost = (frame["constraint"] == "date") & frame["muted"].eq(True) & (frame["token_classes"] == "strings")
    frame.loc[lost, ["status", "message", "seconds"]] = ["unsupported", "an assertion", None]
    data = RunData.read(run)
    assert len(muting_pairs(rows_of(data, "cost"))) == 12 - 2
    failed = table(data, "muting_failed")
    assert failed.iloc[0].tolist() == [
        "cost",
        "date",
        "strings, muted",
        "unsupported",
        "an assertion",
        "small, large",
        2,
    ]
    cells = next(one for one in build_tables(data) if one.name == "muting_cost").rows[1]
    assert cells[5].text == "unsupported"
    assert build_headlines(data)[-1] == "4 of 56 rows have no result: 2 changed, 2 unsupported."


@pytest.mark.parametrize(
    ("parts", "reasons"),
    [
        (["text"], ["no constraint with literals was compiled plain and muted", *["fewer"] * 2, ""]),
        (["cost"], ["", *["fewer"] * 2, "no text of a constraint with literals was followed"]),
        (["growth"], ["no constraint with literals", "", "", "no text of a constraint"]),
    ],
)
def test_a_run_of_one_part_has_what_it_can(parts: list[str], reasons: list[str]) -> None:
    run = made_up_run()
    frame = run.frames["results"]
    run.frames["results"] = frame[frame["part"].isin(parts)].dropna(axis=1, how="all")
    data = RunData.read(run)
    assert len(build_tables(data)) > 1
    assert build_headlines(data)
    for plot, reason in zip(build_plots(data), reasons, strict=True):
        assert plot.reason.startswith(reason)
        assert (plot.figure is None) == bool(reason)


def test_the_shipped_experiment_follows_the_shipped_texts() -> None:
    loaded = load_config(EXPERIMENTS / "literal_muting.yaml")
    settings = check_settings(loaded.settings)
    assert settings.texts == yaml.safe_load((EXPERIMENTS / "inputs" / "regex_texts.yaml").read_text())
    labels = {entry.label: entry for entry in loaded.constraints}
    assert {*settings.baselines_for, *settings.growth.shapes} <= set(labels)
    assert labels["url ASCII"].regex == labels["url"].regex
    assert labels["url ASCII"].ascii_classes
