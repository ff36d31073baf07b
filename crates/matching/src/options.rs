//! The options of a matching: the only definition of each.
//!
//! The command line, Python, browsers and clusters fill [`Options`] by name; their help, signatures
//! and reference pages are made from [`Options::FIELDS`](volery_options::OptionSet::FIELDS) or
//! compared with it.

use std::ffi::OsStr;
use std::path::PathBuf;

use volery_channel::link::ParseLinkError;
use volery_channel::{Link, Role};
use volery_options::{AllowedValue, parse};
use volery_pcg::Security;
use volery_tables::{
    Duplicates, EmptyKeys, Encoding, Format, Inputs, Malformed, Quote, Reading, Rule,
};

use crate::agreement::MAX_BUCKETS;
use crate::output::Columns;
use crate::settings::{Operation, ProtocolChoice, Settings, SettingsError};
use crate::side::{MAX_RULES, StorageOptions};
use crate::totals::{MAX_DECIMALS, MAX_GROUPS, Recipient};
use crate::{shares, totals};

volery_options::options! {
    /// The options of one side of a matching. [`Operation::has`] tells which belong to a lookup.
    pub struct Options {
        /// Role of this party
        required role: Role [Role::Receiver, "Peer", "ROLE", parse::text, ROLES];

        /// Input of this party: a file (.csv, .tsv, .txt, each also with .gz or .zst; .parquet;
        /// .arrow), a folder of Parquet files, a Delta table, or a pattern with '*'; '-' is
        /// standard input. Repeat --input to read several as one table
        some input: PathBuf ["Input", "FILE", parse::path];

        /// Format of standard input, or of files whose names do not indicate it
        once format: Format ["Input", "FORMAT", format];

        /// Field separator of a text file: one character, or 'tab' [default: set by the file name]
        once delimiter: u8 ["Input", "CHARACTER", delimiter];

        /// Encoding of a text file, such as utf-16le or windows-1252; keys are then compared as
        /// UTF-8 [default: keys are bytes]
        once encoding: Encoding ["Input", "LABEL", parse::text];

        /// Quoting in a text file: 'double', where a field that begins with a double quote ends
        /// with one; or 'none', where quotes are ordinary characters
        default quote: Quote ["double", "Input", "RULE", quote];

        /// Version of a Delta table [default: the newest]
        once as_of: u64 ["Input", "VERSION", parse::count];

        /// Read the Parquet files in the folder of a Delta, Iceberg or Hudi table one by one, with
        /// the rows that were deleted from the table
        switch plain_files ["Input"];

        /// The key column, or several columns that together form one key. NAME:SPEC reads a column
        /// as a type (text, binary, integer, decimal, boolean, date, timestamp, uuid), or cleans
        /// it with normalisers joined with '+', such as email or trim+lower+nfc or e164=DE;
        /// use 'volery lint' to try them out. Enclose a name that contains a comma or colon in
        /// double quotes
        some key: String ["Keys", "COL[:SPEC],..", parse::string];

        /// Another key, tried on rows that no earlier key has matched; may be repeated. Both sides
        /// must give the same number of keys, in the same order
        many or: String ["Keys", "COL[:SPEC],..", parse::string];

        /// Treatment of a row with an empty or null key column: 'error', or 'skip' to leave the row
        /// out; with --or, either of them only excludes the row from matching on that key
        default empty_keys: EmptyKeys ["error", "Keys", "RULE", empty_keys];

        /// Treatment of a row whose key column does not fit its type or normaliser: 'error', or
        /// 'skip'
        default malformed: Malformed ["error", "Keys", "RULE", malformed];

        /// Treatment of rows with the same key: 'keep' keeps them all, and they match together or
        /// not at all; 'error' ends the run; 'dedup' keeps only the first
        default duplicates: Duplicates ["keep", "Keys", "RULE", duplicates];

        /// Leave out the rows of each key that more than N rows have: placeholders such as
        /// unknown@example.org, which would match all of the peer's. Takes 24 bytes of memory for
        /// each row and key. 'volery lint' lists the most frequent keys
        once drop_repeated: u64 ["Keys", "N", repeated];

        /// Sender: columns that the receiver gets, with their types; enclose a name that contains a
        /// comma in double quotes
        once value: Vec<String> ["Output", "COL,..", names];

        /// Receiver: names of these columns in the output, in the same order [default: the
        /// sender's; a name that is taken gets '_sender' appended]
        once value_name: Vec<String> ["Output", "NAME,..", names];

        /// Receiver: also write the rows without a match, with empty columns of the sender
        switch left ["Output"];

        /// File for this party's matching rows: .csv, .tsv or .txt (each also with .gz or .zst),
        /// .parquet or .arrow; it is created when the run is complete. '-' is standard output, as
        /// CSV. With --result shares, a folder of .npy files or a .parquet file
        once out: PathBuf ["Output", "FILE", parse::path];

        /// Replace an existing output file
        switch force ["Output"];

        /// Append a column with the number of the key on which a row matched: 1 for --key, 2 for
        /// the first --or
        once rule_column: String ["Output", "NAME", parse::string];

        /// Write an HTML report to FILE
        once html: PathBuf ["Output", "FILE", parse::path];

        /// Result of the run. The matching rows: 'rows'. One number computed from the keys that the
        /// sides have in common: 'count'; 'sum' or 'mean' of a column, where the side with the
        /// column sets sum=COL and the other side sets sum; or
        /// 'sum-product=SENDER_COL,RECEIVER_COL'. Secret shares for further computation: 'shares',
        /// or shares=COL,COL to include columns from this side
        default result: ResultKind ["rows", "Output", "WHAT", result];

        /// Side that gets the number; the same on both sides [default: receiver]
        once to: Recipient ["Counts and sums", "SIDE", to, TO];

        /// Largest absolute value that the column may have for any one key; required for sums and
        /// means. The same on both sides
        once bound: String ["Counts and sums", "B", parse::string];

        /// Decimal places of values; a value with more is an error [default: 0]
        once decimals: u32 ["Counts and sums", "D", decimals];

        /// Reveal the result only if the two sides have at least K keys in common; below K, the
        /// number stays hidden. The same on both sides [default: 50; 0 for a count without groups]
        once minimum: u64 ["Counts and sums", "K", parse::count];

        /// Add noise, so that the result is differentially private with this epsilon, such as 0.5;
        /// the same on both sides
        once epsilon: String ["Counts and sums", "E", parse::string];

        /// Gaussian noise with this delta, such as 1e-9, in place of Laplace noise
        once delta: String ["Counts and sums", "D", parse::string];

        /// This side's column that holds one of the values listed in --groups: the result is one
        /// number for each group
        once group_by: String ["Counts and sums", "COL", parse::string];

        /// Groups, in the order in which the result lists them; the same on both sides. Rows with
        /// any other value belong to no group. Enclose a name that contains a comma in double
        /// quotes
        once groups: Vec<String> ["Counts and sums", "A,B,..", groups];

        /// Give one share per key, in the order of the receiver's rows, instead of one share per
        /// slot of a hash table, with 1.3 slots per key. Both sides must set this
        switch row_order ["Shares"];

        /// Matching protocol; both sides must name the same one
        default protocol: ProtocolChoice ["auto", "Protocol", "NAME", protocol, ProtocolChoice::ALLOWED];

        /// Kind of peer to be secure against: malicious, a peer that may do anything; or
        /// semi-honest, a peer that follows the protocol and inspects what it receives [default:
        /// malicious; semi-honest with --both, vole-low, kkrt and kkrt-paper, which are never
        /// secure against a malicious peer]
        once security: Security ["Protocol", "SECURITY", parse::text];

        /// Link that --protocol auto assumes when it chooses a protocol: RATE,RTT such as
        /// 100Mbit,20ms [default: the link that the parties measure]
        once link: Link ["Protocol", "RATE,RTT", link];

        /// Give the result to the sender too; the run is then secure against a semi-honest peer
        /// only. Both sides must set this
        switch both ["Protocol"];

        /// File for the filter of a 'volery serve' server, a compact form of its keys: the first
        /// run downloads it, later runs read it [default: each run downloads it]
        once filter: PathBuf ["Protocol", "FILE", parse::path];

        /// Download the server's filter again and replace the --filter file
        switch refresh ["Protocol"];

        /// Memory that the run may use, such as 2GiB; the keys are then kept on disk and matched
        /// bucket by bucket
        once memory: u64 ["Large tables", "SIZE", parse::size];

        /// Folder for keys on disk and for the progress of the run: repeating the command continues
        /// an interrupted run, and does nothing if the run is complete. The folder holds hashes of
        /// the keys until the run is complete
        once resume: PathBuf ["Large tables", "DIR", parse::path];

        /// Minimum number of buckets, matched one at a time
        once buckets: u32 ["Large tables", "N", |value| parse::whole(value, 1, MAX_BUCKETS)];

        /// Print what the run will cost and reveal, then exit without connecting
        switch dry_run ["Running"];

        /// Number of rows that the peer has, for --dry-run, and for the free space that the file of
        /// --out needs [default: as many as this side has]
        once peer_rows: u64 ["Running", "N", parse::count];
    }
}

