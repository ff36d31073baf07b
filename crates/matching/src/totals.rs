//! One number about the keys that both sides have: how many there are, the sum or the mean of a
//! column over them, or the sum of products of a column of either side; of all, or group by group.
//!
//! ```text
//! each alone: reads its table: an item for each key, its value and group       PreparedTable::read
//!             draws its noise
//! 1. handshake: result, side with the column, bounds, minimum, noise, groups
//! 2. distinct keys of each side; whether any total could leave 64 bits    <-->
//! 3. count alone: circuit or dh, by sizes and link        (module `choice` of volery_psi)
//! 4. shares of the count and of the sum of each group     <-->     (module `circuit`)
//!    each alone: adds its noise to its shares
//! 5. for each group: whether the count is at least the minimum            <-->
//! 6. counts and sums of the groups where it is, opened to whom --to says  <-->
//! ```
//!
//! By `dh` the count comes from module `count` of volery_psi in place of steps 4 to 6.
//!
//! **The set** of a side are its distinct keys. The value of a key that stands in several rows is
//! the sum of theirs ([`Duplicates::Keep`](volery_tables::Duplicates)), or that of the first row.
//! The bound holds for the value of the key. A row without a value is an error: to leave it out
//! would change a mean without a word.
//!
//! **Roles.** The items of the side that has the groups, or else the values, are in the bins of
//! circuit-PSI, whichever role it has here: its values cost a third there. The result can go to
//! either side.
//!
//! **What is learnt.** Each side learns the number of distinct keys of the other. Both learn of
//! each group whether its count is below the minimum, and nothing else of one that is. Who gets the
//! totals learns the counts, the sums, or both of a mean. [`revealed`] says it for a run.
//!
//! **Noise.** Each side draws samples of its own ([`volery_psi::noise`]) and adds them to its
//! shares, before the comparison and the opening, where the *other* side learns something of the
//! total: a side knows its own noise, which protects nothing against it. Both learn whether a count
//! is below the minimum, so that with a minimum both add noise to it, whoever gets the totals. The
//! comparison is one of the noisy count. Whatever is computed from that count, its comparison and
//! its opening, costs nothing beyond it (post-processing). A count and a sum of one run have half
//! of `epsilon` and `delta` each (composition); a key is in one group, so that each group has the
//! whole (parallel composition). One key more or less among the common keys changes the count by 1,
//! a sum by at most the bound, a sum of products by at most its square. The number of different
//! keys of a side is not noisy: each learns that of the other. To exchange a key for another one
//! takes one away and adds one, and has twice the `epsilon`.
//!
//! **Security** is semi-honest, and noise is no remedy for repetition: each run has its own.

pub(crate) mod compute;
pub(crate) mod decimal;
mod noise;
mod output;
mod plan;
mod revealed;
mod run;
pub(crate) mod settings;
pub(crate) mod side;

pub use crate::keyed::LONGEST_KEYS;
pub use crate::parameters::Parameters;
pub use compute::{Shares, Total, open, shares};
pub use decimal::{MAX_DECIMALS, decimal};
pub use noise::Noise;
pub use plan::{Choice, Protocol};
pub use revealed::revealed;
pub use run::Outcome;
pub use settings::{
    COLUMN, GROUP_BY, GROUPS, Kind, MAX_GROUPS, MAX_MINIMUM, MINIMUM, Privacy, Settings,
    SettingsRecord, TO,
};
pub use side::{
    PreparedTable, RowReader, Values, WrongValues, check_values, payload, value_columns,
};
pub use volery_psi::circuit::Recipient;
