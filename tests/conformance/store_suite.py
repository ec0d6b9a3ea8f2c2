"""What every engine of the Store has to do. A subclass names its engine; see test_sqlite.py."""

from conformance.suite.checkpoints import Checkpoints
from conformance.suite.commits import Commits
from conformance.suite.contents import Contents
from conformance.suite.custody import Custody
from conformance.suite.damage import Damage
from conformance.suite.derived_calls import DerivedCalls
from conformance.suite.findings import DerivedFindings
from conformance.suite.history import Ageing
from conformance.suite.listing import Listing
from conformance.suite.logs import Logs
from conformance.suite.maintenance import Maintenance
from conformance.suite.ordering import Ordering
from conformance.suite.processes import Processes
from conformance.suite.services import Services
from conformance.suite.summaries import Summaries


class StoreSuite(
    Commits,
    Ordering,
    Contents,
    Summaries,
    DerivedFindings,
    Listing,
    Services,
    Processes,
    Ageing,
    Maintenance,
    Damage,
    Custody,
    DerivedCalls,
    Logs,
    Checkpoints,
):
    """``engine``: a name in `conformance.engines.ENGINES`."""
