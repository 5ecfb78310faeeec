"""A special kind of experiment for tests: throws dice."""

from __future__ import annotations

import os
import random
import time
from typing import Any

from tokdfa.errors import OptionError
from tokdfa.lab.declare import Kind


def complete(settings: dict[str, Any]) -> dict[str, Any]:
    if settings.get("sides", 1) < 1:
        raise OptionError("a die has at least one side")
    return settings


def measure(settings: dict[str, Any], seed: int) -> list[dict[str, Any]]:
    trick = settings.get("trick")
    if trick == "die":
        os._exit(5)
    if trick == "raise":
        raise RuntimeError("the die is cast away")
    if trick == "sleep":
        time.sleep(60)
    dice = random.Random(seed)
    place = {"tokenizer": settings["tokenizer"], "constraint": settings["label"]}
    return [{**place, "throw": n, "points": dice.randint(1, settings["sides"]), "note": {"n": n}} for n in range(3)]


KIND = Kind(measure=measure, complete=complete)
