//! The settings on which both sides agree before totals are computed: the result, its bounds, who
//! gets it.

use serde::{Deserialize, Serialize};
use volery_channel::{Hello, Link, Role};
use volery_pcg::Security;
use volery_primitives::ro::RandomOracle;
use volery_psi::circuit::{self, Recipient};
use volery_psi::noise::{self, Mechanism, Rational};

use super::decimal::{DecimalError, MAX_DECIMALS, parse};
use crate::error::Error;
use crate::options::{Options, ResultKind};
use crate::settings::{KEYS, ProtocolChoice, RESULT, SettingsError, check_link, link_text, wrong};
use crate::steps::hex;

/// The most groups of a run: each takes a comparison.
pub const MAX_GROUPS: usize = 60;
const _: () = assert!(MAX_GROUPS <= circuit::COMPARISONS);

/// The minimum where none is named and one number could be about few people.
pub const MINIMUM: u64 = 50;

/// The largest minimum.
pub const MAX_MINIMUM: u64 = 1 << 32;

/// The longest list of groups that the handshake repeats, in bytes; of a longer one it compares a
/// hash.
const LONGEST_GROUPS: usize = 512;

/// Bits, as a negative logarithm, of the probability that noise leaves the range for which totals
/// are checked.
const TAIL: u32 = 64;

/// The number of a total.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The number of common distinct keys.
    Count,
    /// The sum of a column over them.
    Sum,
    /// The sum and how many there are.
    Mean,
    /// The sum of the products of a column of either side.
    SumProduct,
}

impl Kind {
    /// The name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Count => "count",
            Self::Sum => "sum",
            Self::Mean => "mean",
            Self::SumProduct => "sum-product",
        }
    }

    /// Whether the number of common keys is part of the result.
    pub const fn has_count(self) -> bool {
        matches!(self, Self::Count | Self::Mean)
    }

    /// Whether a sum is part of the result.
    pub const fn has_sum(self) -> bool {
        !matches!(self, Self::Count)
    }
}

/// Noise that is added to totals before they are opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Privacy {
    /// Of the whole result.
    pub epsilon: Rational,
    /// Of the whole result, with Gaussian noise.
    pub delta: Option<Rational>,
    /// The noise of a count, if there is one.
    pub count: Option<Mechanism>,
    /// The noise of a sum, if there is one.
    pub sum: Option<Mechanism>,
}

/// The settings of a run.
#[derive(Clone, Debug)]
pub struct Settings {
    /// This side's role.
    pub role: Role,
    /// The number.
    pub kind: Kind,
    /// This side's column of values, if it has one.
    pub column: Option<String>,
    /// The side that has the column of a sum or a mean.
    pub holder: Option<Role>,
    /// Who gets the totals.
    pub to: Recipient,
    /// The protocol.
    pub name: ProtocolChoice,
    /// The most that a value of a key may be, in units of the last decimal place; 0 without
    /// values.
    pub bound: u64,
    /// Decimal places of values.
    pub decimals: u32,
    /// The fewest common keys of which anything is opened; 0: there is no such comparison.
    pub minimum: u64,
    /// Noise.
    pub privacy: Option<Privacy>,
    /// The side that has the groups.
    pub grouped: Option<Role>,
    /// Its column, at this side.
    pub group_by: Option<String>,
    /// The groups; none without `grouped`.
    pub groups: Vec<String>,
    /// The link that the protocol is chosen for; measured without it.
    pub link: Option<Link>,
}

impl Settings {
    /// Checks the options.
    ///
    /// # Panics
    /// If the result is rows or shares.
    pub(crate) fn new(options: &Options) -> Result<Self, SettingsError> {
        let role = options.role;
        let held = |column: &Option<String>| match column {
            None => (None, Some(role.other())),
            Some(name) => (Some(name.clone()), Some(role)),
        };
        let (kind, (column, holder)) = match &options.result {
            ResultKind::Rows | ResultKind::Shares(_) => panic!("rows and shares are no totals"),
            ResultKind::Count => (Kind::Count, (None, None)),
            ResultKind::Sum(column) => (Kind::Sum, held(column)),
            ResultKind::Mean(column) => (Kind::Mean, held(column)),
            ResultKind::SumProduct([sender, receiver]) => {
                let own = if role == Role::Sender { sender } else { receiver };
                (Kind::SumProduct, (Some(own.clone()), None))
            }
        };
        Self::check(kind, column, holder, options)
    }

