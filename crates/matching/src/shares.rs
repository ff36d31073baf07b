//! Shares of the matching rows, for what the two sides compute next: of which keys are common, and
//! of columns of both sides. Neither side learns anything of the intersection.
//!
//! ```text
//! each alone: reads its table: an item for each key, its values            PreparedTable::read
//! 1. handshake: result, protocol, order, keys
//! 2. distinct keys, number of columns, their bound and decimals      <-->
//! 3. shares of the bins, slice after slice    <-->    (module `circuit` of volery_psi)
//! 4. with --row-order: the bins with keys to the front, by the number of the
//!    first row of each    <-->    (module `switching` of volery_apps)
//! ```
//!
//! **What there is for each place**: a bit of each side, whose XOR is whether the key of the place
//! is common; for each column of the sender, then for each of the receiver, a number of each side,
//! whose sum modulo `2^64` is the value of the common key, negative numbers as in two's complement,
//! or zero where the key is not common. The receiver has the number of its row, the first of the
//! key, or none.
//!
//! **Places** are the bins of circuit-PSI, about 1.3 for each key of the receiver, or in the order
//! of rows one for each of its keys. The sender knows how many there are in either case, and never
//! which row is where.
//!
//! **Values.** Each side names the bound and the decimal places of its own columns; the other one
//! learns these numbers. The value of a key in several rows is as in [`totals`](crate::totals).
//!
//! **Security** is semi-honest. The order of rows costs one correlated OT for each switch of a
//! network of all bins and each column, `log2` of their number times, about 8 bytes each.

mod run;
mod settings;
mod side;

pub use run::{Layout, Outcome, Piece, ShareExecution, SideColumns};
pub use settings::{MAX_COLUMNS, ROW_ORDER, Settings, revealed};
pub use side::PreparedTable;
