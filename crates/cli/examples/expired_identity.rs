//! Makes an expired identity, which `volery keygen` cannot make, to test how it is refused.
//!
//! ```text
//! cargo run --release --example expired_identity -- DIR
//! ```

use std::error::Error;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use volery_channel::tls::Identity;

const DAY: Duration = Duration::from_secs(86_400);

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args().nth(1).ok_or("usage: expired_identity DIR")?;
    let folder = PathBuf::from(folder);
    let now = SystemTime::now();
    let identity = Identity::generate("late", now - 3 * DAY..now - DAY)?;
    fs::create_dir(&folder)?;
    let path = folder.join("identity.pem");
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(identity.to_pem().as_bytes())?;
    Ok(())
}
