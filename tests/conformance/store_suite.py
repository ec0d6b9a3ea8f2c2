"""What every engine of the Store has to do. A subclass names its engine; see test_sqlite.py."""

from conformance.suite.checkpoints import Checkpoints
from conformance.suite.contents import Contents
from conformance.suite.custody import Custody
from conformance.suite.damage import Damage
from conformance.suite.history import Ageing
from conformance.suite.keeping import Keeping
from conformance.suite.listing import Listing
from conformance.suite.meanings import Meant
from conformance.suite.ordering import Ordering
from conformance.suite.processes import Processes
from conformance.suite.services import Services
from conformance.suite.summaries import Summaries
from conformance.suite.upkeep import InOrder


class StoreSuite(
    Keeping,
    Ordering,
    Contents,
    Summaries,
    Listing,
    Services,
    Processes,
    Ageing,
    InOrder,
    Damage,
    Custody,
    Meant,
    Checkpoints,
):
    """``engine``: a name in `conformance.engines.ENGINES`."""
