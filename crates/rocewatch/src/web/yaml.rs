//! YAML as a tree of nodes that know their lines: as much of it as a configuration needs.
//!
//! Anchors and aliases are refused: nothing in the file needs them, and a few lines of them can stand for gigabytes.

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, Span};

/// A mapping in a list in a mapping …: deeper than any key of the file is.
const DEEPEST: usize = 8;

/// A value and the line that it begins on, counted from 1.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) line: usize,
    pub(super) value: Value,
}

/// What a node is.
#[derive(Debug)]
pub(super) enum Value {
    /// Nothing, `~` or `null`.
    Null,
    Text(String),
    List(Vec<Node>),
    Map(Vec<(Key, Node)>),
}

/// A key of a mapping.
#[derive(Debug)]
pub(super) struct Key {
    pub(super) line: usize,
    pub(super) name: String,
}

/// A mistake, and the line that it is on.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Problem {
    pub(super) line: usize,
    pub(super) what: String,
}

impl Problem {
    pub(super) fn new(line: usize, what: impl Into<String>) -> Self {
        Self {
            line,
            what: what.into(),
        }
    }
}

/// The one document of `text`; an empty text is [`Value::Null`].
pub(super) fn parse(text: &str) -> Result<Node, Problem> {
    let mut events = Events {
        parser: Parser::new_from_str(text),
    };
    let mut document = None;
    loop {
        let (event, line) = events.next()?;
        match event {
            Event::StreamEnd => break,
            Event::StreamStart | Event::DocumentStart(_) | Event::DocumentEnd | Event::Nothing => {}
            _ if document.is_some() => {
                return Err(Problem::new(
                    line,
                    "a second document begins here; the file has one only",
                ));
            }
            event => document = Some(events.node(event, line, 0)?),
        }
    }
    Ok(document.unwrap_or(Node {
        line: 1,
        value: Value::Null,
    }))
}

struct Events<'text> {
    parser: Parser<'text, saphyr_parser::StrInput<'text>>,
}

impl<'text> Events<'text> {
    fn next(&mut self) -> Result<(Event<'text>, usize), Problem> {
        match self.parser.next_event() {
            Some(Ok((event, span))) => Ok((event, line_of(&span))),
            Some(Err(error)) => Err(not_yaml(&error)),
            None => Ok((Event::StreamEnd, 1)),
        }
    }

    fn node(&mut self, event: Event<'text>, line: usize, depth: usize) -> Result<Node, Problem> {
        if depth > DEEPEST {
            return Err(Problem::new(line, "nested deeper than any key of this file is"));
        }
        let value = match event {
            Event::Scalar(_, _, anchor, _)
            | Event::SequenceStart(anchor, _)
            | Event::MappingStart(anchor, _)
                if anchor > 0 =>
            {
                return Err(Problem::new(line, "anchors are not taken; write the value out"));
            }
            Event::Alias(_) => return Err(Problem::new(line, "aliases are not taken; write the value out")),
            Event::Scalar(text, ScalarStyle::Plain, ..) if matches!(&*text, "" | "~" | "null") => Value::Null,
            Event::Scalar(text, ..) => Value::Text(text.into_owned()),
            Event::SequenceStart(..) => self.list(depth)?,
            Event::MappingStart(..) => self.map(depth)?,
            _ => return Err(Problem::new(line, "a value was to stand here")),
        };
        Ok(Node { line, value })
    }

    fn list(&mut self, depth: usize) -> Result<Value, Problem> {
        let mut nodes = Vec::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd, _) => return Ok(Value::List(nodes)),
                (event, line) => nodes.push(self.node(event, line, depth + 1)?),
            }
        }
    }

    fn map(&mut self, depth: usize) -> Result<Value, Problem> {
        let mut pairs: Vec<(Key, Node)> = Vec::new();
        loop {
            let (event, line) = self.next()?;
            let name = match event {
                Event::MappingEnd => return Ok(Value::Map(pairs)),
                Event::Scalar(name, _, 0, _) => name.into_owned(),
                _ => return Err(Problem::new(line, "a key has to be a plain word")),
            };
            if let Some((former, _)) = pairs.iter().find(|(key, _)| key.name == name) {
                let what = format!(
                    "`{}` stands on line {} already; only one of them can hold",
                    name.escape_debug(),
                    former.line
                );
                return Err(Problem::new(line, what));
            }
            let (event, value_line) = self.next()?;
            let value = self.node(event, value_line, depth + 1)?;
            pairs.push((Key { line, name }, value));
        }
    }
}

fn line_of(span: &Span) -> usize {
    span.start.line().max(1)
}

fn not_yaml(error: &ScanError) -> Problem {
    let what = format!("this is not YAML: {}", error.info().escape_debug());
    Problem::new(error.marker().line().max(1), what)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn problem(text: &str) -> (usize, String) {
        let Problem { line, what } = parse(text).expect_err("this is wrong");
        (line, what)
    }

    #[test]
    fn nodes_know_their_lines() {
        let root = parse("# a\na:\n  b: [x, 'null']\nc: ~\n").unwrap();
        let Value::Map(pairs) = root.value else { panic!() };
        assert_eq!((pairs[0].0.name.as_str(), pairs[0].0.line), ("a", 2));
        let Value::Map(inner) = &pairs[0].1.value else {
            panic!()
        };
        assert_eq!((inner[0].0.name.as_str(), inner[0].0.line), ("b", 3));
        let Value::List(items) = &inner[0].1.value else {
            panic!()
        };
        // A quoted null is a text.
        assert!(matches!(&items[1].value, Value::Text(text) if text == "null"));
        assert!(matches!(pairs[1].1.value, Value::Null));
    }

    #[test]
    fn an_empty_file_is_nothing() {
        for text in ["", "# only a comment\n", "---\n"] {
            assert!(matches!(parse(text).unwrap().value, Value::Null), "{text:?}");
        }
    }

    #[test]
    fn what_is_no_plain_tree_is_refused_with_its_line() {
        assert_eq!(problem("a: 1\na: 2\n").0, 2);
        assert!(problem("a: 1\na: 2\n").1.contains("stands on line 1 already"));
        assert_eq!(problem("a: 1\nb: &x 2\n").0, 2);
        assert!(problem("a: *x\n").1.contains("not YAML"));
        assert!(problem("a: 1\n---\nb: 2\n").1.contains("second document"));
        assert!(problem("a: {{x: 1}: 2}\n").1.contains("plain word"));
        assert!(
            problem(&("[".repeat(20) + &"]".repeat(20)))
                .1
                .contains("nested deeper")
        );
        let (line, what) = problem("a: 1\nb: [1\nc: 2\n");
        assert!(line >= 2 && what.contains("not YAML"), "{line} {what}");
    }

    proptest! {
        #[test]
        fn any_text_is_survived_and_a_mistake_is_within_it(text in "[a-c:\\-\\[\\]{}&*!'\"|> \\n#]{0,60}") {
            if let Err(problem) = parse(&text) {
                prop_assert!((1..=text.matches('\n').count() + 2).contains(&problem.line));
            }
        }
    }
}
