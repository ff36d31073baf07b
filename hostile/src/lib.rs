//! Every protocol of the library, to be run against peers that cheat, stall and go away.

#![forbid(unsafe_code)]
