//! Answers of ethtool netlink for the fuzz targets.

use super::answer::{Fact, Facts};
use super::genl::Question;

/// How many questions there are.
pub const QUESTIONS: usize = 4;

/// What the answer to the question of this number tells, by column.
pub fn facts(question: usize, payload: &[u8]) -> impl Iterator<Item = (&'static str, u64)> {
    let questions: [Question; QUESTIONS] = [
        Question::LinkModes,
        Question::LinkState,
        Question::Pause,
        Question::Fec,
    ];
    let mut facts = Facts::default();
    facts.learn(questions[question], payload);
    Fact::ALL
        .into_iter()
        .filter_map(move |fact| Some((fact.as_str(), facts.get(fact)?)))
}
