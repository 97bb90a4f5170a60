//! Where NCCL finds its variables: the environment, and what it does not have the files (NCCL user guide).

use std::collections::BTreeMap;

/// What is set, and where.
#[derive(Clone, Debug, Default)]
pub(super) struct Environment {
    variables: BTreeMap<String, (String, String)>,
}

impl Environment {
    /// Adds variables that are found at `place` and nowhere before.
    pub(super) fn add(&mut self, place: &str, variables: impl IntoIterator<Item = (String, String)>) {
        for (name, value) in variables {
            self.variables
                .entry(name)
                .or_insert_with(|| (value, place.to_owned()));
        }
    }

    /// The value of a variable, and where it is set.
    pub(super) fn get(&self, name: &str) -> Option<(&str, &str)> {
        let (value, place) = self.variables.get(name)?;
        Some((value, place))
    }
}

/// The variables of a `nccl.conf`: `NAME=VALUE`, one a line, `#` in front of a remark.
pub(super) fn of_file(text: &str) -> impl Iterator<Item = (String, String)> + '_ {
    let lines = text.lines().map(str::trim).filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| {
        let (name, value) = line.split_once('=')?;
        Some((name.trim().to_owned(), value.trim().to_owned()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_goes_before_the_file() {
        let mut environment = Environment::default();
        let own = [("NCCL_IB_TC".to_owned(), "106".to_owned())];
        environment.add("the environment", own);
        let file = "# of the administrator\nNCCL_IB_TC=0\n NCCL_SOCKET_IFNAME==ens1f0 \nnonsense\n";
        environment.add("/etc/nccl.conf", of_file(file));
        assert_eq!(environment.get("NCCL_IB_TC"), Some(("106", "the environment")));
        assert_eq!(
            environment.get("NCCL_SOCKET_IFNAME"),
            Some(("=ens1f0", "/etc/nccl.conf"))
        );
        assert_eq!(environment.get("nonsense"), None);
    }
}
