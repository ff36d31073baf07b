"""Private matching and correlated randomness between two parties who do not trust each other.

Each function is a subcommand of the program ``volery``, with its options as arguments::

    import volery

    m = volery.psi(role="receiver", connect="127.0.0.1:7000", data=orders, key=["mail:email"])
    m.rows.to_polars()

Lines about a run go to the logger ``volery``. Ctrl-C ends a call, and the peer sees that.
"""

from volery._api import (
    Session,
    Stream,
    cot,
    cot_stream,
    keygen,
    lint,
    lookup,
    matvec,
    ope,
    plan,
    psi,
    run_local,
    verify,
    vole,
    vole_stream,
)
from volery._calls import Progress
from volery._errors import (
    Cancelled,
    DataError,
    Error,
    NetworkError,
    PeerError,
    SettingsDifferError,
    UsageError,
)
from volery._results import (
    Cot,
    Findings,
    Match,
    MatchIndices,
    MatchRows,
    Matvec,
    Ope,
    Plan,
    Report,
    Seconds,
    Shares,
    Table,
    Total,
    Vole,
)
from volery._transport import Transport
from volery._volery import __version__

__all__ = [
    "Cancelled",
    "Cot",
    "DataError",
    "Error",
    "Findings",
    "Match",
    "MatchIndices",
    "MatchRows",
    "Matvec",
    "NetworkError",
    "Ope",
    "PeerError",
    "Plan",
    "Progress",
    "Report",
    "Seconds",
    "Session",
    "SettingsDifferError",
    "Shares",
    "Stream",
    "Table",
    "Total",
    "Transport",
    "UsageError",
    "Vole",
    "__version__",
    "cot",
    "cot_stream",
    "keygen",
    "lint",
    "lookup",
    "matvec",
    "ope",
    "plan",
    "psi",
    "run_local",
    "verify",
    "vole",
    "vole_stream",
]
