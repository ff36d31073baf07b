//! The failures of the harness, in the form of `volery`: one line `error: ..`, one line `hint: ..`,
//! an exit status.

pub(crate) use volery_cli::exit::{Failure, Status, usage_error};

use crate::Error;

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::Channel(error) => error.into(),
            Error::NoPort(_) => Self::new(Status::Network, error).with_hint(
                "the loopback interface must be up and have a free port: run 'ip link set lo up', or \
                 end programs that hold many connections",
            ),
            Error::Run { key, error } => {
                let other = !matches!(*error, Error::NoPort(_));
                let mut failure = Self::from(*error).within(key);
                if other {
                    failure = failure.with_hint(
                        "earlier measurements are kept; leave this experiment out by naming \
                         the others, or raise --timeout",
                    );
                }
                failure
            }
            Error::NotResults { .. } => Self::new(Status::Other, error)
                .with_hint("choose another file or folder, or remove this one"),
            Error::Different { .. } => Self::new(Status::Usage, error)
                .with_hint("use the settings of the existing results, or choose another folder"),
            error => Self::new(Status::Other, error),
        }
    }
}

impl crate::parties::Failed for Failure {
    fn is_network(&self) -> bool {
        self.is_network()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_fails_has_the_status_of_its_error() {
        let run = |error| {
            let key = Box::new(crate::measurement::Key {
                protocol: "cot".to_owned(),
                n: 7,
                link: crate::Link::Loopback,
                threads: 1,
            });
            let error = Box::new(error);
            Failure::from(Error::Run { key, error })
        };
        let failure = run(volery_channel::Error::Disconnected.into());
        assert_eq!(failure.status(), Status::Network);
        let text = failure.to_string();
        assert!(text.starts_with("error: cot, n = 7, loopback, 1 thread a party: "));
        assert!(text.contains("hint: earlier measurements are kept"));
        let failure = run(Error::protocol("a wrong\n\u{1b}[2Jsum"));
        assert_eq!(failure.status(), Status::Other);
        assert!(failure.to_string().contains("a wrong \\u{1b}[2Jsum"));
        let no_port = run(Error::NoPort(volery_channel::Error::Disconnected));
        assert!(no_port.to_string().contains("hint: the loopback"));
    }
}
