//! Baselines that the protocols of volery are compared with. Nothing here is offered to users.

#![forbid(unsafe_code)]
