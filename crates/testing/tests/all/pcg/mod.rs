//! Correlation streams whose messages are changed in transit.

mod faults;
