//! The certificate that browsers accept.

use std::sync::Arc;
use std::time::SystemTime;

use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::NoServerSessionStorage;
use rustls::version::TLS13;

use crate::tls::{Tls, certificate, session};
use crate::{Error, Result, Transport};

/// The certificate of an authority that browsers know, with its private key.
#[derive(Clone, Debug)]
pub struct Certificate {
    config: Arc<ServerConfig>,
    expires: Option<SystemTime>,
}

impl Certificate {
    /// From PEM: the certificate, followed by those of the authorities between it and one that
    /// browsers know; and the private key.
    ///
    /// # Errors
    /// [`Error::Identity`] if one of them is not there or not usable, or they do not belong
    /// together.
    pub fn from_pem(chain: &[u8], key: &[u8]) -> Result<Self> {
        let wrong = |why: &str| Error::Identity(why.to_owned());
        let chain: std::result::Result<Vec<_>, _> = CertificateDer::pem_slice_iter(chain).collect();
        let chain = chain.map_err(|_| wrong("the file of the certificate is not in PEM"))?;
        if chain.is_empty() {
            // no mutant: rustls refuses an empty list, too, with other words
            return Err(wrong("the file of the certificate holds none in PEM"));
        }
        let expires = certificate::end(&chain[0]);
        let key = PrivateKeyDer::from_pem_slice(key)
            .map_err(|_| wrong("the file of the key holds no private key in PEM"))?;
        let provider = Arc::new(aws_lc_rs::default_provider());
        let mut config = ServerConfig::builder_with_details(provider, Arc::new(session::WallClock))
            .with_protocol_versions(&[&TLS13])
            .expect("the provider has TLS 1.3")
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .map_err(|error| wrong(&format!("the certificate and its key: {error}")))?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(Self { config: Arc::new(config), expires })
    }

    /// The end of its validity.
    #[must_use]
    pub fn expires(&self) -> Option<SystemTime> {
        self.expires
    }

    pub(super) fn secure<T: Transport>(
        &self,
        transport: T,
        limit: std::time::Duration,
    ) -> Result<Tls<T>> {
        session::respond_to_browser(transport, &self.config, limit)
    }
}
