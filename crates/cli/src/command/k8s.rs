//! `volery k8s`: the manifests with which Kubernetes runs the workers of a side, a server or a
//! gateway.

use std::fs;
use std::net::IpAddr;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use clap::ArgMatches;
use clap::parser::ValueSource;
use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, context};
use serde::Serialize;
use serde_json::{Map, Value, json};
use volery_options::values;
use volery_run::endpoint::{fingerprint, host_port};
use volery_run::failure::{Failure, Result};
use volery_run::reporter::Reporter;

use super::{Verb, parsed, program};
use crate::exit::wrong_words;

/// Seconds that a pod waits for its peer, unless its words say otherwise: an autoscaler may have to
/// bring a machine first.
const WAIT: u64 = 1800;

/// The port of the probes of a server that has no `--metrics`.
const METRICS: u16 = 9464;

/// Applies the jobs one after the other. `kubectl wait` waits for one condition only, so it would
/// not return when a job fails.
const SCRIPT: &str = include_str!("k8s/run.sh");

const TEMPLATE: &str = include_str!("k8s/manifests.json.j2");

/// The options that name a file or folder, and whether it is written.
const PATHS: [(&str, bool); 10] = [
    ("config", false),
    ("input", false),
    ("clients", false),
    ("identity_passphrase", false),
    ("web_files", false),
    ("web_certificate", false),
    ("web_key", false),
    ("out", true),
    ("html", true),
    ("report", true),
];

/// Write the manifests of Kubernetes: for a side of a run with workers, a server or a gateway
///
/// A side has three kinds of jobs, which run.sh applies one after the other: one pod reads the
/// table, meets the peer and divides the keys into shards; an indexed job with a pod for each
/// worker and key matches them; one pod writes the result. The first and the last pod have the
/// whole work folder, a claim with access mode ReadWriteMany; a worker has the folder with its own
/// shards and certificate. The peer may run anything else. A server or a gateway is a stateful set
/// of one pod with a service.
#[derive(Clone, Debug, clap::Args, Serialize)]
#[command(
    override_usage = "volery k8s --image <IMAGE> --out <DIR> .. -- <psi|lookup|serve|gateway> .."
)]
pub(crate) struct Arguments {
    /// The image with the program
    #[arg(long, value_name = "IMAGE")]
    image: String,

    /// The namespace [default: that of kubectl]
    #[arg(long, value_name = "NAME", value_parser = name)]
    namespace: Option<String>,

    /// The persistent volume claim that is mounted at /work: the work folder, which all pods can
    /// write to, or the place for the --store of a server
    #[arg(long, value_name = "NAME", value_parser = name)]
    work_claim: Option<String>,

    /// The secret with the files of 'volery keygen'
    #[arg(long, value_name = "NAME", value_parser = name)]
    identity_secret: Option<String>,

    /// The persistent volume claim with the table, mounted at /data
    #[arg(long, value_name = "NAME", value_parser = name)]
    data_claim: Option<String>,

    /// The config map with the file for --clients of a server, mounted at /config
    #[arg(long, value_name = "NAME", value_parser = name)]
    config_map: Option<String>,

    /// Secret with which the image is pulled; may be repeated
    #[arg(long, value_name = "NAME", value_parser = name)]
    pull_secret: Vec<String>,

    /// Taint of machines that the pods may run on, such as pool=batch:NoSchedule; may be repeated
    #[arg(long, value_name = "KEY[=VALUE][:EFFECT]", value_parser = toleration)]
    toleration: Vec<Value>,

    /// Memory of a pod of a worker, or of a server or gateway
    #[arg(long, value_name = "QUANTITY", default_value = "512Mi", value_parser = quantity)]
    memory: String,

    /// Processors of a pod of a worker, or of a server or gateway
    #[arg(long, value_name = "QUANTITY", default_value = "1", value_parser = quantity)]
    cpu: String,

    /// Memory of the first and the last pod, which have the whole table
    #[arg(long, value_name = "QUANTITY", default_value = "4Gi", value_parser = quantity)]
    driver_memory: String,

    /// Processors of the first and the last pod
    #[arg(long, value_name = "QUANTITY", default_value = "1", value_parser = quantity)]
    driver_cpu: String,

    /// Temporary files of a pod
    #[arg(long, value_name = "QUANTITY", default_value = "1Gi", value_parser = quantity)]
    temporary: String,

    /// Time after which a job that has not finished fails
    #[arg(long, value_name = "TIME", default_value = "1d", value_parser = values::time)]
    deadline: Duration,

    /// Time after which a finished job is removed, with its log
    #[arg(long, value_name = "TIME", default_value = "7d", value_parser = values::time)]
    keep_jobs: Duration,

