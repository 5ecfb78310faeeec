"""Experiments: from one YAML file to one folder of results.

Words. An *experiment* is a YAML file (`resolve` reads it into a `config`). It *expands* into *items*, one a tokenizer x
constraint x workload x backend (`expand`; `plan` says how long that may take); items that share all but the backend
form a *group*, which is measured side by side. A *run* works through the groups (`execute`) in a *place*: this machine
(`slots`) or a cluster (`cluster`). It keeps what it measures in a run folder (`store`), with all that is needed to
judge or repeat it (`provenance`). A finished item is never measured again: an interrupted run is resumed by starting it
again, and a backend that joins the experiment is measured alone, beside the reference.

    config = load_config("quickstart")
    summary = run(config)
    items = open_run(summary.folder).items()

The path of one group: a thread takes a worker and, if several groups are measured at a time, cores of its own
(`slots`). The worker process loads the tokenizer and the backends once and forks a process for each job (`worker`). The
fork measures (`jobs`, by means of `tokdfa.lab.measure`) and sends what it has found. If it hangs, swallows the
memory or dies, the thread knows from the board which contender was at work, and the group begins again without it
(`group_task`).
"""

from tokdfa.core.packages import require_extra

require_extra("lab", "an experiment")
