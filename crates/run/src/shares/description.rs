//! `shares.json`: what the arrays of a folder of shares are.

use serde::{Deserialize, Serialize};
use volery_channel::Role;
use volery_matching::shares::{Layout, Settings};
use volery_matching::totals::MAX_DECIMALS;

use crate::randomness::hex;

/// The version of the format.
const FORMAT: &str = "volery shares 1";

/// The contents of the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Description {
    pub(crate) format: String,
    /// The session, the same on both sides.
    pub(crate) session: String,
    /// Whose shares these are: `sender` or `receiver`.
    pub(crate) role: String,
    /// The order of places: `bins` or `rows`.
    pub(crate) order: String,
    /// Number of places: of the elements of each array.
    pub(crate) places: u64,
    pub(crate) sender_keys: u64,
    pub(crate) receiver_keys: u64,
    /// The columns of the sender, then those of the receiver.
    pub(crate) columns: Vec<Column>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Column {
    /// The name of the array, whose file ends in `.npy`.
    pub(crate) array: String,
    /// The name in this side's table; none of the peer's.
    pub(crate) name: Option<String>,
    /// Decimal places: the values are multiples of `10^-decimals`.
    pub(crate) decimals: u32,
    /// The most that a value is, without its sign, in units of the last decimal place.
    pub(crate) bound: u64,
}

impl Description {
    /// Of this side's shares.
    pub(crate) fn new(settings: &Settings, layout: &Layout) -> Self {
        let mut columns = Vec::new();
        for (role, side) in [Role::Sender, Role::Receiver].into_iter().zip(layout.columns) {
            for number in 0..side.count {
                let own = settings.columns.get(number).filter(|_| role == settings.role);
                columns.push(Column {
                    array: format!("{}_{}", role.name(), number + 1),
                    name: own.cloned(),
                    decimals: side.decimals,
                    bound: side.bound,
                });
            }
        }
        let order = if layout.row_order { "rows" } else { "bins" };
        Self {
            format: FORMAT.to_owned(),
            session: hex(layout.session.as_bytes()),
            role: settings.role.name().to_owned(),
            order: order.to_owned(),
            places: layout.places,
            sender_keys: layout.sizes[0],
            receiver_keys: layout.sizes[1],
            columns,
        }
    }

    pub(crate) fn to_json(&self) -> String {
        let mut json = serde_json::to_string_pretty(self).expect("a description serialises");
        json.push('\n');
        json
    }

    /// Parses the file, and checks all that does not need the arrays.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, String> {
        let parsed: Self = serde_json::from_slice(bytes)
            .map_err(|error| format!("not a description of shares: {error}"))?;
        if parsed.format != FORMAT {
            let other = parsed.format;
            return Err(format!("its format is {other:?}, not {FORMAT:?}"));
        }
        if parsed.columns.iter().any(|column| column.decimals > MAX_DECIMALS) {
            return Err(format!("a column has more than {MAX_DECIMALS} decimal places"));
        }
        let arrays = parsed.columns.iter().map(|column| column.array.as_str());
        let of_sender = arrays.clone().take_while(|name| name.starts_with("sender"));
        let of_sender = of_sender.count();
        let expected = |place: usize| match place.checked_sub(of_sender) {
            None => format!("sender_{}", place + 1),
            Some(place) => format!("receiver_{}", place + 1),
        };
        if arrays.enumerate().any(|(place, name)| name != expected(place)) {
            return Err("its columns are not sender_1, .., receiver_1, ..".to_owned());
        }
        Ok(parsed)
    }
}
