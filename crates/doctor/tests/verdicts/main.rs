//! Each verdict: the traffic that it is about, and silence on all other traffic.

mod made;
mod made_cases;
mod scenarios;
mod server;

use doctor::{CHECKS, Status};

#[test]
fn every_verdict_has_a_case() {
    let cases = made_cases::all();
    for check in CHECKS.iter().filter(|check| check.status() == Status::Traffic) {
        assert!(
            cases.iter().any(|case| case.checks.contains(&check.id)),
            "{} is never said",
            check.id
        );
    }
}