/// The kind of result that the sides of a match get.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ResultKind {
    /// The matching rows.
    #[default]
    Rows,
    /// The number of common distinct keys.
    Count,
    /// The sum of a column over the common keys: the column, at the side that has it.
    Sum(Option<String>),
    /// The same sum, and the number of common keys.
    Mean(Option<String>),
    /// The sum, over the common keys, of the products of a column of the sender and one of the
    /// receiver. Each side has one of them; the names are not compared.
    SumProduct([String; 2]),
    /// Shares of the matching rows and of these columns of this side.
    Shares(Vec<String>),
}

impl ResultKind {
    /// The name on the command line, without columns.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Rows => "rows",
            Self::Count => "count",
            Self::Sum(_) => "sum",
            Self::Mean(_) => "mean",
            Self::SumProduct(_) => "sum-product",
            Self::Shares(_) => "shares",
        }
    }

    /// From the name, and the columns behind it.
    pub fn new(name: &str, columns: Vec<String>) -> Result<Self, String> {
        let count = columns.len();
        let mut columns = columns.into_iter();
        match (name, count) {
            ("rows", 0) => Ok(Self::Rows),
            ("count", 0) => Ok(Self::Count),
            ("sum", 0 | 1) => Ok(Self::Sum(columns.next())),
            ("mean", 0 | 1) => Ok(Self::Mean(columns.next())),
            ("sum-product", 2) => match (columns.next(), columns.next()) {
                (Some(sender), Some(receiver)) => Ok(Self::SumProduct([sender, receiver])),
                _ => unreachable!("there are two"),
            },
            ("shares", _) => Ok(Self::Shares(columns.collect())),
            ("rows" | "count", _) => Err(format!("{name} has no column")),
            ("sum" | "mean", _) => {
                Err(format!("{name} has one column; a name with a comma stands in double quotes"))
            }
            ("sum-product", _) => {
                Err("sum-product has two columns, that of the sender and that of the receiver: \
                 sum-product=PRICE,QUANTITY"
                    .to_owned())
            }
            _ => {
                Err("choose rows, count, sum=COL, mean=COL, sum-product=COL,COL or shares"
                    .to_owned())
            }
        }
    }
}

