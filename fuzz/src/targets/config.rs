//! The configuration file.

use super::http;
use crate::clock::nanos;
use crate::config::Config;
use model::SourceKind;

/// What is accepted says the same when written and read again, and can be run; what is refused says where and why.
pub fn check(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else {
        return;
    };
    match Config::parse(text) {
        Ok(config) => {
            let written = toml::to_string(&config).expect("a configuration can be written");
            can_be_run(&config);
            assert_eq!(Config::parse(&written), Ok(config), "{written}");
        }
        Err(problems) => {
            let lines = text.matches('\n').count() + 1;
            assert!(!problems.is_empty());
            problems.lines().for_each(|problem| check_problem(problem, lines));
        }
    }
}

fn can_be_run(config: &Config) {
    assert!(http::serves(&config.http));
    let sampling = &config.sampling;
    let intervals = SourceKind::ALL.map(|source| sampling.interval(source));
    let others = [
        sampling.discovery,
        sampling.window,
        config.rings.span,
        config.archive.keep,
    ];
    // Of the agent's arithmetic: a freshness of three intervals behind a start years ago, shares of time in the divisor.
    for duration in intervals.into_iter().flatten().chain(others) {
        assert!(nanos(duration).checked_mul(100).is_some(), "{duration:?}");
    }
    for percent in [sampling.device_duty_percent, sampling.rtnl_duty_percent] {
        assert!((1e-3..=1e2).contains(&percent), "{percent}");
    }
}

/// One line each: where, if it is about a line, and what.
pub(super) fn check_problem(problem: &str, lines: usize) {
    let problem = problem
        .strip_prefix("  ")
        .unwrap_or_else(|| panic!("not a line of its own: {problem:?}"));
    let Some(rest) = problem.strip_prefix("line ") else {
        return;
    };
    let (line, what) = rest.split_once(": ").expect("a line and what is wrong with it");
    let line: usize = line.parse().expect("a line has a number");
    assert!((1..=lines).contains(&line) && !what.is_empty(), "{problem}");
}
