//! Placeholder.

use crate::Context;
use model::{Changes, Why};

pub(crate) fn open(_ctx: &Context) -> Result<Box<dyn Changes>, Why> {
    Err(Why::new("not_built", "changes are not in this build"))
}
