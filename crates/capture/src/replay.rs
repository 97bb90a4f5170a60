//! A host that says what a capture holds.

use crate::{Answer, Place, Reading, Recording};
use model::{ABSENT, Changes, Host, Opened, Port, Read, Schema, Setup, Source, SourceKind, Why};
use std::sync::Arc;
use std::time::Duration;

type Clock = Arc<dyn Fn() -> u64 + Send + Sync>;

/// The readings of a capture before a host that knows its files.
///
/// A counter that was read twice goes on at the pace that it then had: rates are those of the machine, and at the time
/// of the second reading the value is the recorded one. All else keeps its first value until then, and its second from
/// then on.
pub struct Replay<H> {
    files: H,
    recording: Recording,
    every_statistic: bool,
    clock: Clock,
}

impl<H: Host> Replay<H> {
    /// Plays `recording`, whose files `files` reads. `clock` gives monotonic nanoseconds. Without `every_statistic` only
    /// those of a driver's statistics get a column that the catalogue knows.
    pub fn new(
        files: H,
        recording: Recording,
        every_statistic: bool,
        clock: impl Fn() -> u64 + Send + Sync + 'static,
    ) -> Self {
        Self {
            files,
            recording,
            every_statistic,
            clock: Arc::new(clock),
        }
    }

    fn readings(&self, port: &Port, source: SourceKind) -> Option<&[Reading]> {
        let place = Place::of(port, source)?;
        self.recording.readings.get(&place).map(Vec::as_slice)
    }

    fn is_wanted(&self, port: &Port, source: SourceKind, name: &str) -> bool {
        self.every_statistic
            || source != SourceKind::Ethtool
            || catalog::meaning(&port.driver, source, name).is_some()
    }

    fn play(&self, port: &Port, source: SourceKind, readings: &[Reading]) -> Opened {
        let frames: Vec<Frame> = readings
            .iter()
            .map(|reading| self.frame(port, source, reading))
            .collect();
        let player = |schema: &Arc<Schema>| Player {
            schema: Arc::clone(schema),
            frames: frames.clone(),
            began: None,
            clock: Arc::clone(&self.clock),
        };
        match frames.first().map(|frame| &frame.content) {
            Some(Content::Row(schema, _)) if schema.columns.is_empty() => Opened::NotApplicable(Why::new(
                "not_in_catalogue",
                format!(
                    "the catalogue knows none of the counters of {} (driver {})",
                    port.device, port.driver
                ),
            )),
            Some(Content::Row(schema, _)) => Opened::Active(Box::new(player(schema))),
            Some(Content::Error(Answer::NotApplicable(why))) => Opened::NotApplicable(why.clone()),
            Some(Content::Error(Answer::Error(why))) => Opened::Failed(why.clone()),
            Some(Content::Error(Answer::Row(_))) | None => {
                Opened::Failed(Why::new("no_reading", "the capture holds no reading"))
            }
        }
    }

    fn frame(&self, port: &Port, source: SourceKind, reading: &Reading) -> Frame {
        let content = match &reading.answer {
            Answer::Row(row) => {
                let mut seen = std::collections::HashSet::new();
                let wanted = row
                    .iter()
                    .filter(|(name, _)| self.is_wanted(port, source, name) && seen.insert(name.as_str()));
                let (names, values): (Vec<&str>, Vec<u64>) =
                    wanted.map(|(name, value)| (name.as_str(), *value)).unzip();
                let schema = Schema::new(port.id.clone(), &port.driver, source, names);
                Content::Row(Arc::new(schema), values)
            }
            error => Content::Error(error.clone()),
        };
        let after = reading.after.unwrap_or(Duration::ZERO);
        Frame {
            after: u64::try_from(after.as_nanos()).unwrap_or(u64::MAX),
            content,
        }
    }
}

impl<H: Host> Host for Replay<H> {
    fn ports(&self) -> Result<Vec<Port>, String> {
        self.files.ports()
    }

    fn ports_but(&self, excluded: &dyn Fn(&str) -> bool) -> Result<Vec<Port>, String> {
        self.files.ports_but(excluded)
    }

    fn open(&self, port: &Port, source: SourceKind) -> Opened {
        match self.readings(port, source) {
            // A port that is not read on the machine is not read here either.
            Some(readings) if port.link_layer.is_read() => self.play(port, source, readings),
            _ => self.files.open(port, source),
        }
    }

    fn setup(&self, ports: &[Port]) -> Setup {
        self.files.setup(ports)
    }

    fn changes(&self) -> Result<Box<dyn Changes>, Why> {
        Err(Why::new("capture", "a capture does not change"))
    }
}

#[derive(Clone)]
struct Frame {
    /// Nanoseconds since the first.
    after: u64,
    content: Content,
}

#[derive(Clone)]
enum Content {
    Row(Arc<Schema>, Vec<u64>),
    Error(Answer),
}

struct Player {
    schema: Arc<Schema>,
    frames: Vec<Frame>,
    began: Option<u64>,
    clock: Clock,
}

impl Player {
    /// The last frame whose time has come.
    fn at(&self, elapsed: u64) -> usize {
        self.frames
            .iter()
            .rposition(|frame| frame.after <= elapsed)
            .unwrap_or(0)
    }

    /// The two frames of one schema between which, or after which, `at` lies.
    fn pace(&self, at: usize) -> Option<(&Frame, &[u64], &Frame, &[u64])> {
        let first = if at + 1 < self.frames.len() {
            at
        } else {
            at.checked_sub(1)?
        };
        let (a, b) = (&self.frames[first], &self.frames[first + 1]);
        match (&a.content, &b.content) {
            (Content::Row(schema, earlier), Content::Row(other, later))
                if a.after < b.after && have_the_same_names(schema, other) =>
            {
                Some((a, earlier, b, later))
            }
            _ => None,
        }
    }
}

impl Source for Player {
    fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    fn read(&mut self, row: &mut [u64]) -> Read {
        let now = (self.clock)();
        let elapsed = now - *self.began.get_or_insert(now);
        let at = self.at(elapsed);
        let (schema, values) = match &self.frames[at].content {
            Content::Row(schema, values) => (schema, values),
            Content::Error(Answer::Error(why) | Answer::NotApplicable(why)) => {
                return Read::Missing(why.clone());
            }
            Content::Error(Answer::Row(_)) => return Read::SchemaChanged,
        };
        if !have_the_same_names(schema, &self.schema) {
            self.schema = Arc::clone(schema);
            return Read::SchemaChanged;
        }
        row.copy_from_slice(values);
        if let Some((a, earlier, b, later)) = self.pace(at) {
            let span = b.after - a.after;
            let part = elapsed - a.after;
            for (at, cell) in row.iter_mut().enumerate() {
                if self.schema.columns[at].counts {
                    *cell = on(earlier[at], later[at], part, span).unwrap_or(*cell);
                }
            }
        }
        Read::Row
    }
}

/// Where a counter is that went from `earlier` to `later` in `span`, after `part`; `None` if it did not simply grow.
fn on(earlier: u64, later: u64, part: u64, span: u64) -> Option<u64> {
    if earlier == ABSENT || later == ABSENT {
        return None;
    }
    let grew = later.checked_sub(earlier)?;
    let more = u128::from(grew) * u128::from(part) / u128::from(span);
    u64::try_from(u128::from(earlier) + more).ok()
}

fn have_the_same_names(a: &Schema, b: &Schema) -> bool {
    a.columns
        .iter()
        .map(|column| &column.name)
        .eq(b.columns.iter().map(|column| &column.name))
}
