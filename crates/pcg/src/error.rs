//! The errors of calls and plans.

pub use crate::plan::{ParseProtocolError, PlanError};
pub use volery_channel::{Error, Result};
pub use volery_lpn::ParseSettingError;