    fn check(
        kind: Kind,
        column: Option<String>,
        holder: Option<Role>,
        options: &Options,
    ) -> Result<Self, SettingsError> {
        let Options { role, to, both, protocol: name, security, minimum, link, .. } = *options;
        if both && to.is_some() {
            let what = "--to says who gets the result";
            return wrong("--both", what, "remove --both, or --to");
        }
        if security == Some(Security::Malicious) {
            let what = format!(
                "{} is computed by circuit-PSI or by its count, of which no practical malicious \
                 form is known",
                kind.name()
            );
            let hint = "remove --security; --result rows has malicious security";
            return wrong("--security", what, hint);
        }
        if !matches!(
            name,
            ProtocolChoice::Auto
                | ProtocolChoice::Circuit
                | ProtocolChoice::CircuitLow
                | ProtocolChoice::Dh
        ) {
            let what = format!("{name} gives rows, not a {}", kind.name());
            return wrong("--protocol", what, "choose --protocol auto, circuit, circuit-low or dh");
        }
        let (bound, decimals) = Self::values(kind, options.bound.as_deref(), options.decimals)?;
        let group_by = options.group_by.clone();
        let groups = options.groups.clone().unwrap_or_default();
        let grouped = Self::grouped(role, group_by.as_ref(), &groups)?;
        let least = match (kind, grouped) {
            (Kind::Count, None) => 0,
            _ => MINIMUM,
        };
        let minimum = minimum.unwrap_or(least);
        if minimum > MAX_MINIMUM {
            let what = format!("{minimum} is more than {MAX_MINIMUM}");
            return wrong("--minimum", what, "name the fewest common keys of a result");
        }
        let mut settings = Self {
            role,
            kind,
            column,
            holder,
            to: match (to, both) {
                (Some(to), _) => to,
                (None, true) => Recipient::Both,
                (None, false) => Recipient::Receiver,
            },
            name,
            bound,
            decimals,
            minimum,
            privacy: None,
            grouped,
            group_by,
            groups,
            link,
        };
        check_link(settings.name, settings.link)?;
        settings.privacy = settings.noise(options.epsilon.as_deref(), options.delta.as_deref())?;
        if name == ProtocolChoice::Dh && !settings.is_simple_count() {
            let what = "dh gives the number of all common keys alone: without groups, minimum or \
                        noise";
            return wrong("--protocol", what, "choose --protocol auto or circuit");
        }
        Ok(settings)
    }

    /// The bound in units, and the decimal places.
    fn values(
        kind: Kind,
        bound: Option<&str>,
        decimals: Option<u32>,
    ) -> Result<(u64, u32), SettingsError> {
        if kind == Kind::Count {
            let option = match (&bound, decimals) {
                (Some(_), _) => "--bound",
                (None, Some(_)) => "--decimals",
                (None, None) => return Ok((0, 0)),
            };
            let hint = "remove it, or choose a sum or a mean";
            return wrong(option, "a count has no values", hint);
        }
        let decimals = decimals.unwrap_or(0);
        let most = match kind {
            Kind::SumProduct => MAX_DECIMALS / 2,
            _ => MAX_DECIMALS,
        };
        if decimals > most {
            let what = format!("a {} has values of at most {most} decimal places", kind.name());
            return wrong("--decimals", what, "round the values before the run");
        }
        let Some(bound) = bound else {
            let what = format!(
                "required with --result {}: the most that a value may be, without its sign; the \
                 same on both sides",
                kind.name()
            );
            let hint = "the run is refused if a total could leave 64 bits, and noise is as large \
                        as the bound asks for: a low one is better";
            return wrong("--bound", what, hint);
        };
        Ok((units_of_bound(bound, decimals)?, decimals))
    }

    /// The side that has the groups.
    fn grouped(
        role: Role,
        group_by: Option<&String>,
        groups: &[String],
    ) -> Result<Option<Role>, SettingsError> {
        let hint = "both sides give the same --groups, and the side that has the column --group-by";
        if groups.is_empty() {
            return match group_by {
                None => Ok(None),
                Some(_) => wrong("--groups", "required with --group-by", hint),
            };
        }
        if groups.len() > MAX_GROUPS {
            let what = format!("{} groups given; a run has at most {MAX_GROUPS}", groups.len());
            return wrong("--groups", what, "join groups, or make several runs");
        }
        for (i, group) in groups.iter().enumerate() {
            if groups[..i].contains(group) {
                let what = format!("{group:?} is named twice");
                return wrong("--groups", what, hint);
            }
        }
        Ok(Some(match group_by {
            Some(_) => role,
            None => role.other(),
        }))
    }

