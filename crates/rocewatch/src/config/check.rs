//! Finds keys that do not exist, and the line that an error is about.

use super::Config;
use toml::de::{DeTable, DeValue};

/// One line for each unknown key. An error is a text that is no TOML at all.
pub(super) fn unknown_keys(text: &str) -> Result<Vec<String>, String> {
    let table = DeTable::parse(text).map_err(|error| with_line(text, &error))?;
    let known = toml::Table::try_from(Config::default()).map_err(|error| error.to_string())?;
    let mut found = Vec::new();
    compare(text, "", table.get_ref(), &known, &mut found);
    Ok(found)
}

fn compare(text: &str, path: &str, given: &DeTable<'_>, known: &toml::Table, found: &mut Vec<String>) {
    for (key, value) in given {
        let name: &str = key.get_ref();
        match (known.get(name), value.get_ref()) {
            (None, _) => found.push(format!(
                "  line {}: unknown key `{path}{}`; {}",
                line_of(text, key.span().start),
                // A quoted key may hold line ends, and a problem is one line.
                name.escape_debug(),
                suggestion(name, &known.keys().map(String::as_str).collect::<Vec<_>>())
            )),
            (Some(toml::Value::Table(known)), DeValue::Table(given)) => {
                compare(text, &format!("{path}{name}."), given, known, found);
            }
            _ => {}
        }
    }
}

/// The known key that is nearest to one that is not, or all of them.
pub(crate) fn suggestion(name: &str, known: &[&str]) -> String {
    let nearest = known
        .iter()
        .map(|key| (strsim::jaro_winkler(name, key), key))
        .max_by(|a, b| a.0.total_cmp(&b.0));
    match nearest {
        Some((likeness, key)) if likeness > 0.8 => format!("did you mean `{key}`?"),
        _ => {
            let all: Vec<_> = known.iter().map(|key| format!("`{key}`")).collect();
            format!("known here are {}", all.join(", "))
        }
    }
}

/// An error of the TOML reader as `  line N: what`.
pub(super) fn with_line(text: &str, error: &toml::de::Error) -> String {
    let what = error.message().trim();
    match error.span() {
        Some(span) => format!("  line {}: {what}", line_of(text, span.start)),
        None => format!("  {what}"),
    }
}

fn line_of(text: &str, offset: usize) -> usize {
    text.get(..offset).unwrap_or(text).matches('\n').count() + 1
}