const ROLES: &[AllowedValue] = &[
    (
        "sender",
        "Holds the set that the peer's keys are compared with; learns only the number of the peer's keys, unless both sides set --both",
    ),
    ("receiver", "Gets the result"),
];

const TO: &[AllowedValue] = &[("receiver", ""), ("sender", ""), ("both", "")];

/// Options of results other than rows, and of queries to a server, which a lookup does not have.
const NOT_OF_LOOKUP: [&str; 12] = [
    "result",
    "to",
    "bound",
    "decimals",
    "minimum",
    "epsilon",
    "delta",
    "group_by",
    "groups",
    "row_order",
    "filter",
    "refresh",
];

/// Options of a lookup only.
const OF_LOOKUP: [&str; 3] = ["value", "value_name", "left"];

impl Operation {
    /// Whether the option `name` of [`Options`] belongs to this operation.
    pub fn has(self, name: &str) -> bool {
        match self {
            Self::Psi => !OF_LOOKUP.contains(&name),
            Self::Lookup => !NOT_OF_LOOKUP.contains(&name),
        }
    }
}

/// A keyword that names no option, or a value that is none of its option.
fn wrong(option: &'static str, what: impl Into<String>, hint: &'static str) -> SettingsError {
    SettingsError { option, what: what.into(), hint: hint.into() }
}

impl Options {
    /// The number of rules.
    pub const fn number_of_rules(&self) -> usize {
        1 + self.or.len()
    }

