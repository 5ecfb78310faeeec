"""Experiments: from one YAML file to one folder of results.

Words. An *experiment* is a YAML file (`resolve` reads it into a `config`). It *expands* into *items*, one a tokenizer x
constraint x workload x backend (`expand`; `plan` says how long that may take); items that share all but the backend
form a *group*, which is measured in turns. A *run* works through the groups (`execute`) in a *place*: this machine
(`slots`) or a cluster (`cluster`). It keeps what it measures in a run folder (`store`), with all that is needed to
judge or repeat it (`provenance`). A finished item is never measured again: an interrupted run is resumed by starting it
again, and a backend that joins the experiment is measured alone, beside the reference.

    config = load_config("quickstart")
    summary = run(config)
    items = open_run(summary.folder).items()

The path of one group: a thread takes workers and, if several groups are measured at a time, cores of its own
(`slots`), and gives them one job after the other (`group_task`). A worker process loads the tokenizer once and forks
(`worker`). A contender has a fork of its own, which makes its backend, waits for its turns (`turns`), and lives as long
as the run is at the tokenizer, or as one item (``way: fresh``); memory is measured in a fork of its own for each item
(`jobs`). Who hangs, swallows the memory or dies is known from the board, and has failed at this item; the others go on.
"""

from tokdfa.core.packages import require_extra

require_extra("lab", "an experiment")