    /// The noise of each total.
    ///
    /// A count that is compared with the minimum or opened and a sum have half of `epsilon` and
    /// `delta` each; one of them alone has all. Groups are disjoint: each has the whole.
    fn noise(
        &self,
        epsilon: Option<&str>,
        delta: Option<&str>,
    ) -> Result<Option<Privacy>, SettingsError> {
        let number = |option, text: &str| {
            text.parse::<Rational>().or_else(|error| {
                wrong(option, error.to_string(), "give a decimal number, such as 0.5")
            })
        };
        let Some(epsilon) = epsilon else {
            return match delta {
                None => Ok(None),
                Some(_) => wrong(
                    "--delta",
                    "only with --epsilon",
                    "--epsilon sets the noise; --delta makes it Gaussian",
                ),
            };
        };
        let epsilon = number("--epsilon", epsilon)?;
        let delta = delta.map(|delta| number("--delta", delta)).transpose()?;
        let halves = self.has_count() && self.kind.has_sum();
        let part = |whole: Rational, option| {
            if !halves {
                return Ok(whole);
            }
            let half = whole.half();
            half.map_or_else(|| wrong(option, "has too many digits", "give fewer digits"), Ok)
        };
        let part_epsilon = part(epsilon, "--epsilon")?;
        let part_delta = delta.map(|delta| part(delta, "--delta")).transpose()?;
        let mechanism = |sensitivity| {
            let made = match part_delta {
                None => Mechanism::laplace(sensitivity, part_epsilon),
                Some(delta) => Mechanism::gaussian(sensitivity, part_epsilon, delta),
            };
            made.or_else(|error| {
                let (option, hint) = match error {
                    noise::Error::Delta => ("--delta", "give a number such as 1e-9"),
                    _ => (
                        "--epsilon",
                        "a lower --bound needs less noise, and so does a higher --epsilon",
                    ),
                };
                wrong(option, error.to_string(), hint)
            })
        };
        let Some(unit) = self.unit() else {
            return Err(self.large());
        };
        Ok(Some(Privacy {
            epsilon,
            delta,
            count: self.has_count().then(|| mechanism(1)).transpose()?,
            sum: self.kind.has_sum().then(|| mechanism(unit)).transpose()?,
        }))
    }

    /// The most that one key changes a sum by, in units of its last place; `None` if that is beyond
    /// 63 bits.
    pub fn unit(&self) -> Option<u64> {
        let unit = match self.kind {
            Kind::SumProduct => self.bound.checked_mul(self.bound)?,
            _ => self.bound,
        };
        (unit < 1 << 63).then_some(unit)
    }

    fn large(&self) -> SettingsError {
        SettingsError {
            option: "--bound",
            what: format!("a {} of such values does not fit into 64 bits", self.kind.name()),
            hint: "give a lower bound, or fewer --decimals".into(),
        }
    }

    /// Whether the number of common keys is computed: opened, or compared with the minimum.
    pub fn has_count(&self) -> bool {
        self.kind.has_count() || self.minimum > 0
    }

    /// Whether the number of all common keys is all that is asked for.
    pub fn is_simple_count(&self) -> bool {
        self.kind == Kind::Count
            && self.grouped.is_none()
            && self.minimum == 0
            && self.privacy.is_none()
    }

    /// Whether the side of this role adds noise to the count, and to the sum.
    ///
    /// The noise of a side protects against the other one, who does not know it. So it is added
    /// where the other learns something about the total: both learn whether a count is below the
    /// minimum, and who gets the totals learns these.
    pub fn adds(&self, role: Role) -> [bool; 2] {
        let other_gets = self.to.gives(role.other());
        [other_gets || self.minimum > 0, other_gets]
    }

    /// Number of totals.
    pub fn totals(&self) -> usize {
        self.groups.len().max(1)
    }

    /// Decimal places of a sum.
    pub fn sum_decimals(&self) -> u32 {
        match self.kind {
            Kind::Count => 0,
            Kind::Sum | Kind::Mean => self.decimals,
            Kind::SumProduct => 2 * self.decimals,
        }
    }

    /// Whether this side gets the totals.
    pub fn gets_totals(&self) -> bool {
        self.to.gives(self.role)
    }

