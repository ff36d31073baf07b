//! The size of a cuckoo table.

/// Bins of a table for `items` items that fails with probability at most 2^-`eta`.
#[must_use]
pub fn bins_for(items: usize, eta: u32) -> usize {
    if items <= 3 {
        return 3;
    }
    let n = items as f64;
    let eta = f64::from(eta);
    let e = (eta + n.log2() + 256.0) / 240.0;
    ((e * n).ceil() as usize).max(if items < 512 { 2 * items } else { 3 })
}
