//! The report of a run as a page: one HTML file with its style and its charts, which loads nothing
//! and runs no script.
//!
//! The page is made from the JSON of `--report`, so that a report of an earlier run, or of a failed
//! one, gives a page too. A field that is missing leaves its part of the page out; the last part
//! lists all fields.

mod chart;
mod markup;
mod totals;
mod words;

use chart::{Bar, bars, sets};
use markup::{Markup, element, void};
use serde_json::Value;
use words::{bytes, count, one_in, seconds, share, things};

/// The page of a report.
#[must_use]
pub fn render(report: &Value) -> String {
    let page = Page {
        report,
        result: &report["result"],
        protocol: report["protocol"].as_str().unwrap_or("run"),
    };
    let headline = page.headline();
    let head = element(
        "head",
        &[],
        [
            void("meta", &[("charset", "utf-8")]),
            void(
                "meta",
                &[("name", "viewport"), ("content", "width=device-width, initial-scale=1")],
            ),
            // A browser then refuses whatever a defect of this module might let in.
            void(
                "meta",
                &[
                    ("http-equiv", "Content-Security-Policy"),
                    ("content", "default-src 'none'; style-src 'unsafe-inline'; img-src data:"),
                ],
            ),
            void("meta", &[("name", "color-scheme"), ("content", "light dark")]),
            void("link", &[("rel", "icon"), ("href", "data:,")]),
            element("title", &[], format!("{headline} – volery {}", page.protocol)),
            Markup::style(include_str!("page/style.css")),
        ],
    );
    let sections = [
        page.failure(),
        page.facts(),
        page.totals(),
        page.sizes(),
        page.rules(),
        page.revealed(),
        page.security(),
        page.time(),
        page.traffic(),
        page.files(),
        page.run(),
        page.fields(),
    ];
    let body = element(
        "body",
        &[],
        [
            element("header", &[], page.header(&headline)),
            element("main", &[], sections.into_iter().flatten().collect::<Markup>()),
            element("footer", &[], element("p", &[], page.origin())),
        ],
    );
    let html = element("html", &[("lang", "en")], [head, body]);
    format!("<!DOCTYPE html>\n{}\n", html.into_string())
}

/// A report, with its parts at hand.
struct Page<'a> {
    report: &'a Value,
    result: &'a Value,
    protocol: &'a str,
}

/// A whole number that is not negative.
fn whole(value: &Value) -> Option<u64> {
    value.as_u64()
}

/// A text, or nothing where it is empty.
fn text(value: &Value) -> Option<&str> {
    value.as_str().filter(|text| !text.is_empty())
}

/// The entries of a list; of anything else none.
fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn paragraph(content: impl Into<Markup>) -> Markup {
    element("p", &[], content)
}

fn note(content: impl Into<Markup>) -> Markup {
    element("p", &[("class", "note")], content)
}

fn number(content: impl Into<Markup>) -> Markup {
    element("td", &[("class", "number")], content)
}

fn code(content: &str) -> Markup {
    element("code", &[], content)
}

/// `2^log2` as mathematics.
fn power(log2: f64) -> Markup {
    let exponent = format!("{log2:.1}").replace('-', "−");
    [Markup::from("2"), element("sup", &[], exponent)].into()
}

/// A part of the page with its heading; `name` is unique on the page.
fn section(name: &str, heading: &str, content: impl Into<Markup>) -> Markup {
    let id = format!("h-{name}");
    element(
        "section",
        &[("aria-labelledby", &*id)],
        [element("h2", &[("id", &*id)], heading), content.into()],
    )
}

