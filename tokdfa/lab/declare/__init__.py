"""What a kind of experiment declares: the columns of its rows, and the tables, plots and sentences made of them.

Declarations are plain data. The same ones give the terminal's table, the Markdown and the HTML page, and tell
`tokdfa compare` which columns are numbers to be compared. Read `columns`, `stats`, then `tables`, `charts`,
`sentences`; `kind` holds them together.
"""

from tokdfa.lab.declare.charts import Bars, Chart, Curves, Distribution, Points
from tokdfa.lab.declare.columns import Column
from tokdfa.lab.declare.kind import Kind
from tokdfa.lab.declare.results import Results
from tokdfa.lab.declare.sentences import Computed, Ranking, Say, Tally
from tokdfa.lab.declare.slower import SlowerFirst
from tokdfa.lab.declare.stats import Quotient, Stat, percentiles
from tokdfa.lab.declare.tables import Custom, Listing, Pivot, Summary
from tokdfa.lab.declare.variants import Options, Pairs

__all__ = [
    "Bars",
    "Chart",
    "Column",
    "Computed",
    "Curves",
    "Custom",
    "Distribution",
    "Kind",
    "Listing",
    "Options",
    "Pairs",
    "Pivot",
    "Points",
    "Quotient",
    "Ranking",
    "Results",
    "Say",
    "SlowerFirst",
    "Stat",
    "Summary",
    "Tally",
    "percentiles",
]
