//! Comma-separated values.
