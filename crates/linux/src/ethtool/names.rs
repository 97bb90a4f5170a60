//! Names of statistics, and which of them get columns.

use super::ioctl::NAME;
use model::SourceKind;
use std::borrow::Cow;
use std::collections::HashSet;

/// Which of a driver's statistics get columns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Columns {
    /// Those that the catalogue knows. Most of the others are by queue: a ConnectX-5 with many has 19,338.
    #[default]
    Known,
    /// Every one.
    All,
}

/// The statistics that get columns: their positions, and their names exactly as the driver has them.
///
/// Of several with one name the first counts, as it does in `ethtool -S | grep -m1`.
pub(super) fn select<'a>(names: &'a [u8], driver: &str, columns: Columns) -> (Box<[u32]>, Vec<Cow<'a, str>>) {
    let mut seen = HashSet::new();
    let known = |name: &str| catalog::meaning(driver, SourceKind::Ethtool, name).is_some();
    let wanted = (0..)
        .zip(names.chunks_exact(NAME).map(text))
        .filter(|(_, name)| columns == Columns::All || known(name))
        .filter(|(_, name)| !name.is_empty() && seen.insert(name.clone()));
    let (positions, names): (Vec<_>, Vec<_>) = wanted.unzip();
    (positions.into(), names)
}

/// A name up to its NUL. A name that fills all 32 bytes has none.
fn text(name: &[u8]) -> Cow<'_, str> {
    let end = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
    String::from_utf8_lossy(&name[..end])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn whatever_the_names_each_column_has_its_own_name_and_place(
            names in proptest::collection::vec(proptest::array::uniform32(0u8..4), 0..50),
        ) {
            let bytes = names.concat();
            let (places, columns) = select(&bytes, "any", Columns::All);
            prop_assert_eq!(places.len(), columns.len());
            for (&place, column) in places.iter().zip(&columns) {
                prop_assert_eq!(text(&names[place as usize]), column.as_ref());
            }
            let different: HashSet<_> = columns.iter().collect();
            prop_assert_eq!(different.len(), columns.len());
            prop_assert!(places.is_sorted());
        }

        #[test]
        fn any_bytes_are_survived(bytes: Vec<u8>) {
            select(&bytes, "mlx5_core", Columns::All);
            select(&bytes, "mlx5_core", Columns::Known);
        }
    }
}
