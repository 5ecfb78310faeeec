import itertools
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from tests.lab.report.synthetic import HOSTILE
from tokdfa.lab.report import style
from tokdfa.lab.report.metrics import METRICS

# Machado, Oliveira and Fernandes (2009), severity 1, on linear RGB
DEFICIENCIES = {
    "none": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}


def linear_rgb(colour):
    channels = np.array([int(colour[place : place + 2], 16) for place in (1, 3, 5)]) / 255
    return np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)


def lab(linear):
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    xyz = to_xyz @ np.clip(linear, 0, 1) / [0.9505, 1.0, 1.089]
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def luminance(colour):
    return float(linear_rgb(colour) @ [0.2126, 0.7152, 0.0722])


def contrast(one, other):
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("deficiency", DEFICIENCIES)
@pytest.mark.parametrize("dark", [False, True])
def test_the_colours_of_the_shipped_backends_can_be_told_apart(deficiency, dark):
    matrix = np.array(DEFICIENCIES[deficiency])
    colours = [style.PALETTE[place][dark] for place in sorted(set(style.COLOURS.values()))]
    seen = [lab(matrix @ linear_rgb(colour)) for colour in colours]
    # a just noticeable difference is about 2.3
    assert min(np.linalg.norm(one - other) for one, other in itertools.combinations(seen, 2)) > 15


def test_everything_stands_out_from_the_paper():
    for light, dark in style.PALETTE:
        assert contrast(light, style.PAPER) >= 3
        assert contrast(dark, style.DARK[style.PAPER]) >= 3
    for ink in (style.INK, style.MUTED):
        assert contrast(ink, style.PAPER) >= 4.5
        assert contrast(style.DARK[ink], style.DARK[style.PAPER]) >= 4.5


def test_a_backend_keeps_its_colour_whatever_else_is_in_the_run():
    alone = style.looks({"llguidance": "llguidance"})
    crowd = style.looks({name: name for name in ("my_backend", "glrmask", "llguidance", "another")})
    assert alone["llguidance"].colour == crowd["llguidance"].colour == style.PALETTE[1][0]
    again = style.looks({"my_backend": "my_backend"})
    assert again["my_backend"].colour == crowd["my_backend"].colour


def test_unknown_names_of_one_run_do_not_share_a_colour():
    names = [f"backend_{number}" for number in range(6)]
    looks = style.looks({name: name for name in [*names, *style.COLOURS]} | {"tokdfa": "token_index"})
    assert len({looks[name].colour for name in [*names, "llguidance", "glrmask"]}) == 8
    many = style.looks({f"b{number}": f"b{number}" for number in range(40)})
    assert len(many) == 40


def test_labels_of_one_backend_share_its_colour_and_differ_otherwise():
    looks = style.looks({"token_index": "token_index", "lazy": "token_index", "lazy, no cache": "token_index"})
    assert len({look.colour for look in looks.values()}) == 1
    assert len({str(look.dash) for look in looks.values()}) == 3
    assert len({look.marker for look in looks.values()}) == 3
    fills = {(style.bars(look)["facecolor"], style.bars(look)["hatch"]) for look in looks.values()}
    assert len(fills) == 3


def example_figure(text="plain"):
    with style.drawing():
        figure, (axes,) = style.new_figure(1)
        look = style.looks({text: "glrmask"})
        axes.plot([1, 10, 1000], [1e-6, 2e-6, 3e-3], **style.curve(look[text]))
        axes.set_title(style.drawable(text, 200))
        style.set_axis(axes, "x", METRICS["vocab_size"])
        style.set_axis(axes, "y", METRICS["compile"])
        style.legend(figure, [text], look, "curves")
    return figure


def test_svg_is_for_a_page():
    svg = style.to_svg(example_figure(), "one")
    root = ET.fromstring(svg)
    assert root.tag == "svg"
    assert {"width", "height"}.isdisjoint(root.attrib)
    assert "viewBox" in root.attrib
    ids = [element.attrib["id"] for element in root.iter() if "id" in element.attrib]
    assert len(set(ids)) == len(ids)
    assert all(one.startswith("one-") for one in ids)
    references = re.findall(r'(?:url\(#|href="#)([^")]+)', svg)
    assert references
    assert set(references) <= set(ids)
    assert "var(--c3)" in svg
    assert "var(--ink)" in svg
    assert not re.findall(r"#[0-9a-f]{6}\b", svg), "a colour that does not follow the page"
    assert "<metadata" not in svg


def test_the_same_figure_gives_the_same_svg():
    assert style.to_svg(example_figure(), "one") == style.to_svg(example_figure(), "one")


def test_text_in_a_drawing_stays_text():
    root = ET.fromstring(style.to_svg(example_figure("url(#a) --> #0072b2 <b>&amp; $x$"), "one"))
    texts = {"".join(element.itertext()) for element in root.iter("text")}
    assert "url(#a) --> #0072b2 <b>&amp; $x$" in texts


def test_hostile_text_is_drawn_without_a_warning():
    figure = example_figure(HOSTILE + "\ud83d")
    assert style.to_png(figure).startswith(b"\x89PNG")
    ET.fromstring(style.to_svg(figure, "one"))


def test_drawable_keeps_its_length():
    assert style.drawable("x" * 30) == "x" * 23 + "…"
    assert style.drawable("a\tb\x00漢") == "a·b·□"
    assert style.drawable("short µ") == "short µ"


@pytest.mark.parametrize("high", [1.1e-6, 5e-6, 1e-3, 1e3])
def test_logarithmic_axes_have_labels_over_any_span(high):
    with style.drawing():
        figure, (axes,) = style.new_figure(1)
        axes.plot([1, 2], [1e-6, high])
        style.set_axis(axes, "y", METRICS["compile"])
        figure.canvas.draw()
        low, top = axes.get_ylim()
        ticks = [value for value in axes.get_yticks() if low <= value <= top]
    labels = [METRICS["compile"].tick(value) for value in ticks]
    assert 2 <= len(labels) <= 12
    assert len(set(labels)) == len(labels)


def test_css_variables_cover_what_svg_uses():
    for dark in (False, True):
        declared = set(re.findall(r"--\w+", style.css_variables(dark)))
        assert declared == {"--ink", "--muted", "--grid", "--paper", *(f"--c{n}" for n in range(len(style.PALETTE)))}
    assert style.css_variables(False) != style.css_variables(True)
