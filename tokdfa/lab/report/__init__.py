"""Reports: from a stored run to tables, plots, one HTML page, Markdown, and a summary on the terminal.

    write_report(open_run(folder))
    print_page(Page.of(open_run(folder)), console, brief=True)

A report reads the run's store and nothing else, so it can be written again at any time, on any machine, from a run that
is still unfinished. The way of the data: `data` reads a run; its kind has declared tables, charts and sentences
(`tokdfa.lab.declare`), which `contents` builds; `page` gathers them and writes Markdown, `html` fills the template
``page.html.j2``; `write` makes the files. `compare` says what has changed from one
run to another, by the columns that the kind has declared.

How numbers are compared. A *case* is a tokenizer, a constraint, a workload and a seed. Ratios are taken within a case,
between backends that were measured in turns, and reported as a median over cases with their range; percentiles of
mask times pool all samples. Nothing is averaged over backends, and an item that failed is listed with its reason, never
dropped in silence. A plot that would be empty is left out, and the report says why.
"""

from tokdfa.core.packages import require_extra

require_extra("lab", "a report")

from tokdfa.lab.report.write import print_page, write_report  # noqa: E402

__all__ = ["print_page", "write_report"]
