//! The options for browsers, which come over WebSocket.

use std::fs;
use std::path::{Path, PathBuf};

use volery_channel::web::{Admission, Certificate, Files, Origin, Settings};
use volery_options::parse;

use crate::endpoint::{self, Address, host_port};
use crate::failure::{Failure, Result, Status};
use crate::identity::read_private;
use crate::reporter::Reporter;

/// Longest file with certificates, in bytes.
const BOUND: u64 = 1 << 20;

volery_options::options! {
    /// The options of a place for browsers.
    pub struct WebOptions {
        /// Wait for browsers at this address, for WebSocket connections; unless it is a loopback
        /// address, it requires --web-certificate
        once web: String ["Browsers", "HOST:PORT", parse::string];

        /// Let pages of this origin connect, such as https://match.example.org, which is of another
        /// machine and requires tokens; named once for each. Those of --web-files may connect where
        /// the address is localhost, 127.0.0.1 or has TLS
        many web_origin: Origin ["Browsers", "ORIGIN", parse::text];

        /// Serve the files in this folder, for everyone to read: the page, such as examples/web
        once web_files: PathBuf ["Browsers", "DIR", parse::path];

        /// The certificate for this host name in PEM, of an authority that browsers know, with
        /// those of the authorities between
        once web_certificate: PathBuf ["Browsers", "FILE", parse::path];

        /// The private key of --web-certificate in PEM, which only its owner can read
        once web_key: PathBuf ["Browsers", "FILE", parse::path];
    }
}

impl WebOptions {
    /// The address for browsers, checked.
    pub fn place(&self) -> Result<Option<&str>> {
        let Some(address) = self.web.as_deref() else {
            return Ok(None);
        };
        host_port("--web", address)?;
        if self.web_certificate.is_none() {
            Address::Listen(address.to_owned()).check_loopback_as(
                "--web",
                "--web-certificate and --web-key",
                "browsers take only certificates of an authority that they know; or listen on 127.0.0.1 behind a reverse proxy: docs/serve.md",
            )?;
        }
        Ok(Some(address))
    }

    /// Whether browsers of other machines come: to this address, or to a proxy before it, whose
    /// pages have an origin that is not of this machine.
    pub fn is_public(&self) -> bool {
        // mutant(web-proxied, 120 s): `self.web_origin.iter().any(|one| !one.is_local())` =>
        //     `false`
        self.web_certificate.is_some() || self.web_origin.iter().any(|one| !one.is_local())
    }

    /// Reads what the options name. With `group` the group of the key's file can read it.
    pub fn settings(&self, admits: Admission, group: bool) -> Result<Settings> {
        let certificate = match (&self.web_certificate, &self.web_key) {
            (Some(chain), Some(key)) => Some(certificate(chain, key, group)?),
            _ => None,
        };
        let files = self.web_files.as_deref().map(|folder| {
            Files::new(folder).map_err(|error| {
                Failure::usage("--web-files", format_args!("{}: {error}", folder.display()))
            })
        });
        Ok(Settings {
            certificate,
            origins: self.web_origin.clone(),
            files: files.transpose()?,
            admits,
        })
    }

    /// Says where browsers come in, at each of these addresses.
    pub fn announce(&self, addresses: &str, reporter: &Reporter) {
        let s = if self.web_certificate.is_some() { "s" } else { "" };
        for address in addresses.split(", ") {
            reporter.announce(format_args!("browsers connect to ws{s}://{address}"));
            if self.web_files.is_some() {
                reporter.announce(format_args!("the page is at http{s}://{address}/"));
            }
        }
    }
}

/// The failure of a local address that cannot be used.
pub fn unusable(address: &str, error: volery_channel::Error) -> Failure {
    endpoint::unusable("--web", address, error)
}

fn certificate(chain_path: &Path, key_path: &Path, group: bool) -> Result<Certificate> {
    let wrong = |option: &str, path: &Path, what: &dyn std::fmt::Display| {
        let message = format_args!("{option}: {}: {what}", path.display());
        Failure::new(Status::Other, message)
    };
    let of_chain = |what: &dyn std::fmt::Display| wrong("--web-certificate", chain_path, what);
    let size = chain_path.metadata().map_err(|error| of_chain(&error))?;
    if size.len() > BOUND {
        return Err(of_chain(&"the file is too long"));
    }
    let chain = fs::read(chain_path).map_err(|error| of_chain(&error))?;
    let key = read_private(key_path, group).map_err(|error| {
        wrong("--web-key", key_path, &error).with_hint(format_args!(
            "chmod 600 {}; its group may read it with --allow-group-readable-identity",
            key_path.display()
        ))
    })?;
    Certificate::from_pem(&chain, key.as_bytes()).map_err(|error| match error {
        volery_channel::Error::Identity(why) => of_chain(&why)
            .with_hint("both are PEM, as an ACME client writes fullchain.pem and privkey.pem"),
        error => error.into(),
    })
}