    /// Output folder, made where it does not exist
    #[arg(long, value_name = "DIR")]
    #[serde(skip)]
    out: PathBuf,

    /// The words of 'volery run-local', 'volery serve' or 'volery gateway', without --identity,
    /// --resume and --store, which are mounted; /work is the work folder, /data the table
    #[arg(last = true, required = true, value_name = "psi|lookup|serve|gateway ..")]
    words: Vec<String>,
}

/// Parses the name of an object.
fn name(text: &str) -> Result<String, String> {
    let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let all = text.chars().all(|c| inner(c) || "-.".contains(c));
    let is_one = all && text.len() < 64 && text.starts_with(inner) && text.ends_with(inner);
    let what = "a name has lower-case letters and digits, with '-' and '.' within";
    is_one.then(|| text.to_owned()).ok_or_else(|| what.to_owned())
}

/// Checks a quantity: a number and a suffix.
fn quantity(text: &str) -> Result<String, String> {
    let suffixes = ["m", "", "k", "M", "G", "T", "Ki", "Mi", "Gi", "Ti"];
    let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let is_one = number.parse::<f64>().is_ok_and(|number| number > 0.0)
        && suffixes.contains(&&text[number.len()..]);
    is_one.then(|| text.to_owned()).ok_or_else(|| "a quantity is written as 500m, 2 or 4Gi".into())
}

/// Parses a toleration.
fn toleration(text: &str) -> Result<Value, String> {
    let (taint, effect) = text.rsplit_once(':').unwrap_or((text, ""));
    if !["", "NoSchedule", "PreferNoSchedule", "NoExecute"].contains(&effect) {
        return Err("the effects are NoSchedule, PreferNoSchedule and NoExecute".to_owned());
    }
    let mut toleration = match taint.split_once('=') {
        Some((key, value)) => json!({ "key": key, "operator": "Equal", "value": value }),
        None => json!({ "key": taint, "operator": "Exists" }),
    };
    if !effect.is_empty() {
        toleration["effect"] = effect.into();
    }
    Ok(toleration)
}

/// Runs the subcommand.
pub(crate) fn run(arguments: &Arguments, reporter: &Reporter) -> Result<()> {
    let first = arguments.words.first().map(String::as_str).unwrap_or_default();
    let (files, commands) = match first {
        "psi" | "lookup" => arguments.side()?,
        "serve" | "gateway" => arguments.service(first)?,
        _ => return Err(Failure::usage("--", "the first word is psi, lookup, serve or gateway")),
    };
    let out = &arguments.out;
    fs::create_dir_all(out).map_err(|error| Failure::file(out, error))?;
    for (name, text) in files {
        let path = out.join(name);
        fs::write(&path, text).map_err(|error| Failure::file(&path, error))?;
    }
    let namespace = arguments.namespace();
    let of_identity = arguments.identity_secret.iter().map(|secret| {
        format!("kubectl{namespace} create secret generic {secret} --from-file=IDENTITY")
    });
    let all: Vec<_> = of_identity.chain([commands]).collect();
    reporter.output(&format!("{}\n", all.join("\n")))
}

fn port(option: &str, address: &str) -> Result<u16> {
    host_port(option, address)?;
    let port = address.rsplit_once(':').and_then(|(_, port)| port.parse().ok());
    port.filter(|port| *port > 0).ok_or_else(|| Failure::usage(option, "a pod needs a fixed port"))
}

/// The port of an address at which other pods, and probes, reach this one.
fn open_port(option: &str, address: &str) -> Result<u16> {
    let open = port(option, address)?;
    let (host, _) = address.rsplit_once(':').unwrap_or_default();
    let ip = host.trim_matches(['[', ']']).parse::<IpAddr>();
    match host == "localhost" || ip.is_ok_and(|ip| ip.is_loopback()) {
        true => Err(Failure::usage(option, format_args!("nobody reaches {host} of a pod"))
            .with_hint(format_args!("{option} 0.0.0.0:{open}"))),
        false => Ok(open),
    }
}

/// The files to write, and the command that applies them.
type Rendered = (Vec<(String, String)>, String);

impl Arguments {
    fn namespace(&self) -> String {
        let name = self.namespace.as_ref();
        name.map_or(String::new(), |name| format!(" --namespace {name}"))
    }

    /// Parses the words of another subcommand.
    fn parse(&self, before: &[&str], after: &[&str]) -> Result<(ArgMatches, Verb)> {
        let words = self.words.iter().map(String::as_str);
        let words = before.iter().copied().chain(words).chain(after.iter().copied());
        parsed(program(), words)
            .map_err(|error| wrong_words(&error, "the words after -- are those of another command"))
    }