    /// The side whose items are in the bins of circuit-PSI: that of the groups, or else of the
    /// values, which cost less there.
    pub fn in_bins(&self) -> Role {
        self.grouped.or(self.holder).unwrap_or(Role::Receiver)
    }

    /// The settings of circuit-PSI.
    pub fn circuit(&self) -> circuit::Settings {
        let totals = self.totals();
        let shared = self.has_shared_values();
        let held = self.kind.has_sum() && !shared;
        circuit::Settings {
            form: self.name.form(),
            payload: usize::from(shared),
            weights: totals * (usize::from(self.has_count()) + usize::from(held)),
            products: usize::from(self.kind == Kind::SumProduct),
            selections: match self.grouped {
                Some(_) if shared => totals,
                _ => 0,
            },
            parts: 1,
        }
    }

    /// Whether values come from the side whose items are not in the bins.
    pub(crate) fn has_shared_values(&self) -> bool {
        match self.kind {
            Kind::Count => false,
            Kind::SumProduct => true,
            Kind::Sum | Kind::Mean => self.holder != Some(self.in_bins()),
        }
    }

    /// Refuses sets so large that a total, with its noise, could leave 64 bits.
    ///
    /// # Errors
    /// [`Error::LargeTotal`].
    pub fn check_range(&self, [sender, receiver]: [u64; 2]) -> Result<(), Error> {
        let keys = sender.min(receiver);
        let noise = |mechanism: Option<Mechanism>| {
            // Of both sides.
            mechanism.map_or(0, |mechanism| 2 * u128::from(mechanism.tail(TAIL)))
        };
        let [count, sum] = match &self.privacy {
            Some(privacy) => [privacy.count, privacy.sum].map(noise),
            None => [0; 2],
        };
        let unit = self.unit().map_or(u128::MAX >> 64, u128::from);
        let most =
            [u128::from(keys) + u128::from(self.minimum) + count, u128::from(keys) * unit + sum];
        match most.iter().all(|most| *most < 1 << 63) {
            true => Ok(()),
            false => Err(Error::LargeTotal { keys, with_noise: self.privacy.is_some() }),
        }
    }

    /// The first message of this side; the peer's must be the same. `keys` describes the key
    /// without the names of columns.
    pub fn hello(&self, keys: &str) -> Hello {
        let whose = |role: Option<Role>| role.map_or("neither side", Role::name).to_owned();
        let (epsilon, delta) = match &self.privacy {
            None => ("none".to_owned(), "none".to_owned()),
            Some(Privacy { epsilon, delta, .. }) => {
                (epsilon.to_string(), delta.map_or("none".to_owned(), |delta| delta.to_string()))
            }
        };
        let mut fields = vec![
            (RESULT, self.kind.name().to_owned()),
            (COLUMN, whose(self.holder)),
            (TO, self.to.name().to_owned()),
            ("--protocol", self.name.to_string()),
            ("security", Security::SemiHonest.to_string()),
            ("--decimals", self.decimals.to_string()),
            ("--bound", super::decimal(self.bound as i64, self.decimals)),
            ("--minimum", self.minimum.to_string()),
            ("--epsilon", epsilon),
            ("--delta", delta),
            (GROUPS, self.groups_text()),
            (GROUP_BY, whose(self.grouped)),
        ];
        if self.is_simple_count() && self.name == ProtocolChoice::Auto {
            fields.push(("--link", link_text(self.link)));
        }
        fields.push((KEYS, keys.to_owned()));
        Hello { protocol: "psi", role: self.role.name(), fields }
    }

    /// The settings that both sides of a run with several workers must have alike, as text.
    ///
    /// # Panics
    /// Never: names and numbers serialise.
    pub fn alike(&self) -> String {
        let settings = (self.name.name(), self.agreed());
        serde_json::to_string(&settings).expect("names and numbers serialise")
    }

    /// These settings as the manifest of a run with several workers keeps them.
    pub fn agreed(&self) -> SettingsRecord {
        SettingsRecord {
            kind: self.kind.name().to_owned(),
            holder: self.holder.map(|role| role.name().to_owned()),
            to: self.to.name().to_owned(),
            bound: (self.bound > 0).then(|| super::decimal(self.bound as i64, self.decimals)),
            decimals: self.decimals,
            minimum: self.minimum,
            epsilon: self.privacy.map(|privacy| exact(privacy.epsilon)),
            delta: self.privacy.and_then(|privacy| privacy.delta).map(exact),
            grouped: self.grouped.map(|role| role.name().to_owned()),
            groups: self.groups.clone(),
        }
    }

