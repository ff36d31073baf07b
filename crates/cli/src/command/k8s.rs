//! `volery k8s`: the manifests with which Kubernetes runs the workers of a side.

use std::fs;
use std::path::PathBuf;

use clap::{Args as _, FromArgMatches as _};
use serde_json::{Value, json};
use volery_channel::Role;
use volery_run::cluster::ClusterOptions;
use volery_run::failure::Failure;
use volery_run::matching::arguments::MatchingArguments;
use volery_run::reporter::Reporter;

use super::run_local;
use crate::exit::wrong_words;

/// The user of the image.
const USER: u32 = 65532;

/// Exit statuses that must not be tried again: wrong options, a peer that broke the protocol,
/// settings that differ.
const FINAL: [u8; 3] = [2, 3, 5];

/// How often Kubernetes starts a worker again.
const RETRIES: u32 = 3;

/// Write the manifests of Kubernetes for a side of a run with workers
///
/// Three kinds of jobs, to be applied one after the other: one pod reads the table, meets the peer
/// and divides the keys into shards; an indexed job with a pod for each worker and key matches
/// them; one pod writes the result. The first and the last pod have the whole work folder, a claim
/// with access mode ReadWriteMany; a worker has the folder with its own shards and certificate. The
/// peer may run anything else.
#[derive(Clone, Debug, clap::Args)]
#[command(override_usage = "volery k8s --image <IMAGE> --out <DIR> .. -- <psi|lookup> ..")]
pub(crate) struct Arguments {
    /// The image with the program
    #[arg(long, value_name = "IMAGE")]
    image: String,

    /// The persistent volume claim of the work folder, which all pods can write to
    #[arg(long, value_name = "NAME")]
    work_claim: String,

    /// The secret with the files of 'volery keygen'
    #[arg(long, value_name = "NAME")]
    identity_secret: String,

    /// The persistent volume claim with the table, mounted at /data
    #[arg(long, value_name = "NAME")]
    data_claim: Option<String>,

    /// Memory of a pod of a worker
    #[arg(long, value_name = "QUANTITY", default_value = "512Mi")]
    memory: String,

    /// Processors of a pod of a worker
    #[arg(long, value_name = "QUANTITY", default_value = "1")]
    cpu: String,

    /// Output folder, made where it does not exist
    #[arg(long, value_name = "DIR")]
    out: PathBuf,

    /// The words of 'volery run-local' for this side, without --identity and --resume, which are
    /// mounted; /work is the work folder
    #[arg(last = true, required = true, value_name = "psi|lookup ..")]
    words: Vec<String>,
}

/// Runs the subcommand.
///
/// # Errors
/// If the words are wrong, or a file cannot be written.
pub(crate) fn run(arguments: &Arguments, reporter: &Reporter) -> Result<(), Failure> {
    let fixed = ["--identity=/identity", "--allow-group-readable-identity"].map(str::to_owned);
    let parser = run_local::Arguments::augment_args(clap::Command::new("run-local"));
    let work = "--resume=/work".to_owned();
    let mut words = arguments.words.clone();
    words.extend(fixed);
    let with_work = words.iter().cloned().chain([work]);
    let matches = parser.no_binary_name(true).try_get_matches_from(with_work).map_err(|error| {
        wrong_words(&error, "the words after -- are those of 'volery run-local'")
    })?;
    let parsed = run_local::Arguments::from_arg_matches(&matches).map_err(|error| {
        wrong_words(&error, "the words after -- are those of 'volery run-local'")
    })?;
    parsed.check_result()?;
    let (workers, matching) = parsed.parts();
    let cluster = &workers.cluster;
    // It is part of the names of pods, which have 63 characters.
    let run = cluster.run();
    let is_named = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    if run.len() > 40
        || !run.chars().all(|c| is_named(c) || c == '-')
        || ![run.chars().next(), run.chars().last()]
            .into_iter()
            .all(|end| end.is_some_and(is_named))
    {
        let what = "Kubernetes takes 40 lower-case letters, digits and '-' within them";
        return Err(Failure::usage("--run", what));
    }
    words.push(format!("--resume=/work/{}", cluster.run()));
    let render = Render { arguments, cluster, matching };
    let mut files = vec![("1-prepare.json".to_owned(), render.step("prepare", &words))];
    for rule in 0..matching.number_of_rules() as u64 {
        files.push((format!("2-match-{rule}.json"), render.workers(rule)));
    }
    files.push(("3-collect.json".to_owned(), render.step("collect", &words)));
    fs::create_dir_all(&arguments.out).map_err(|error| Failure::file(&arguments.out, error))?;
    for (name, manifest) in files {
        let path = arguments.out.join(&name);
        let text = format!("{manifest:#}\n");
        fs::write(&path, text).map_err(|error| Failure::file(&path, error))?;
        reporter.output(&format!(
            "kubectl apply --filename {0} && kubectl wait --for=condition=complete --timeout=24h --filename {0}\n",
            path.display()
        ))?;
    }
    Ok(())
}

/// Where a container sees a volume.
fn mount(name: &str, path: &str, read_only: bool) -> Value {
    json!({ "name": name, "mountPath": path, "readOnly": read_only })
}

struct Render<'a> {
    arguments: &'a Arguments,
    cluster: &'a ClusterOptions,
    matching: &'a MatchingArguments,
}