    /// The rules by which rows match: `key`, whose columns form one, and each `or`.
    ///
    /// # Errors
    /// The text that is no rule, or too many rules.
    pub fn rules(&self) -> Result<Vec<Rule>, SettingsError> {
        let first = self.key.join(",");
        let texts = std::iter::once(("--key", &first)).chain(self.or.iter().map(|or| ("--or", or)));
        let mut rules = Vec::new();
        for (option, text) in texts {
            rules
                .push(Rule::parse(text).map_err(|problem| wrong(option, problem.to_string(), ""))?);
        }
        match rules.len() {
            ..=MAX_RULES => Ok(rules),
            more => {
                let what = format!("{more} keys given; a run has at most {MAX_RULES}");
                Err(wrong("--or", what, ""))
            }
        }
    }

    /// How to read keys, and at the sender of a lookup the payload.
    pub fn reading(&self) -> Result<Reading, SettingsError> {
        Ok(Reading {
            rules: self.rules()?,
            empty_keys: self.empty_keys,
            malformed: self.malformed,
            duplicates: self.duplicates,
            drop_repeated: self.drop_repeated,
            values: self.value.clone().unwrap_or_default(),
            ..Reading::default()
        })
    }

    /// Where the table is.
    pub fn inputs(&self) -> Inputs {
        Inputs {
            paths: self.input.clone(),
            delimiter: self.delimiter,
            quote: self.quote,
            encoding: self.encoding,
            format: self.format,
            as_of: self.as_of,
            plain_files: self.plain_files,
        }
    }

    /// The columns that a receiver's output has beside its own.
    pub fn columns(&self) -> Columns {
        Columns {
            left: self.left,
            names: self.value_name.clone().unwrap_or_default(),
            rule: self.rule_column.clone(),
        }
    }

    /// Where this side keeps its keys: without `resume`, beside the output.
    pub fn local(&self) -> StorageOptions {
        let beside = self.out.as_deref().filter(|out| *out != "-").map(|out| {
            let parent = out.parent().filter(|parent| !parent.as_os_str().is_empty());
            parent.unwrap_or_else(|| ".".as_ref()).to_owned()
        });
        StorageOptions {
            memory: self.memory,
            folder: self.resume.clone().or(beside),
            resume: self.resume.is_some(),
            buckets: self.buckets.unwrap_or(1),
        }
    }

    /// The settings of a run for rows.
    pub fn settings(&self, operation: Operation) -> Result<Settings, SettingsError> {
        let (name, security) = (self.protocol, self.security);
        Settings::new(operation, self.role, name, security, self.both, self.link)
    }

    /// The settings of a run for a total.
    ///
    /// # Panics
    /// If the result is rows or shares.
    pub fn totals(&self) -> Result<totals::Settings, SettingsError> {
        totals::Settings::new(self)
    }

    /// The settings of a run for shares; without columns if the result is another one.
    pub fn shares(&self) -> Result<shares::Settings, SettingsError> {
        shares::Settings::new(self)
    }

    /// Refuses options that do not go together, and options of another role or result.
    pub fn check(&self, operation: Operation) -> Result<(), SettingsError> {
        if self.peer_rows.is_some() && !self.dry_run && self.out.is_none() {
            return Err(wrong("--peer-rows", "only with --dry-run or --out", "remove it"));
        }
        if self.refresh && self.filter.is_none() {
            let what = "only with --filter FILE, the file to replace";
            return Err(wrong("--refresh", what, "add --filter, or remove --refresh"));
        }
        match operation {
            Operation::Psi => self.check_result(),
            Operation::Lookup => self.check_lookup(),
        }
    }