    fn groups_text(&self) -> String {
        if self.groups.is_empty() {
            return "none".to_owned();
        }
        let text = format!("{:?}", self.groups);
        if text.len() <= LONGEST_GROUPS {
            return text;
        }
        let hash = RandomOracle::new("volery matching: groups").absorb(text.as_bytes()).finish32();
        format!("{} groups, {}", self.groups.len(), hex(&hash[..8]))
    }
}

/// The settings of totals as they are kept: equal on both sides.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettingsRecord {
    kind: String,
    holder: Option<String>,
    to: String,
    bound: Option<String>,
    decimals: u32,
    minimum: u64,
    epsilon: Option<String>,
    delta: Option<String>,
    grouped: Option<String>,
    groups: Vec<String>,
}

impl SettingsRecord {
    /// The settings of a side, without the names of its columns; `None` if there are no such.
    #[must_use]
    pub fn settings(&self, protocol: &str, role: Role) -> Option<Settings> {
        let kinds = [Kind::Count, Kind::Sum, Kind::Mean, Kind::SumProduct];
        let kind = kinds.into_iter().find(|kind| kind.name() == self.kind)?;
        let to = [Recipient::Receiver, Recipient::Sender, Recipient::Both];
        let to = to.into_iter().find(|to| to.name() == self.to)?;
        let name = ProtocolChoice::all().find(|name| name.name() == protocol)?;
        let side = |name: &Option<String>| {
            let sides = [Role::Sender, Role::Receiver].into_iter();
            let mut sides = sides.filter(|side| Some(side.name()) == name.as_deref());
            sides.next()
        };
        let holder = side(&self.holder);
        let has_column = holder == Some(role) || kind == Kind::SumProduct;
        let decimals = kind.has_sum().then_some(self.decimals);
        let options = Options {
            role,
            to: Some(to),
            protocol: name,
            bound: self.bound.clone(),
            decimals,
            minimum: Some(self.minimum),
            epsilon: self.epsilon.clone(),
            delta: self.delta.clone(),
            group_by: (side(&self.grouped) == Some(role)).then(String::new),
            groups: Some(self.groups.clone()),
            ..Options::default()
        };
        let column = has_column.then(String::new);
        let settings = Settings::check(kind, column, holder, &options).ok()?;
        let protocol = settings.protocol()?;
        protocol.is_for_workers().then_some(settings)
    }
}

/// A bound in units of the last of these decimal places.
pub(crate) fn units_of_bound(bound: &str, decimals: u32) -> Result<u64, SettingsError> {
    // 1e3, 10M
    let plain =
        volery_options::values::count(bound).map_or(bound.into(), |count| count.to_string());
    match parse(plain.as_bytes(), decimals) {
        Ok(units @ 1..) => Ok(units.unsigned_abs()),
        Ok(_) | Err(DecimalError::NotANumber) => wrong(
            "--bound",
            format!("{bound:?} is not a bound"),
            "give a decimal number above zero, such as 1000 or 99.99",
        ),
        Err(DecimalError::Places) => wrong(
            "--bound",
            format!("{bound} has more than {decimals} decimal places"),
            "--decimals sets the decimal places of values",
        ),
        Err(DecimalError::Large) => wrong(
            "--bound",
            format!("{bound} with {decimals} decimal places does not fit into 64 bits"),
            "give a lower bound, or fewer --decimals",
        ),
    }
}

/// A number with all its decimal places.
fn exact(number: Rational) -> String {
    let text = number.to_string();
    let Some((numerator, denominator)) = text.split_once('/') else {
        return text;
    };
    let parsed = [numerator, denominator].map(str::parse::<u128>);
    let [Ok(numerator), Ok(denominator)] = parsed else {
        unreachable!("a fraction has two numbers");
    };
    // It was a decimal number: the denominator divides a power of ten.
    let mut units = (numerator / denominator).to_string();
    let mut rest = numerator % denominator;
    if rest > 0 {
        units.push('.');
    }
    while rest > 0 {
        units += &(10 * rest / denominator).to_string();
        rest = 10 * rest % denominator;
    }
    units
}

/// The names under which the handshake compares the settings: the side with the column.
pub const COLUMN: &str = "the side with the column of --result";
/// Who gets the totals.
pub const TO: &str = "--to";
/// The groups.
pub const GROUPS: &str = "--groups";
/// The side that has them.
pub const GROUP_BY: &str = "the side with --group-by";
