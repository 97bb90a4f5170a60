//! The configuration file.

use crate::config::Config;

/// What is accepted says the same when written and read again; what is refused says where and why.
pub fn check(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else {
        return;
    };
    match Config::parse(text) {
        Ok(config) => {
            let written = toml::to_string(&config).expect("a configuration can be written");
            assert_eq!(Config::parse(&written), Ok(config), "{written}");
        }
        Err(problems) => {
            let lines = text.matches('\n').count() + 1;
            assert!(!problems.trim().is_empty());
            for problem in problems
                .lines()
                .filter_map(|problem| problem.strip_prefix("  line "))
            {
                let (line, what) = problem
                    .split_once(": ")
                    .expect("a line and what is wrong with it");
                assert!(!what.is_empty());
                let line: usize = line.parse().expect("a line has a number");
                assert!((1..=lines).contains(&line), "line {line} of {lines}");
            }
        }
    }
}
