//! Where the peer is, and the connection to it.

use std::net::ToSocketAddrs as _;
use std::time::Duration;

use volery_channel::{Channel, tcp};

use super::options::Voice;
use crate::exit::{Failure, Status};

/// Where the peer is: exactly one of the two.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct EndpointArguments {
    /// Wait for the peer at this address
    #[arg(long, value_name = "HOST:PORT")]
    listen: Option<String>,

    /// Connect to the peer at this address; waits for it to listen until the timeout
    #[arg(long, value_name = "HOST:PORT")]
    connect: Option<String>,
}

/// A checked endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Endpoint {
    /// Wait for the peer.
    Listen(String),
    /// Go to the peer.
    Connect(String),
}

impl EndpointArguments {
    /// The one endpoint that was given.
    pub(crate) fn endpoint(&self) -> Result<Endpoint, Failure> {
        let refuse = |what| {
            Failure::usage("--listen, --connect", what)
                .hint("one side takes --listen HOST:PORT, the other --connect HOST:PORT")
        };
        let endpoint = match (&self.listen, &self.connect) {
            (Some(address), None) => Endpoint::Listen(address.clone()),
            (None, Some(address)) => Endpoint::Connect(address.clone()),
            (None, None) => return Err(refuse("one of them is needed")),
            (Some(_), Some(_)) => return Err(refuse("only one of them can be given")),
        };
        endpoint.check_address()?;
        Ok(endpoint)
    }
}

impl Endpoint {
    /// The flag it was given by.
    pub(crate) fn option(&self) -> &'static str {
        match self {
            Self::Listen(_) => "--listen",
            Self::Connect(_) => "--connect",
        }
    }

    /// The address as given.
    pub(crate) fn address(&self) -> &str {
        match self {
            Self::Listen(address) | Self::Connect(address) => address,
        }
    }

    fn check_address(&self) -> Result<(), Failure> {
        let port = self
            .address()
            .rsplit_once(':')
            .map(|(_, port)| port.parse::<u16>());
        if !matches!(port, Some(Ok(_))) {
            return Err(Failure::usage(
                self.option(),
                format_args!("'{}' is not HOST:PORT", self.address()),
            )
            .hint("for example 127.0.0.1:7000"));
        }
        let mut addresses = self.address().to_socket_addrs().map_err(|error| {
            Failure::usage(self.option(), format_args!("{}: {error}", self.address()))
        })?;
        if let Some(outside) = addresses.find(|address| !address.ip().to_canonical().is_loopback())
        {
            return Err(Failure::usage(
                self.option(),
                format_args!(
                    "{} is not on the loopback interface, and connections that authenticate and encrypt are not there yet",
                    outside.ip()
                ),
            )
            .hint("use 127.0.0.1 or ::1; between two machines, through an SSH tunnel to such a port"));
        }
        Ok(())
    }
}

impl Endpoint {
    /// Makes the connection.
    ///
    /// # Errors
    /// If the address cannot be used, or nobody is there within `timeout`.
    pub(crate) fn open(&self, timeout: Duration, voice: Voice) -> Result<Channel, Failure> {
        match self {
            Self::Connect(address) => {
                voice.explain(format_args!("connecting to {address}"));
                let channel =
                    tcp::connect(&**address, timeout).map_err(|error| self.unusable(error))?;
                voice.explain("connected");
                Ok(channel)
            }
            Self::Listen(address) => {
                let listener =
                    tcp::Listener::bind(&**address).map_err(|error| self.unusable(error))?;
                let here = listener.local_addr()?;
                // With port 0 this line is the only way to learn the port.
                voice.announce(format_args!("listening on {here}"), address.ends_with(":0"));
                let stream = listener.accept(timeout)?;
                voice.explain("connected");
                Ok(Channel::with_timeout(stream, Some(timeout)))
            }
        }
    }

    /// An address of this machine that cannot be used is no fault of the peer or the network.
    fn unusable(&self, error: volery_channel::Error) -> Failure {
        match error {
            volery_channel::Error::Io(error) => Failure::new(
                Status::Other,
                format_args!("{} {}: {error}", self.option(), self.address()),
            ),
            error => error.into(),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use super::*;

    #[test]
    fn exactly_one_endpoint() {
        let endpoint = |listen: Option<&str>, connect: Option<&str>| {
            EndpointArguments {
                listen: listen.map(str::to_owned),
                connect: connect.map(str::to_owned),
            }
            .endpoint()
        };
        assert_eq!(
            endpoint(Some("[::1]:70"), None).unwrap(),
            Endpoint::Listen("[::1]:70".to_owned())
        );
        for (listen, connect, fragment) in [
            (None, None, "one of them is needed"),
            (Some("a:1"), Some("b:1"), "only one"),
            (
                Some("localhost"),
                None,
                "--listen: 'localhost' is not HOST:PORT",
            ),
            (
                None,
                Some("localhost:99999"),
                "--connect: 'localhost:99999' is not HOST:PORT",
            ),
        ] {
            let refused = endpoint(listen, connect).unwrap_err();
            assert_eq!(refused.status(), Status::Usage);
            assert!(refused.to_string().contains(fragment), "{refused}");
        }
    }
}