impl Render<'_> {
    fn name(&self, step: &str) -> String {
        format!("volery-{}-{step}", self.cluster.run())
    }

    /// A pod that does a step of `run-local`.
    fn step(&self, step: &str, words: &[String]) -> Value {
        let mut call = vec!["run-local".to_owned()];
        call.extend(words.iter().cloned());
        call.push(format!("--step={step}"));
        let spec = json!({
            "backoffLimit": RETRIES,
            "podFailurePolicy": { "rules": [
                { "action": "FailJob", "onExitCodes": { "operator": "In", "values": FINAL } },
            ]},
        });
        let mut mounts = vec![mount("work", "/work", false), mount("identity", "/identity", true)];
        if self.arguments.data_claim.is_some() {
            mounts.push(mount("data", "/data", true));
        }
        self.job(step, &call, spec, &json!({}), mounts)
    }

    /// The pods of the workers for a rule.
    fn workers(&self, rule: u64) -> Value {
        let call = [
            "worker".to_owned(),
            "--manifest=/work/run.json".to_owned(),
            // Kubernetes puts in the number of the pod.
            "--ticket=/work/ticket-$(JOB_COMPLETION_INDEX)".to_owned(),
            "--worker=$(JOB_COMPLETION_INDEX)".to_owned(),
            format!("--role={}", self.matching.role.name()),
            format!("--gateway={}", self.cluster.gateway()),
            format!("--rule={rule}"),
            "--work=/work".to_owned(),
            format!("--wait={}s", self.matching.endpoint.wait.as_secs()),
            format!("--timeout={}s", self.matching.common.timeout.as_secs()),
            format!("--threads={}", self.matching.common.threads.unwrap_or(1)),
            "--log=json".to_owned(),
        ];
        let spec = json!({
            "completionMode": "Indexed",
            "completions": self.cluster.workers,
            // All at the same time: each waits for its peer.
            "parallelism": self.cluster.workers,
            "backoffLimitPerIndex": RETRIES,
            "maxFailedIndexes": 0,
            // Not two pods of one worker at a time.
            "podReplacementPolicy": "Failed",
            "podFailurePolicy": { "rules": [
                { "action": "Ignore", "onPodConditions": [{ "type": "DisruptionTarget", "status": "True" }] },
                { "action": "FailIndex", "onExitCodes": { "operator": "In", "values": FINAL } },
            ]},
        });
        let resources = json!({
            "requests": { "memory": self.arguments.memory, "cpu": self.arguments.cpu },
            "limits": { "memory": self.arguments.memory },
        });
        // A worker sees its own folder of the run, and no secret of the driver.
        let run = self.cluster.run();
        let mut mounts = vec![json!({
            "name": "work",
            "mountPath": "/work",
            "subPathExpr": format!("{run}/worker-$(JOB_COMPLETION_INDEX)"),
        })];
        let rules = self.matching.number_of_rules() as u64;
        if self.matching.role == Role::Receiver && rules > 1 {
            // A row that matched by an earlier key is left out, whichever worker had it.
            mounts.push(json!({
                "name": "work",
                "mountPath": "/work/matched",
                "subPath": format!("{run}/matched"),
                "readOnly": rule + 1 == rules,
            }));
        }
        self.job(&format!("match-{rule}"), &call, spec, &resources, mounts)
    }

    /// A job with a container that has these mounts, and the volumes that they are of.
    fn job(
        &self,
        step: &str,
        words: &[String],
        mut spec: Value,
        resources: &Value,
        mut mounts: Vec<Value>,
    ) -> Value {
        let labels = json!({
            "app.kubernetes.io/name": "volery",
            "app.kubernetes.io/instance": self.cluster.run(),
            "app.kubernetes.io/component": step,
        });
        let claim = |name: &str, claim: &str, read_only: bool| {
            let claim = json!({ "claimName": claim, "readOnly": read_only });
            json!({ "name": name, "persistentVolumeClaim": claim })
        };
        let secret = json!({ "secretName": self.arguments.identity_secret, "defaultMode": 0o440 });
        mounts.push(mount("temporary", "/tmp", false));
        let mut volumes = vec![
            claim("work", &self.arguments.work_claim, false),
            json!({ "name": "temporary", "emptyDir": {} }),
            json!({ "name": "identity", "secret": secret }),
        ];
        let data = self.arguments.data_claim.as_ref();
        volumes.extend(data.map(|data| claim("data", data, true)));
        // Identity and table stay with the drivers: a worker has a certificate and shards of its
        // own.
        volumes.retain(|volume| mounts.iter().any(|mount| mount["name"] == volume["name"]));
        let container = json!({
            "name": "volery",
            "image": self.arguments.image,
            "args": words,
            "env": [{ "name": "TMPDIR", "value": "/tmp" }],
            "resources": resources,
            "volumeMounts": mounts,
            "securityContext": {
                "allowPrivilegeEscalation": false,
                "readOnlyRootFilesystem": true,
                "capabilities": { "drop": ["ALL"] },
            },
        });
        let pod = json!({
            "metadata": { "labels": labels },
            "spec": {
                "restartPolicy": "Never",
                "automountServiceAccountToken": false,
                "enableServiceLinks": false,
                "securityContext": {
                    "runAsNonRoot": true,
                    "runAsUser": USER,
                    "runAsGroup": USER,
                    "fsGroup": USER,
                    // Otherwise each pod may open the files of the work folder to the group.
                    "fsGroupChangePolicy": "OnRootMismatch",
                    "seccompProfile": { "type": "RuntimeDefault" },
                },
                "containers": [container],
                "volumes": volumes,
            },
        });
        spec["template"] = pod;
        json!({
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": { "name": self.name(step), "labels": labels },
            "spec": spec,
        })
    }
}
