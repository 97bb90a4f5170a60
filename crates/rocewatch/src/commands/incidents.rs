//! `rocewatch events`, `incidents` and `incident`: what has happened, and all there is to say of it.

use super::history;
use super::{print, to_json};
use crate::cli::{Events, Incident, IncidentFile, Incidents};
use crate::event::EventRecord;
use crate::failure::Failure;
use crate::files;
use crate::incident::IncidentRecord;
use crate::past::time;
use crate::report::{Report, page};
use archive::{Archive, Record};
use jiff::tz::TimeZone;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Lists events. `now` is the wall time.
pub(super) fn events(options: &Events, now: i64) -> Result<(), Failure> {
    let zone = TimeZone::system();
    let now = time::zoned(now, &zone);
    let parse = |text: &str| time::parse(text, &now).map_err(Failure::Usage);
    let (from, to) = (parse(&options.since)?, parse(&options.until)?);
    let archive = open(&options.archive)?;
    let (records, damages) = archive
        .records(time::nanoseconds(&from), time::nanoseconds(&to))
        .map_err(|error| unreadable(&error))?;
    for damage in damages {
        tracing::warn!("left out: {damage}");
    }
    let events: Vec<EventRecord> = records
        .iter()
        .filter_map(|record| serde_json::from_slice(&record.body).ok())
        .filter(|event| options.wants(event))
        .collect();
    if options.json {
        return print(&to_json(&events)?);
    }
    print(&table(&events, &zone))
}

impl Events {
    fn wants(&self, event: &EventRecord) -> bool {
        let subject = &event.subject;
        let is = |wanted: &Option<String>, names: &[Option<&str>]| {
            wanted
                .as_deref()
                .is_none_or(|wanted| names.contains(&Some(wanted)))
        };
        let netdev = subject.netdev.as_deref();
        is(&self.port, &[subject.device.as_deref(), netdev]) && is(&self.kind, &[Some(&event.event)])
    }
}

fn table(events: &[EventRecord], zone: &TimeZone) -> String {
    if events.is_empty() {
        return "Nothing happened in this time that is an event.\n".to_owned();
    }
    let mut out = format!(
        "{:<28} {:>10}  {:<9} {:<14} what\n",
        "began", "lasted", "severity", "port"
    );
    for event in events {
        let lasted = match event.ended {
            None => "goes on".to_owned(),
            Some(_) if event.end_not_seen => "not seen".to_owned(),
            Some(ended) => span_of_time(ended.abs_diff(event.began)),
        };
        let detail = event.detail();
        let _ = writeln!(
            out,
            "{:<28} {lasted:>10}  {:<9} {:<14} {} {detail}",
            time::zoned(event.began, zone)
                .strftime("%Y-%m-%d %H:%M:%S%.3f %Z")
                .to_string(),
            event.severity,
            event.subject.name(),
            event.title(),
        );
    }
    out
}

/// A time in two units at most.
fn span_of_time(nanoseconds: u64) -> String {
    let rounded = match nanoseconds {
        0..10_000_000_000 => nanoseconds / 1_000_000 * 1_000_000,
        _ => (nanoseconds + 500_000_000) / 1_000_000_000 * 1_000_000_000,
    };
    humantime::format_duration(Duration::from_nanos(rounded)).to_string()
}

/// Lists incidents.
pub(super) fn list(options: &Incidents) -> Result<(), Failure> {
    let archive = open(&options.archive)?;
    let mut incidents = Vec::new();
    for id in archive.pins() {
        match load(&options.archive, id) {
            Ok((incident, _)) => incidents.push(incident),
            Err(failure) => tracing::warn!("left out: {failure}"),
        }
    }
    incidents.sort_by_key(|incident| incident.began);
    if options.json {
        return print(&to_json(&incidents)?);
    }
    if incidents.is_empty() {
        return print("No incident is kept.\n");
    }
    let zone = TimeZone::system();
    let mut out = format!("{:<28} {:>6}  {:<44} first\n", "began", "events", "id");
    for incident in &incidents {
        let first = incident.events.first();
        let first = first.map(|event| format!("{} on {}", event.title(), event.subject.name()));
        let _ = writeln!(
            out,
            "{:<28} {:>6}  {:<44} {}",
            time::zoned(incident.began, &zone)
                .strftime("%Y-%m-%d %H:%M:%S%.3f %Z")
                .to_string(),
            incident.events.len(),
            incident.id,
            first.unwrap_or_default()
        );
    }
    out.push_str("\n`rocewatch incident show ID` tells all of one; `last` is the newest.\n");
    print(&out)
}

