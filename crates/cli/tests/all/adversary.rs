//! The program against malicious peers, bad networks and failing systems, and the secrecy of its
//! data.

mod faults;
mod peer;
mod psi_peer;
mod secrets;
