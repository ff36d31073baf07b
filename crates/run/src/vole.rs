//! Vector OLEs: writes one party's part of n correlations `w = u*x + v` to files.

use volery_pcg::vole::{Receiver, Sender};

use crate::endpoint::Connection;
use crate::failure::Result;
use crate::party::{Correlation as _, Vole};
use crate::reporter::Reporter;
use crate::ring::{RingName, with_ring};
use crate::stream::{self, Destination, StreamArguments};

volery_options::options! {
    /// The options of vector OLEs alone.
    pub struct VoleOptions {
        /// Ring of the values
        default ring: RingName ["fp61", "Protocol", "RING", RingName::of, RingName::ALLOWED];
    }
}

/// Runs one side; returns the report.
pub fn run(
    (options, stream): (&VoleOptions, &StreamArguments),
    connection: Option<&mut Connection>,
    destination: Destination<'_>,
    reporter: &Reporter,
) -> Result<String> {
    with_ring!(options.ring, R => {
        let kind = Vole::<R>::KIND;
        stream::run::<Sender<R>, Receiver<R>>(kind, stream, None, connection, destination, reporter)
    })
}
