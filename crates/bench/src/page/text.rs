//! Tables for the terminal.