    /// The volumes among `all` that are given, which pods see at their names; each of `required`
    /// must be.
    fn volumes(&self, all: &[&str], required: &[&str]) -> Result<Vec<&'static str>> {
        let mut found = Vec::new();
        for (name, option, given) in [
            ("work", "--work-claim", &self.work_claim),
            ("data", "--data-claim", &self.data_claim),
            ("config", "--config-map", &self.config_map),
            ("identity", "--identity-secret", &self.identity_secret),
        ] {
            if given.is_none() && required.contains(&name) {
                return Err(Failure::usage(option, "required for these words"));
            }
            found.extend((given.is_some() && all.contains(&name)).then_some(name));
        }
        Ok(found)
    }

    /// Refuses a path of the words that pods with these volumes do not see.
    fn check_paths(&self, words: &ArgMatches, volumes: &[&str]) -> Result<()> {
        for (name, is_written) in PATHS {
            for value in words.try_get_raw(name).ok().flatten().into_iter().flatten() {
                let text = value.to_string_lossy();
                let path = Path::new(text.strip_prefix("file:").unwrap_or(&text));
                let mut seen = volumes.iter().filter(|name| !is_written || **name == "work");
                let is_within = !path.components().any(|part| part == Component::ParentDir);
                if is_within && seen.any(|name| path.starts_with(format!("/{name}"))) {
                    continue;
                }
                let what = format_args!("{text} is not in a folder of the pods");
                let failure = Failure::usage(&format!("--{}", name.replace('_', "-")), what);
                return Err(failure.with_hint(match (is_written, &*self.words[0]) {
                    (true, "gateway") => "remove it: a gateway writes no file",
                    (true, _) => "write to /work, the claim of --work-claim",
                    (false, _) => {
                        "pods read from /data (--data-claim) and /identity (--identity-secret), all but a gateway from /work (--work-claim), and a server or gateway from /config (--config-map)"
                    }
                }));
            }
        }
        Ok(())
    }

    /// The words of the user, with the fingerprint in place of a file, which pods do not have.
    fn words(&self) -> Vec<String> {
        let given = &self.words;
        let is_pin = |word: &str| ["--peer", "--allow", "--token"].contains(&word);
        let pin = |text: &str| fingerprint(text).map_or(text.to_owned(), |print| print.to_string());
        let words = given.iter().enumerate().map(|(place, word)| match word.split_once('=') {
            Some((option, value)) if is_pin(option) => format!("{option}={}", pin(value)),
            _ if place > 0 && is_pin(&given[place - 1]) => pin(word),
            _ => word.clone(),
        });
        words.collect()
    }

    /// The manifests of the template for these values and those of the options.
    fn files(&self, values: minijinja::Value) -> Vec<(String, String)> {
        let mut environment = Environment::new();
        // With it, the texts of macros are marked: what is not is written as JSON.
        environment.set_auto_escape_callback(|_| AutoEscape::Html);
        environment.set_formatter(|out, _, value| {
            match value.is_safe() {
                true => write!(out, "{value}")?,
                false => out.write_str(&json!(value).to_string())?,
            }
            Ok(())
        });
        let values = context! { ..values, ..minijinja::Value::from(Serde(self)) };
        let text = environment.render_str(TEMPLATE, values);
        let text = text.expect("the template takes all options");
        let files: Map<String, Value> = serde_json::from_str(&text).expect("the template is JSON");
        files.into_iter().map(|(name, file)| (name, format!("{file:#}\n"))).collect()
    }

    /// The jobs of a side, and the script that applies them.
    fn side(&self) -> Result<Rendered> {
        let fixed = ["--identity=/identity", "--allow-group-readable-identity"];
        let with_work = [&fixed[..], &["--resume=/work"]].concat();
        let (matches, verb) = self.parse(&["volery", "run-local"], &with_work)?;
        let Verb::RunLocal(parsed) = &verb else { unreachable!("the words begin with run-local") };
        parsed.check_result()?;
        let given = self.volumes(&["work", "data", "identity"], &["work", "identity"])?;
        let (workers, matching) = parsed.parts();
        let cluster = &workers.cluster;
        // It is part of the names of pods, which have 63 characters.
        let run = cluster.run();
        if run.len() > 40 || run.contains('.') || name(run).is_err() {
            let what = "Kubernetes takes 40 lower-case letters, digits and '-' within them";
            return Err(Failure::usage("--run", what));
        }
        // Their network policy would be that of the run, which lets nobody connect.
        if ["serve", "gateway"].contains(&run) {
            return Err(Failure::usage("--run", "the name of a server or gateway of the cluster"));
        }
        let proxy = matching.endpoint.proxy.as_ref().map(|proxy| proxy.text());
        if proxy.is_some_and(|proxy| proxy.contains('@')) {
            let what = "its user and password would stand in the manifests";
            return Err(Failure::usage("--proxy", what).with_hint(
                "leave --proxy out, set VOLERY_PROXY in the containers from a Secret of the cluster, and let the network policy pass it",
            ));
        }
        let options = matches.subcommand().and_then(|(_, below)| below.subcommand());
        let (_, options) = options.expect("it was parsed");
        self.check_paths(options, &given)?;
        let is_given = |option| options.value_source(option) != Some(ValueSource::DefaultValue);
        let mut words = vec!["run-local".to_owned()];
        words.extend(self.words());
        words.extend(fixed.map(str::to_owned));
        words.push(format!("--resume=/work/{run}"));
        let mut wait = matching.endpoint.wait.as_secs();
        if !is_given("wait") {
            wait = WAIT;
            words.push(format!("--wait={wait}s"));
        }
        if !is_given("log") {
            words.push("--log=json".to_owned());
        }
        let of_proxy = proxy.and_then(|proxy| proxy.split("://").nth(1));
        let to = of_proxy.map_or(cluster.gateway(), |address| address.trim_end_matches('/'));
        let (host, _) = to.rsplit_once(':').unwrap_or_default();
        let to = destination(host, port("--gateway, --proxy", to)?);
        let proxy: Vec<_> = proxy.iter().map(|proxy| format!("--proxy={proxy}")).collect();
        let mut files = self.files(context! {
            run, wait, proxy, to,
            args => words,
            has => given,
            workers => cluster.workers,
            gateway => cluster.gateway(),
            rules => matching.number_of_rules(),
            role => matching.role.name(),
            timeout => matching.common.timeout.as_secs(),
            threads => matching.common.threads.unwrap_or(1),
        });
        files.push(("run.sh".to_owned(), SCRIPT.replace("@NAMESPACE", &self.namespace())));
        Ok((files, format!("sh {}", self.out.join("run.sh").display())))
    }

    /// The stateful set of a server or gateway: one pod, as two would count budgets twice, or
    /// workers would wait in different ones.
    fn service(&self, verb: &str) -> Result<Rendered> {
        let mut fixed = vec!["--log=json"];
        // A gateway of workers has no identity.
        let volumes = match verb {
            "serve" => self.volumes(&["work", "data", "config", "identity"], &["work"]),
            _ if self.words.iter().any(|word| word.split('=').next() == Some("--to")) => {
                self.volumes(&["data", "config", "identity"], &[])
            }
            _ => self.volumes(&["data", "config"], &[]),
        }?;
        if volumes.contains(&"work") {
            fixed.push("--store=/work/store");
        }
        if volumes.contains(&"identity") {
            fixed.extend(["--identity=/identity", "--allow-group-readable-identity"]);
        }
        let (matches, parsed) = self.parse(&["volery"], &fixed)?;
        self.check_paths(matches.subcommand().expect("it was parsed").1, &volumes)?;
        let (listens, metrics, grace, to) = match &parsed {
            #[cfg(unix)]
            Verb::Serve(serve) => {
                let own = serve.own();
                (serve.listens(), Some(own.metrics.as_deref()), own.grace.as_secs(), None)
            }
            Verb::Gateway(gateway) => {
                (gateway.listens(), None::<Option<&str>>, 0, gateway.to.as_deref())
            }
            _ => unreachable!("the word is serve or gateway"),
        };
        let mut words = self.words();
        words.extend(fixed.iter().map(|&word| word.to_owned()));
        let mut ports = Vec::new();
        for (option, address) in listens {
            ports.push((option[2..].to_owned(), open_port(option, &address)?));
        }
        let Some((_, mut probed)) = ports.first().cloned() else {
            return Err(Failure::usage("--listen", "required").with_hint("--listen 0.0.0.0:7000"));
        };
        if let Some(address) = metrics {
            probed = address.map_or(Ok(METRICS), |address| open_port("--metrics", address))?;
            if address.is_none() {
                words.push(format!("--metrics=0.0.0.0:{METRICS}"));
                words.push("--public-metrics".to_owned());
            }
            ports.push(("metrics".to_owned(), probed));
        }
        ports.sort();
        let to = to.and_then(|to| to.rsplit_once(':'));
        let to = to.and_then(|(host, port)| Some(destination(host, port.parse().ok()?)));
        let files = self.files(context! {
            verb, probed, ports, to,
            args => words,
            has => volumes,
            grace => grace + 15,
        });
        let folder = self.out.display();
        Ok((files, format!("kubectl{} apply --filename {folder}", self.namespace())))
    }
}

/// The one address to which pods connect: the port, and the block of a host without a name.
fn destination(host: &str, port: u16) -> (u16, Option<String>) {
    let ip = host.trim_matches(['[', ']']).parse::<IpAddr>().ok();
    (port, ip.map(|ip| format!("{ip}/{}", if ip.is_ipv4() { 32 } else { 128 })))
}
