//! A row of results, and the table of all rows.

use std::io::Write as _;

use crate::Machine;

use super::setting::Setting;
use crate::command::parts::{self, Parts};
use crate::command::table::table;
use crate::page::text::prose;
use volery_cli::driver::Outcome;
use volery_cli::negotiation::{Agreed, Choice};

/// The measured protocol.
#[derive(Clone, Debug, serde::Serialize)]
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) n: u64,
    pub(super) link: String,
    pub(super) threads: usize,
    pub(super) security: String,
    security_bits: u32,
    statistical_bits: Option<u32>,
    pub(super) noise: String,
    /// The parameters and, if they depend on the link, the reason.
    protocol: String,
    choice: Option<serde_json::Value>,
    pub(super) parameters: String,
    sender: Party,
    receiver: Party,
    /// Of the slower party, including setup.
    pub(super) nanoseconds_each: f64,
    /// Of the slower party, without the setup.
    nanoseconds_each_extend: f64,
    /// Both directions.
    pub(super) bits_each: f64,
    /// The time of one correlation, including setup, in units of the machine's calibration in the
    /// same run.
    pub(super) ratios: Ratios,
    /// The time of the extension by kernel; `None` if the plan uses no LPN.
    pub(super) parts: Option<Parts>,
}

/// One party's part.
#[derive(Clone, Copy, Debug, serde::Serialize)]
pub(super) struct Party {
    seconds_setup: f64,
    seconds_extend: f64,
    seconds_total: f64,
    bytes_sent: u64,
    setup_bytes_sent: u64,
    messages_sent: u64,
}

/// The time of one correlation over the time of one machine operation.
#[derive(Clone, Copy, Debug, serde::Serialize)]
pub(super) struct Ratios {
    pub(super) aes_blocks: f64,
    pub(super) random_reads: f64,
    copied_bytes: f64,
}

impl Row {
    /// The row of a run over the setting, with its parts.
    pub(super) fn new(
        setting: &Setting,
        machine: &Machine,
        deal: &Agreed,
        parties: [Outcome; 2],
        parts: Option<Parts>,
    ) -> Self {
        let n = setting.n;
        let each = |value: f64| if n == 0 { 0.0 } else { value / n as f64 };
        let plan = &deal.plan;
        let [sender, receiver] = parties.map(|outcome| Party {
            seconds_setup: outcome.setup.as_secs_f64(),
            seconds_extend: outcome.extend.as_secs_f64(),
            seconds_total: outcome.total().as_secs_f64(),
            bytes_sent: outcome.traffic.bytes_sent,
            setup_bytes_sent: outcome.setup_traffic.bytes_sent,
            messages_sent: outcome.traffic.messages_sent,
        });
        let nanoseconds_each = each(sender.seconds_total.max(receiver.seconds_total) * 1e9);
        Self {
            name: setting.name,
            n: setting.n,
            link: setting.link.to_string(),
            threads: setting.threads,
            security: plan.security().to_string(),
            security_bits: plan.claimed_bits(),
            statistical_bits: plan.statistical_bits(),
            noise: plan.noise().to_string(),
            protocol: plan.name(),
            choice: deal.choice.as_ref().map(Choice::to_json),
            parameters: plan.describe(),
            sender,
            receiver,
            nanoseconds_each,
            nanoseconds_each_extend: each(sender.seconds_extend.max(receiver.seconds_extend) * 1e9),
            bits_each: each(8.0 * (sender.bytes_sent + receiver.bytes_sent) as f64),
            ratios: Ratios {
                aes_blocks: nanoseconds_each / machine.nanoseconds_aes_block,
                random_reads: nanoseconds_each / machine.nanoseconds_random_read,
                copied_bytes: nanoseconds_each / machine.nanoseconds_copied_byte,
            },
            parts,
        }
    }

    /// Of the setup, the extension and both, of the slower party.
    pub(super) fn seconds(&self) -> [f64; 3] {
        let of: [fn(&Party) -> f64; 3] = [
            |party| party.seconds_setup,
            |party| party.seconds_extend,
            |party| party.seconds_total,
        ];
        of.map(|of| of(&self.sender).max(of(&self.receiver)))
    }
}

/// Prints the table of the measurements, and of the parts of each.
///
/// # Errors
/// Those of standard output.
pub(super) fn print(machine: &Machine, rows: &[Row]) -> std::io::Result<()> {
    let headings = [
        "name",
        "link",
        "security",
        "noise",
        "parameters",
        ">setup ms",
        ">total s",
        ">ns each",
        ">bits each",
        ">AES blocks",
    ];
    let cells = rows.iter().map(|row| {
        let [setup, _, total] = row.seconds();
        [
            row.name.to_owned(),
            row.link.clone(),
            row.security.clone(),
            row.noise.clone(),
            row.parameters.clone(),
            format!("{:.1}", 1e3 * setup),
            format!("{total:.3}"),
            format!("{:.1}", row.nanoseconds_each),
            format!("{:.2}", row.bits_each),
            format!("{:.1}", row.ratios.aes_blocks),
        ]
    });
    let text = table(headings, cells);
    let mut out = std::io::stdout().lock();
    writeln!(out, "{text}")?;
    if let Some(row) = rows.first() {
        let line = format!(
            "{} each, {} thread(s) a party; times are the slower party's, the last column is ns each in that unit",
            row.n, row.threads
        );
        writeln!(out, "{}", prose("", &line))?;
    }
    let line = format!(
        "this machine in the same run, one thread, {}: {:.2} ns an AES block, {:.2} ns a random 16-byte read from 2 MiB, \
         {:.1} GB/s copied",
        machine.cpu,
        machine.nanoseconds_aes_block,
        machine.nanoseconds_random_read,
        1.0 / machine.nanoseconds_copied_byte,
    );
    writeln!(out, "{}", prose("", &line))?;
    rows.iter()
        .filter_map(|row| Some((row, row.parts.as_ref()?)))
        .try_for_each(|(row, parts)| {
            let which = format!("{}, {}", row.security, row.parameters);
            parts::print(&mut out, row.name, &which, parts)
        })
}