    fn check_lookup(&self) -> Result<(), SettingsError> {
        let of_receiver = |option: &'static str| {
            let what = "only the receiver's output has columns of the sender";
            let what = format!("{what}; remove {option} at the sender");
            Err(wrong(option, what, ""))
        };
        match self.role {
            Role::Sender if self.value.is_none() => {
                let what = "required at the sender: the columns that the receiver gets";
                Err(wrong("--value", what, ""))
            }
            Role::Sender if self.value_name.is_some() => of_receiver("--value-name"),
            Role::Sender if self.left => of_receiver("--left"),
            Role::Receiver if self.value.is_some() => Err(wrong(
                "--value",
                "only the sender names columns; remove --value on the receiver's side",
                "--value-name NAME,.. sets their names in the output",
            )),
            _ => Ok(()),
        }
    }

    fn check_result(&self) -> Result<(), SettingsError> {
        let is_shares = matches!(self.result, ResultKind::Shares(_));
        if self.row_order && !is_shares {
            let hint = "remove it, or name the columns: --result shares=COL";
            return Err(wrong("--row-order", "only with --result shares", hint));
        }
        if self.result != ResultKind::Rows && self.filter.is_some() {
            return Err(wrong("--filter", "only --protocol served has one", ""));
        }
        let of_totals = [
            ("--to", self.to.is_some()),
            ("--minimum", self.minimum.is_some()),
            ("--epsilon", self.epsilon.is_some()),
            ("--delta", self.delta.is_some()),
            ("--group-by", self.group_by.is_some()),
            ("--groups", self.groups.is_some()),
        ];
        let of_numbers =
            [("--bound", self.bound.is_some()), ("--decimals", self.decimals.is_some())];
        let of_rows = [("--both", self.both), ("--link", self.link.is_some() && !self.dry_run)];
        let given = |all: &[(&'static str, bool)]| all.iter().find(|(_, given)| *given).copied();
        if self.result == ResultKind::Rows {
            if let Some((option, _)) = given(&of_totals).or_else(|| given(&of_numbers)) {
                return Err(wrong(
                    option,
                    "only with --result count, sum, mean or sum-product",
                    "rows have no such option; --both gives them to both sides",
                ));
            }
            return Ok(());
        }
        if is_shares && let Some((option, _)) = given(&of_totals).or_else(|| given(&of_rows)) {
            let what = "not with --result shares, of which each side has its own";
            return Err(wrong(option, what, "remove it"));
        }
        if !self.or.is_empty() {
            let what = format!("a {} is of the keys of one --key", self.kind());
            return Err(wrong("--or", what, "remove --or, or use --result rows"));
        }
        let on_disk = [
            ("--memory", self.memory.is_some()),
            ("--buckets", self.buckets.is_some_and(|buckets| buckets > 1)),
        ];
        if let Some((option, _)) = given(&on_disk) {
            let what = format!("a {} is computed in memory, at once", self.kind());
            let hint = "remove it; --dry-run says how much memory the run takes";
            return Err(wrong(option, what, hint));
        }
        if self.rule_column.is_some() {
            let what = format!("a {} has no rows", self.kind());
            return Err(wrong("--rule-column", what, "remove it, or use --result rows"));
        }
        Ok(())
    }

    /// The result in a word.
    fn kind(&self) -> &'static str {
        match self.result {
            ResultKind::Shares(_) => "share",
            ref other => other.name(),
        }
    }
}

/// The rule for rows of one key, by its name.
pub fn duplicates(value: &OsStr) -> Result<Duplicates, String> {
    let all =
        [("keep", Duplicates::Keep), ("error", Duplicates::Error), ("dedup", Duplicates::Dedup)];
    parse::choice(value, &all)
}

/// The rule for rows without a key, by its name.
pub fn empty_keys(value: &OsStr) -> Result<EmptyKeys, String> {
    let all = [("error", EmptyKeys::Error), ("skip", EmptyKeys::Skip)];
    parse::choice(value, &all)
}

/// The rule for rows whose key does not fit its type, by its name.
pub fn malformed(value: &OsStr) -> Result<Malformed, String> {
    let all = [("error", Malformed::Error), ("skip", Malformed::Skip)];
    parse::choice(value, &all)
}

/// The quoting of a text file, by its name.
pub fn quote(value: &OsStr) -> Result<Quote, String> {
    parse::choice(value, &[("double", Quote::Double), ("none", Quote::None)])
}

/// A format of tables, by its name.
pub fn format(value: &OsStr) -> Result<Format, String> {
    let all = [
        ("csv", Format::Csv),
        ("tsv", Format::Tsv),
        ("parquet", Format::Parquet),
        ("arrow", Format::Arrow),
    ];
    parse::choice(value, &all)
}

/// A field separator: one character of ASCII, or `tab`.
pub fn delimiter(value: &OsStr) -> Result<u8, String> {
    match value.as_encoded_bytes() {
        b"tab" | b"\\t" => Ok(b'\t'),
        [byte] if byte.is_ascii() => Ok(*byte),
        _ => Err("a delimiter is one ASCII character, or 'tab'".to_owned()),
    }
}

/// A link: `RATE,RTT`, or `loopback` or `tls`, the loopback interface with or without TLS.
pub fn link(value: &OsStr) -> Result<Link, String> {
    match parse::utf8(value)? {
        "loopback" | "tls" => Ok(Link::LOOPBACK),
        text => text.parse().map_err(|error: ParseLinkError| error.to_string()),
    }
}

