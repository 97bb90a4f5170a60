//! Placeholder.

use crate::Context;
use model::{Opened, Port, Why};

pub(crate) fn open(_ctx: &Context, _port: &Port) -> Opened {
    Opened::NotApplicable(Why::new("not_built", "this source is not in this build"))
}
