//! Baselines that the protocols of volery are compared with.
//!
//! Nothing here is offered to users, and no list of protocols names it. All of it is at most
//! semi-honest. Each run that is measured checks its result in full, and so do the small runs that
//! `papers` tests. The modules:
//!
//! Private set intersection, compared with `volery-psi`. Each protocol finds the common items of
//! two sets of the same size for the receiver, and assumes that a party's items are all different:
//!
//! * [`naive`]: exchanging hashes of the items; **insecure**, the floor under every comparison;
//! * [`kk13`]: random 1-out-of-256 OT of Kolesnikov and Kumaresan, CRYPTO 2013;
//! * [`pssz`]: private set intersection of Pinkas, Schneider, Segev and Zohner, USENIX Security
//!   2015, over `kk13`;
//! * [`hybrid`]: the cheaper of `pssz` and BaRK-OPRF for given sizes.
//!
//! Vector OLE, compared with `volery-pcg`: the baselines of *Distributed Vector-OLE* (CCS 2019),
//! section 8:
//!
//! * [`dpf`]: distributed point functions of Doerner and shelat, CCS 2017, with an index that
//!   neither party knows;
//! * [`whole_domain`]: a multi-point function from known-index point functions over the whole
//!   domain, one per point;
//! * [`dvole`]: vector OLE (Protocol 6) over it, or over `dpf` in every bucket of a cuckoo
//!   arrangement;
//! * [`gilboa`]: vector OLE by multiplication alone.

pub(crate) mod dpf;
pub(crate) mod dvole;
pub(crate) mod gilboa;
pub(crate) mod hybrid;
pub(crate) mod kk13;
mod matching;
pub(crate) mod naive;
pub(crate) mod pssz;
pub(crate) mod whole_domain;