/// Shows or exports one incident.
pub(super) fn one(what: &Incident) -> Result<(), Failure> {
    match what {
        Incident::Show { which, json: as_json } => {
            let (incident, archive) = which.load()?;
            let report = Report::of(incident, &archive);
            if *as_json {
                print(&to_json(&report)?)
            } else {
                print(&page(&report, &TimeZone::system()))
            }
        }
        Incident::Export { which, file } => {
            let path = which.path()?;
            let bytes = files::read(&path).map_err(|error| no_incident(&which.id, &path, &error))?;
            files::create(file, &bytes)
                .map_err(|error| Failure::Runtime(format!("cannot write {}: {error}", file.display())))?;
            print(&format!(
                "{} holds the incident; `rocewatch incident show {0}` reads it on any machine\n",
                file.display()
            ))
        }
    }
}

impl IncidentFile {
    /// Where it is: a file that was exported, or one of the archive's.
    fn path(&self) -> Result<PathBuf, Failure> {
        let exported = Path::new(&self.id);
        if files::is_file(exported) {
            return Ok(exported.to_owned());
        }
        let archive = open(&self.archive)?;
        let pins = archive.pins();
        let id = if self.id == "last" {
            newest(&self.archive, pins)
        } else {
            Some(self.id.clone())
        };
        match id.filter(|id| pins.contains(id)) {
            Some(id) => Ok(Archive::pin_path(&self.archive, &id)),
            None => Err(Failure::Runtime(format!(
                "there is no incident {:?} in {}; `rocewatch incidents` lists those that are kept",
                self.id,
                self.archive.display()
            ))),
        }
    }

    fn load(&self) -> Result<(IncidentRecord, Archive), Failure> {
        let path = self.path()?;
        let archive = Archive::open(&path).map_err(|error| unreadable(&error))?;
        let incident = incident_of(&archive)
            .ok_or_else(|| Failure::Runtime(format!("{} does not hold an incident", path.display())))?;
        Ok((incident, archive))
    }
}

fn newest(folder: &Path, pins: &[String]) -> Option<String> {
    let began = |id: &&String| load(folder, id).map_or(i64::MIN, |(incident, _)| incident.began);
    pins.iter().max_by_key(began).cloned()
}

fn load(folder: &Path, id: &str) -> Result<(IncidentRecord, Archive), Failure> {
    let archive = Archive::open_pin(folder, id).map_err(|error| unreadable(&error))?;
    let incident = incident_of(&archive);
    let incident = incident.ok_or_else(|| Failure::Runtime(format!("the incident {id} cannot be read")))?;
    Ok((incident, archive))
}

/// What the record of a pin says.
fn incident_of(pin: &Archive) -> Option<IncidentRecord> {
    let (records, _) = pin.records(i64::MIN, i64::MAX).ok()?;
    let of = |record: &Record| serde_json::from_slice(&record.body).ok();
    records.iter().find_map(of)
}

fn open(folder: &Path) -> Result<Archive, Failure> {
    history::open(folder)
}

fn unreadable(error: &archive::OpenError) -> Failure {
    Failure::Runtime(format!("cannot read it: {error}"))
}

fn no_incident(id: &str, path: &Path, error: &std::io::Error) -> Failure {
    Failure::Runtime(format!(
        "cannot read the incident {id} in {}: {error}",
        path.display()
    ))
}
