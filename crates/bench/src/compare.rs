//! What got faster or slower between two files of results.
