//! The settings of a side, on some of which both agree.

use volery_channel::{Hello, Role};
use volery_pcg::Security;
use volery_psi::circuit;
use volery_psi::matching::{Output, Task, Totals};

use crate::options::{Options, ResultKind};
use crate::settings::{KEYS, ProtocolChoice, RESULT, SettingsError, wrong};
use crate::totals::MAX_DECIMALS;
use crate::totals::settings::units_of_bound;

/// The most columns of a side.
pub const MAX_COLUMNS: usize = 64;

/// The name under which the handshake compares the order.
pub const ROW_ORDER: &str = "--row-order";

/// The settings of a run.
#[derive(Clone, Debug)]
pub struct Settings {
    /// This side's role.
    pub role: Role,
    /// This side's columns of values.
    pub columns: Vec<String>,
    /// The most that a value of this side may be, in units of the last decimal place; 0 without
    /// columns.
    pub bound: u64,
    /// Decimal places of this side's values.
    pub decimals: u32,
    /// Whether places are in the order of the receiver's rows.
    pub row_order: bool,
    /// The protocol.
    pub name: ProtocolChoice,
}

impl Settings {
    /// Checks the options.
    pub(crate) fn new(options: &Options) -> Result<Self, SettingsError> {
        let Options { role, protocol: name, security, decimals, row_order, .. } = *options;
        let columns = match &options.result {
            ResultKind::Shares(columns) => columns.clone(),
            _ => Vec::new(),
        };
        if security == Some(Security::Malicious) {
            let what =
                "shares come from circuit-PSI, of which no practical malicious form is known";
            let hint = "remove --security; --result rows has malicious security";
            return wrong("--security", what, hint);
        }
        if !matches!(
            name,
            ProtocolChoice::Auto | ProtocolChoice::Circuit | ProtocolChoice::CircuitLow
        ) {
            let what = format!("{name} gives no shares");
            return wrong("--protocol", what, "choose --protocol auto, circuit or circuit-low");
        }
        if columns.len() > MAX_COLUMNS {
            let what = format!("{} columns; a side has at most {MAX_COLUMNS}", columns.len());
            return wrong("--result", what, "name fewer columns");
        }
        if let Some(twice) = (1..columns.len()).find(|&at| columns[..at].contains(&columns[at])) {
            let what = format!("column {:?} is named twice", columns[twice]);
            return wrong("--result", what, "name each column once");
        }
        let mut settings = Self { role, columns, bound: 0, decimals: 0, row_order, name };
        if settings.columns.is_empty() {
            let option = match (&options.bound, decimals) {
                (Some(_), _) => "--bound",
                (None, Some(_)) => "--decimals",
                (None, None) => return Ok(settings),
            };
            let hint = "remove it, or name columns: --result shares=COL,COL";
            return wrong(option, "this side has no columns of values", hint);
        }
        settings.decimals = decimals.unwrap_or(0);
        if settings.decimals > MAX_DECIMALS {
            let what = format!("values have at most {MAX_DECIMALS} decimal places");
            return wrong("--decimals", what, "round the values before the run");
        }
        let Some(bound) = &options.bound else {
            let what = "required with --result shares=COL: the most that a value of this side may \
                        be, without its sign";
            let hint = "the other side learns it; what is computed with the shares needs it";
            return wrong("--bound", what, hint);
        };
        settings.bound = units_of_bound(bound, settings.decimals)?;
        Ok(settings)
    }

    /// The settings of circuit-PSI, for these numbers of columns of sender and receiver.
    pub(crate) fn circuit(&self, [payload, weights]: [usize; 2]) -> circuit::Settings {
        circuit::Settings {
            form: self.name.form(),
            payload,
            weights,
            ..circuit::Settings::default()
        }
    }

    /// The task of a protocol for sets of sender and receiver of these sizes with these numbers of
    /// columns.
    pub(crate) fn task(
        &self,
        [sender_items, receiver_items]: [u64; 2],
        columns: [usize; 2],
    ) -> Task {
        Task {
            sender_items,
            receiver_items,
            security: Security::SemiHonest,
            output: Output::Totals(Totals {
                settings: self.circuit(columns),
                comparisons: 0,
                in_bins: Role::Receiver,
                counts: None,
            }),
            with_workers: false,
        }
    }

    /// The first message of this side; the peer's must be the same. `keys` describes the key
    /// without the names of columns.
    pub fn hello(&self, keys: &str) -> Hello {
        let order = if self.row_order { "yes" } else { "no" };
        Hello {
            protocol: "psi",
            role: self.role.name(),
            fields: vec![
                (RESULT, "shares".to_owned()),
                ("--protocol", self.name.to_string()),
                ("security", Security::SemiHonest.to_string()),
                (ROW_ORDER, order.to_owned()),
                (KEYS, keys.to_owned()),
            ],
        }
    }
}

/// The facts that each side learns in a run with these settings, and the security: one sentence
/// each, without a full stop.
pub fn revealed(settings: &Settings) -> Vec<String> {
    let mut lines = vec![
        "each side learns how many distinct keys and how many columns of values the other has, \
         with their bound and decimal places, and the number and types of its key columns"
            .to_owned(),
        "each side gets shares of which keys are common and of the values of both sides there; \
         neither side learns which keys are common, nor how many"
            .to_owned(),
    ];
    lines.push(
        match settings.row_order {
            true => "the receiver knows the place of each of its keys: the order of their rows",
            false => "the receiver knows the place of each of its keys; the sender knows none",
        }
        .to_owned(),
    );
    lines.push(
        "whoever has the shares of both sides has the common keys' values and places: keep the two \
         apart"
            .to_owned(),
    );
    lines.push(
        "secure against a semi-honest peer: a peer that does not follow the protocol can learn more, or \
         falsify the shares"
            .to_owned(),
    );
    lines
}