/// A protocol, by its name.
pub fn protocol(value: &OsStr) -> Result<ProtocolChoice, String> {
    let all: Vec<_> = ProtocolChoice::all().map(|name| (name.name(), name)).collect();
    parse::choice(value, &all)
}

fn to(value: &OsStr) -> Result<Recipient, String> {
    let all = [Recipient::Receiver, Recipient::Sender, Recipient::Both].map(|to| (to.name(), to));
    parse::choice(value, &all)
}

fn repeated(value: &OsStr) -> Result<u64, String> {
    parse::count(value).and_then(|most| match most {
        0 => Err("at least 1".to_owned()),
        most => Ok(most),
    })
}

fn decimals(value: &OsStr) -> Result<u32, String> {
    parse::whole(value, 0, MAX_DECIMALS)
}

/// A result with its columns.
fn result(value: &OsStr) -> Result<ResultKind, String> {
    let text = parse::utf8(value)?;
    let (name, columns) = match text.split_once('=') {
        None => (text, Vec::new()),
        Some((name, columns)) => (name, names(columns.as_ref())?),
    };
    ResultKind::new(name, columns)
}

fn groups(value: &OsStr) -> Result<Vec<String>, String> {
    let groups = names(value)?;
    match groups.len() {
        ..=MAX_GROUPS => Ok(groups),
        more => Err(format!("{more} groups; a run has at most {MAX_GROUPS}")),
    }
}

/// Names with commas in between; one with a comma stands in double quotes, a quote in it twice.
///
/// # Errors
/// If a name is empty, or a quote does not close.
pub fn names(value: &OsStr) -> Result<Vec<String>, String> {
    let mut names = Vec::new();
    let mut rest = parse::utf8(value)?;
    loop {
        let (name, left) = match rest.strip_prefix('"') {
            None => match rest.split_once(',') {
                Some((name, left)) => (name.to_owned(), Some(left)),
                None => (rest.to_owned(), None),
            },
            Some(quoted) => {
                let (mut name, mut left) = (String::new(), quoted);
                loop {
                    let (piece, after) = left.split_once('"').ok_or("a quote does not close")?;
                    name += piece;
                    left = match after.strip_prefix('"') {
                        Some(after) => after,
                        None => break left = after,
                    };
                    name.push('"');
                }
                match left {
                    "" => (name, None),
                    _ => {
                        let left = left.strip_prefix(',');
                        (name, Some(left.ok_or("a comma is missing after a quote")?))
                    }
                }
            }
        };
        if name.is_empty() {
            return Err("a name is empty".to_owned());
        }
        names.push(name);
        match left {
            Some(left) => rest = left,
            None => return Ok(names),
        }
    }
}

#[cfg(test)]
mod tests {
    use volery_options::OptionSet as _;

    use super::*;

    #[test]
    fn every_option_belongs_to_an_operation_and_has_a_sentence() {
        for field in Options::FIELDS {
            assert!(Operation::Psi.has(field.name) || Operation::Lookup.has(field.name));
            assert!(!field.help().is_empty() && !field.help().ends_with('.'), "{}", field.name);
        }
        for name in NOT_OF_LOOKUP.into_iter().chain(OF_LOOKUP) {
            assert!(Options::FIELDS.iter().any(|field| field.name == name), "{name}");
        }
    }

    #[test]
    fn allowed_values_and_defaults_are_values() {
        for field in Options::FIELDS {
            let values = field.values.iter().map(|(value, _)| *value);
            for value in values.chain(field.default) {
                let mut options = Options::default();
                assert_eq!(options.set(field.name, value.as_ref()), Ok(true), "{value}");
            }
        }
    }

    #[test]
    fn names_are_split_at_commas_outside_quotes() {
        for (text, expected) in [
            ("a", &["a"][..]),
            ("a,b c", &["a", "b c"]),
            ("\"a,b\",c", &["a,b", "c"]),
            ("\"a\"\"b\"", &["a\"b"]),
        ] {
            assert_eq!(names(text.as_ref()).unwrap(), expected);
        }
        for bad in ["", "a,", "\"a", "\"a\"b", ",a"] {
            assert!(names(bad.as_ref()).is_err(), "{bad}");
        }
    }
}