/// A list of names and values, without those that are missing.
fn pairs(class: &str, entries: impl IntoIterator<Item = (&'static str, Option<Markup>)>) -> Markup {
    let entries = entries.into_iter().filter_map(|(name, value)| {
        let pair = [element("dt", &[], name), element("dd", &[], value?)];
        Some(if class == "facts" { element("div", &[], pair) } else { pair.into() })
    });
    element("dl", &[("class", class)], entries.collect::<Markup>())
}

impl Page<'_> {
    fn matching(&self) -> bool {
        matches!(self.protocol, "psi" | "lookup")
    }

    fn failed(&self) -> bool {
        !self.report["error"].is_null()
    }

    /// The side of the peer has another role.
    fn role(&self) -> &str {
        self.report["role"].as_str().unwrap_or_default()
    }

    /// This side's rows and those that matched.
    fn matched_rows(&self) -> Option<(u64, u64)> {
        Some((whole(&self.result["matched"])?, whole(&self.result["rows"])?))
    }

    /// This side's distinct keys, and the peer's.
    fn sizes_of_sets(&self) -> Option<(u64, u64)> {
        Some((whole(&self.result["items"])?, whole(&self.result["peer_items"])?))
    }

    /// The result in one sentence.
    fn headline(&self) -> String {
        let n = whole(&self.report["n"]);
        if self.failed() {
            return match self.protocol {
                "psi" | "lookup" => "The matching did not finish".to_owned(),
                name => format!("The run of {name} did not finish"),
            };
        }
        if let Some(headline) = self.total_headline() {
            return headline;
        }
        let verb = match self.protocol {
            "lookup" => "were found",
            _ => "matched",
        };
        let keys = whole(&self.result["common"]).zip(whole(&self.result["items"]));
        match (self.protocol, n) {
            ("psi" | "lookup", _) => match (self.matched_rows(), keys, self.sizes_of_sets()) {
                (Some((matched, rows)), _, _) => {
                    format!("{} of your {} {verb}", count(matched), things(rows, "row"))
                }
                (None, Some((common, items)), _) => {
                    format!("{} of your {} {verb}", count(common), things(items, "key"))
                }
                (None, None, Some((1, peer))) => {
                    format!("Your key was compared with the peer’s {}", count(peer))
                }
                (None, None, Some((own, peer))) => format!(
                    "Your {} were compared with the peer’s {}",
                    things(own, "key"),
                    count(peer)
                ),
                _ => "The matching is done".to_owned(),
            },
            ("cot", Some(n)) => format!("{} were made", things(n, "correlated oblivious transfer")),
            ("vole", Some(n)) => format!("{} were made", things(n, "vector OLE correlation")),
            ("ope", Some(n)) => {
                format!("A private polynomial was evaluated at {}", things(n, "point"))
            }
            ("matvec", _) => "A private matrix was multiplied by a private vector".to_owned(),
            (name, _) => format!("The run of {name} is done"),
        }
    }

    fn header(&self, headline: &str) -> Markup {
        let kind = match self.protocol {
            "psi" => "Private matching",
            "lookup" => "Private look-up",
            "vole" | "cot" => "Correlated randomness",
            "ope" | "matvec" => "Private numbers",
            _ => "Run of volery",
        };
        let role = match self.role() {
            "" => String::new(),
            role => format!(" · report of the {role}"),
        };
        let date =
            text(&self.report["date"]).map_or(String::new(), |date| format!(" · {}", minute(date)));
        [
            element("p", &[("class", "kind")], format!("{kind}{role}{date}")),
            element("h1", &[], headline),
            element("p", &[("class", "lead")], self.lead()),
        ]
        .into()
    }

    /// The sentence below the headline.
    fn lead(&self) -> String {
        if self.failed() {
            return "This report says how far the run came and what it cost until then.".to_owned();
        }
        if let Some(lead) = self.total_lead() {
            return lead;
        }
        let Some((own, peer)) = self.sizes_of_sets().filter(|_| self.matching()) else {
            return match (self.role(), text(&self.report["security"])) {
                ("", _) | (_, None) => "The run ended without an error.".to_owned(),
                (role, Some(security)) => {
                    format!("This side was the {role}; security was {security}.")
                }
            };
        };
        let matched = whole(&self.result["matched"]);
        match whole(&self.result["common"]).or(matched.filter(|rows| *rows == 0)) {
            Some(0) => "No key is in both sets. A usual cause is that the two sides write their keys in different \
                        ways: capitals, spaces, leading zeros, the form of dates or telephone numbers."
                .to_owned(),
            Some(common) => format!(
                "This side had {}, the peer {}; {} on both sides.",
                things(own, "distinct key"),
                count(peer),
                match common {
                    1 => "1 key is".to_owned(),
                    common => format!("{} keys are", count(common)),
                }
            ),
            None if matched.is_some() => format!(
                "This side had {}, the peer {}.",
                things(own, "distinct key"),
                count(peer)
            ),
            None => "The result went to the peer; this side gets none.".to_owned(),
        }
    }

    /// The cause of a failure, and the remedy.
    fn failure(&self) -> Option<Markup> {
        let error = &self.report["error"];
        let field = |name: &str| text(&error[name]);
        let message = text(error).or_else(|| field("message"));
        let hint = field("hint").or_else(|| text(&self.report["hint"]));
        let status = whole(&error["status"]).or_else(|| whole(&self.report["status"]));
        let meaning = status.map(|status| match status {
            2 => "The call was wrong (exit status 2).".to_owned(),
            3 => "The peer broke the protocol, or a check failed (exit status 3).".to_owned(),
            4 => "The peer or the network went away or timed out (exit status 4).".to_owned(),
            5 => "The two sides have different settings (exit status 5).".to_owned(),
            status => format!("A file, the data, or anything else failed (exit status {status})."),
        });
        if error.is_null() {
            return None;
        }
        let hint = hint.unwrap_or(
            "Compare this message with the one on the peer’s side: the side that stopped first knows the cause.",
        );
        let content = [
            paragraph(element("strong", &[], message.unwrap_or("The cause is not in the report."))),
            meaning.map(paragraph).unwrap_or_default(),
            paragraph([element("b", &[], "What to do: "), hint.into()]),
        ];
        Some(element(
            "section",
            &[("class", "failed"), ("aria-labelledby", "h-failure")],
            [element("h2", &[("id", "h-failure")], "What went wrong"), content.into()],
        ))
    }

    /// The first numbers that a reader looks for.
    fn facts(&self) -> Option<Markup> {
        let matched = self.matched_rows().map(|(matched, rows)| {
            let share = element("small", &[], share(matched as f64, rows as f64));
            Markup::from([count(matched).into(), share])
        });
        let set = |name: &str| whole(&self.result[name]).map(|size| count(size).into());
        let [own, peer, common] = if self.matching() {
            [set("items"), set("peer_items"), set("common")]
        } else {
            [const { None }; 3]
        };
        let time = self.report["seconds"]["total"].as_f64().map(|time| seconds(time).into());
        let sent = whole(&self.report["bytes_sent"]);
        let received = whole(&self.report["bytes_received"]);
        let data =
            sent.zip(received).map(|(sent, received)| bytes(sent.saturating_add(received)).into());
        let entries = [
            ("Rows matched", matched),
            ("Keys of this side", own),
            ("Keys of the peer", peer),
            ("Keys on both sides", common),
            ("Time", time),
            ("Data exchanged", data),
            ("Security", text(&self.report["security"]).map(Markup::from)),
        ];
        entries.iter().any(|(_, value)| value.is_some()).then(|| pairs("facts", entries))
    }

    /// The sizes of both sets, and the rows of this side.
    fn sizes(&self) -> Option<Markup> {
        let (own, peer) = self.sizes_of_sets().filter(|_| self.matching())?;
        let common = whole(&self.result["common"]);
        let counts = |names: &[&str]| {
            names.iter().find_map(|name| self.result.pointer(name).and_then(whole))
        };
        let rows = [
            ("Rows read", counts(&["/rows"])),
            ("Rows with an empty key", counts(&["/empty", "/rows_left_out/empty_key"])),
            (
                "Rows whose key an earlier row has",
                counts(&["/duplicates", "/rows_left_out/duplicate_key"]),
            ),
            ("Rows with a malformed key", counts(&["/malformed"])),
            ("Rows matched", counts(&["/matched"])),
        ];
        let rows = rows.into_iter().filter_map(|(name, rows)| {
            let cells = [element("th", &[("scope", "row")], name), number(count(rows?))];
            Some(element("tr", &[], cells))
        });
        let table = element(
            "table",
            &[("class", "narrow")],
            [
                element("caption", &[], "The rows of this side’s input"),
                element("tbody", &[], rows.collect::<Markup>()),
            ],
        );
        Some(section("sets", "The two sets", [sets(own, peer, common), table]))
    }

    /// The part of each rule in the result.
    fn rules(&self) -> Option<Markup> {
        let rules = list(&self.result["rules"]);
        let rows = whole(&self.result["rows"]).unwrap_or_default();
        let rules: Vec<_> = rules
            .iter()
            .enumerate()
            .filter_map(|(index, rule)| {
                let matched = whole(&rule["matched_rows"])?;
                let rank = whole(&rule["rule"]).unwrap_or(index as u64 + 1);
                let columns = text(&rule["columns"]).unwrap_or("key");
                let keys = whole(&rule["keys"])
                    .map_or(String::new(), |keys| format!(" ({})", things(keys, "distinct key")));
                Some(Bar::new(
                    format!("{rank}. {columns}{keys}"),
                    [things(matched, "row"), share(matched as f64, rows as f64)],
                    [0.0, matched as f64],
                ))
            })
            .collect();
        if rules.is_empty() {
            return None;
        }
        let caption = format!("Rows matched by each rule, of {}", things(rows, "row"));
        let headings = ["Rule", "Rows", "Share"];
        let chart = bars(&caption, headings, &rules, rows as f64);
        let ranked = if rules.len() > 1 {
            note("Rules are tried in their order; a row counts for the first rule that matches it.")
        } else {
            Markup::default()
        };
        Some(section("rules", "Matches by rule", [chart, ranked]))
    }

    /// The information that each side got.
    fn revealed(&self) -> Option<Markup> {
        let lines = [&self.result["revealed"], &self.result["reveals"]];
        let lines = lines.into_iter().map(list).find(|lines| !lines.is_empty())?;
        let items = lines.iter().filter_map(text).map(|line| {
            let mut letters = line.chars();
            let first = letters.next().into_iter().flat_map(char::to_uppercase);
            let sentence = first.chain(letters).collect::<String>() + ".";
            element("li", &[], sentence)
        });
        let items = element("ul", &[("class", "plain")], items.collect::<Markup>());
        let before = if self.failed() {
            "These lines are about a complete run; this one may have ended before."
        } else {
            "The program prints the same lines before a run."
        };
        Some(section("revealed", "What each side learned", [items, note(before)]))
    }

    /// The adversary, the bounds, and the probability of a wrong result.
    fn security(&self) -> Option<Markup> {
        let security = text(&self.report["security"])?;
        let against = match security {
            "malicious" => {
                "Malicious: a peer may do anything and learns nothing beyond the list above and the bounds here."
            }
            "semi-honest" => {
                "Semi-honest: a peer that follows the protocol learns nothing else. One that does not can learn \
                              more, or falsify the result."
            }
            other => other,
        };
        let against = if self.matching() {
            against.to_owned()
        } else {
            against.replace("the list above and the bounds here", "its part of the result")
        };
        let result = self.result;
        let chance = |log2: f64| -> Markup {
            [format!("at most {} (", one_in(log2)).into(), power(log2), ")".into()].into()
        };
        let failure = result["failure_log2"].as_f64().map(chance);
        let wrong = result["false_positive_log2"].as_f64().map(chance);
        let most = [("2^80 hashes", "80"), ("2^128 hashes", "128")].into_iter().filter_map(
            |(name, exponent)| {
                let most = result["most_items"][name].as_f64()?;
                let line = [
                    format!("{most:.1} times the keys that it states, with 2").into(),
                    element("sup", &[], exponent),
                    " evaluations of a hash function".into(),
                ];
                Some(element("div", &[], line))
            },
        );
        let most: Vec<_> = most.collect();
        let bits =
            whole(&result["security_bits"]).map(|bits| format!("{bits} bits computational").into());
        let statistical = result["statistical_bits"].as_f64();
        let facts = pairs(
            "pairs",
            [
                ("Adversary", Some(against.into())),
                ("Rests on", text(&self.report["assumption"]).map(Markup::from)),
                ("Level", bits),
                (
                    "Statistical security",
                    statistical.map(|bits| format!("{bits:.0} bits", bits = bits.floor()).into()),
                ),
                ("Chance that the run fails or its result is wrong", failure),
                ("Chance of any false match", wrong),
                (
                    "A dishonest receiver can test at most",
                    (!most.is_empty()).then(|| most.into_iter().collect()),
                ),
            ],
        );
        let causes: Vec<_> = list(&result["failures"])
            .iter()
            .filter_map(|cause| {
                let log2 = cause["log2"].as_f64();
                let cells = [
                    element("th", &[("scope", "row")], text(&cause["what"])?),
                    number(log2.map_or_else(|| "cannot occur".to_owned(), one_in)),
                    number(log2.map_or_else(|| "–".into(), power)),
                ];
                Some(element("tr", &[], cells))
            })
            .collect();
        let table = (!causes.is_empty()).then(|| {
            let head = ["Cause", "Bound", "Power of two"].into_iter().enumerate().map(
                |(index, heading)| {
                    let class = if index == 0 { "" } else { "number" };
                    element("th", &[("scope", "col"), ("class", class)], heading)
                },
            );
            element(
                "table",
                &[("class", "stack")],
                [
                    element(
                        "caption",
                        &[],
                        "Failures between honest parties, with bounds on their probability",
                    ),
                    element("thead", &[], element("tr", &[], head.collect::<Markup>())),
                    element("tbody", &[], causes.into_iter().collect::<Markup>()),
                ],
            )
        });
        Some(section("security", "Security", [facts, table.unwrap_or_default()]))
    }

    /// The names and seconds of the phases, in their order.
    fn phases(&self) -> Vec<(&str, f64)> {
        /// Fields of `result.seconds`, then of `seconds`.
        const NAMES: [(&str, &str); 12] = [
            ("read", "reading the input"),
            ("agree", "agreeing with the peer"),
            ("hash", "hashing keys"),
            ("place", "placing keys"),
            ("encode", "ordering keys"),
            ("correlate", "making correlations"),
            ("rows", "oblivious evaluation"),
            ("match", "matching"),
            ("share", "sharing the result"),
            ("write", "writing the output"),
            ("setup", "setup"),
            ("extend", "making correlations"),
        ];
        let listed: Vec<_> = list(&self.report["phases"])
            .iter()
            .filter_map(|phase| Some((text(&phase["name"])?, phase["seconds"].as_f64()?)))
            .collect();
        if !listed.is_empty() {
            return listed;
        }
        let fields = match &self.result["seconds"] {
            Value::Null => &self.report["seconds"],
            fields => fields,
        };
        let online = ("online", "the part with inputs");
        let names = NAMES.into_iter().chain([online]);
        names.filter_map(|(field, name)| Some((name, fields[field].as_f64()?))).collect()
    }

    fn time(&self) -> Option<Markup> {
        let phases = self.phases();
        let all: f64 = phases.iter().map(|(_, seconds)| seconds.max(0.0)).sum();
        if phases.is_empty() || all <= 0.0 {
            return None;
        }
        let mut start = 0.0;
        let rows: Vec<_> = phases
            .iter()
            .map(|&(name, spent)| {
                let from = start;
                start += spent.max(0.0);
                Bar::new(name.to_owned(), [seconds(spent), share(spent, all)], [from, start])
            })
            .collect();
        let caption = format!(
            "Each bar begins where the phase before it ended; all phases: {}",
            seconds(all)
        );
        let chart = bars(&caption, ["Phase", "Time", "Share"], &rows, all);
        let total = self.report["seconds"]["total"].as_f64();
        let total = total.map(|total| {
            note(format!("From the connection to the finished output: {}.", seconds(total)))
        });
        Some(section("time", "Time by phase", [chart, total.unwrap_or_default()]))
    }

    fn traffic(&self) -> Option<Markup> {
        let sent = whole(&self.report["bytes_sent"])?;
        let received = whole(&self.report["bytes_received"])?;
        let all = sent.saturating_add(received);
        let bar = |(name, part): (&str, u64)| {
            Bar::new(
                name.to_owned(),
                [bytes(part), share(part as f64, all as f64)],
                [0.0, part as f64],
            )
        };
        let ways = [("Sent by this side", sent), ("Received from the peer", received)].map(bar);
        let ways = bars(
            &format!("By direction, of {} ({})", things(all, "byte"), bytes(all)),
            ["Direction", "Bytes", "Share"],
            &ways,
            all as f64,
        );
        let parts = [
            ("Setup", "bytes_setup"),
            ("Setup, sent", "setup_bytes_sent"),
            ("Setup, received", "setup_bytes_received"),
            ("Before the inputs", "bytes_offline"),
            ("Correlations", "bytes_correlations"),
            ("Encoded keys", "bytes_encoding"),
            ("Tags", "bytes_tags"),
            ("Values", "bytes_values"),
        ];
        let parts: Vec<_> = parts
            .into_iter()
            .filter_map(|(name, field)| {
                Some((name, whole(&self.result[field]).filter(|part| *part > 0)?))
            })
            .map(bar)
            .collect();
        let parts = if parts.is_empty() {
            Markup::default()
        } else {
            let caption = if self.matching() {
                "By part, as computed from the parameters; setup is measured"
            } else {
                "Parts that were measured"
            };
            bars(caption, ["Part", "Bytes", "Share"], &parts, all as f64)
        };
        Some(section("traffic", "Data exchanged", [ways, parts]))
    }

    /// The input files, and the two identities.
    fn files(&self) -> Option<Markup> {
        let inputs: Vec<_> = list(&self.report["inputs"])
            .iter()
            .filter_map(|input| {
                let digest = text(&input["digest"]).unwrap_or("not computed");
                let cells = [
                    element("th", &[("scope", "row")], text(&input["file"])?),
                    element("td", &[], code(digest)),
                ];
                Some(element("tr", &[], cells))
            })
            .collect();
        let table = (!inputs.is_empty()).then(|| {
            let head =
                ["File", "Digest"].map(|heading| element("th", &[("scope", "col")], heading));
            element(
                "table",
                &[("class", "stack")],
                [
                    element("caption", &[], "Input files of this side"),
                    element("thead", &[], element("tr", &[], head)),
                    element("tbody", &[], inputs.into_iter().collect::<Markup>()),
                ],
            )
        });
        let connection = &self.result["connection"];
        let fingerprint = |names: &[&str]| {
            let all =
                [connection, &self.report["connection"], &self.report["fingerprints"], self.report];
            let mut found =
                all.iter().flat_map(|place| names.iter().filter_map(|name| text(&place[*name])));
            found.next().map(code)
        };
        let entries = [
            ("Connection", text(&connection["protection"]).map(Markup::from)),
            ("Fingerprint of this side", fingerprint(&["own", "own_fingerprint", "fingerprint"])),
            ("Fingerprint of the peer", fingerprint(&["peer", "peer_fingerprint"])),
        ];
        if table.is_none() && entries.iter().all(|(_, value)| value.is_none()) {
            return None;
        }
        let parts = [table.unwrap_or_default(), pairs("pairs", entries)];
        Some(section("files", "Files and fingerprints", parts))
    }

    /// The protocol and its parameters.
    fn run(&self) -> Option<Markup> {
        let result = self.result;
        let buckets = whole(&result["buckets"]["count"]).map(|buckets| {
            let capacity = whole(&result["buckets"]["capacity"])
                .map_or(String::new(), |keys| format!(" of at most {}", things(keys, "key")));
            let attempts = whole(&result["buckets"]["attempts"])
                .filter(|attempts| *attempts > 1)
                .map_or(String::new(), |attempts| format!(", after {attempts} attempts"));
            format!("{}{capacity}{attempts}", things(buckets, "bucket"))
        });
        let memory = whole(&self.report["peak_rss_bytes"]).map(bytes);
        let owned = |value: &Value| text(value).map(Markup::from);
        let entries = [
            ("Protocol", owned(&result["protocol"])),
            ("Why this protocol", owned(&result["choice"]["why"])),
            ("Parameters", owned(&self.report["parameters"])),
            ("Ring", owned(&self.report["ring"])),
            ("LPN noise", owned(&self.report["noise"])),
            ("Types of the key columns", owned(&result["key_types"])),
            ("Partition", buckets.map(Markup::from)),
            ("Peak memory", memory.map(Markup::from)),
            ("Session", text(&result["session"]).map(code)),
        ];
        entries
            .iter()
            .any(|(_, value)| value.is_some())
            .then(|| section("run", "Protocol", pairs("pairs", entries)))
    }

    /// Every field of the report, closed at first.
    fn fields(&self) -> Option<Markup> {
        let mut rows = Vec::new();
        flatten("", self.report, &mut rows);
        let rows = rows.into_iter().map(|(name, value)| {
            let cells =
                [element("th", &[("scope", "row")], code(&name)), element("td", &[], value)];
            element("tr", &[], cells)
        });
        let table = element(
            "table",
            &[("class", "stack")],
            element("tbody", &[], rows.collect::<Markup>()),
        );
        let summary = element("summary", &[], "All fields of the report");
        let details = element("details", &[], [summary, table]);
        Some(element("section", &[("aria-label", "All fields of the report")], details))
    }

    /// The program that made the report.
    fn origin(&self) -> String {
        let version = text(&self.report["version"]).unwrap_or("of an unknown version");
        let commit =
            text(&self.report["commit"]).map_or(String::new(), |commit| format!(" ({commit})"));
        let date = text(&self.report["date"]).map_or(String::new(), |date| format!(", {date}"));
        format!(
            "Report of volery {version}{commit}{date}. This page loads nothing from the network."
        )
    }
}

/// A point in time as in ISO 8601, without its seconds; any other text as it is.
fn minute(date: &str) -> String {
    match (date.split_once('T'), date.strip_suffix('Z')) {
        (Some((day, time)), Some(_)) if time.is_char_boundary(5) && time.len() > 5 => {
            format!("{day} {} UTC", &time[..5])
        }
        _ => date.to_owned(),
    }
}

/// The names and values of all fields, with the path of each.
fn flatten(path: &str, value: &Value, rows: &mut Vec<(String, String)>) {
    let below = |name: &str| match path {
        "" => name.to_owned(),
        path => format!("{path}.{name}"),
    };
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            for (name, value) in fields {
                flatten(&below(name), value, rows);
            }
        }
        Value::Array(entries) if !entries.is_empty() => {
            for (index, value) in entries.iter().enumerate() {
                flatten(&format!("{path}[{index}]"), value, rows);
            }
        }
        Value::Null => {}
        Value::String(text) => rows.push((path.to_owned(), text.clone())),
        other => rows.push((path.to_owned(), other.to_string())),
    }
}

#[cfg(test)]
mod tests;
