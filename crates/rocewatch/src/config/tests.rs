use super::*;
use model::SourceKind;

fn problems(text: &str) -> String {
    Config::parse(text).expect_err("this configuration is wrong")
}

#[test]
fn an_empty_file_is_the_default() {
    assert_eq!(Config::parse(""), Ok(Config::default()));
}

/// What packages install as `/etc/rocewatch/rocewatch.toml`.
const PACKAGED: &str = include_str!("../../../../packaging/rocewatch.toml");

/// Names of all keys that hold a value, as in `sampling.ethtool`.
fn keys(table: &toml::Table, path: &str, found: &mut Vec<String>) {
    for (key, value) in table {
        match value {
            toml::Value::Table(inner) => keys(inner, &format!("{path}{key}."), found),
            _ => found.push(format!("{path}{key}")),
        }
    }
}

#[test]
fn the_packaged_file_has_every_key_with_its_default_and_its_meaning() {
    assert_eq!(Config::parse(PACKAGED), Ok(Config::default()));

    let is_key = |line: &str| line.starts_with(|first: char| first.is_ascii_lowercase());
    let spelt_out: Vec<_> = PACKAGED
        .lines()
        .map(|line| line.strip_prefix('#').filter(|rest| is_key(rest)).unwrap_or(line))
        .collect();
    let text = spelt_out.join("\n");
    assert_eq!(Config::parse(&text), Ok(Config::default()));

    let (mut given, mut known) = (Vec::new(), Vec::new());
    keys(&text.parse().unwrap(), "", &mut given);
    keys(&toml::Table::try_from(Config::default()).unwrap(), "", &mut known);
    assert_eq!(given, known, "packaging/rocewatch.toml lists each key once");

    for pair in spelt_out.windows(2).filter(|pair| is_key(pair[1])) {
        // Keys in one block share the words above them.
        let told = pair[0].starts_with("# ") || is_key(pair[0]);
        assert!(told, "no word on {}", pair[1]);
    }
}

#[test]
fn values_are_taken_and_the_rest_stays() {
    let config = Config::parse("listen = \"0.0.0.0:9999\"\n[sampling]\nhw_counters = \"50ms\"\n").unwrap();
    assert_eq!(config.listen, "0.0.0.0:9999".parse().unwrap());
    assert_eq!(config.sampling.hw_counters, Duration::from_millis(50));
    assert_eq!(config.sampling.ethtool, Duration::from_millis(200));
}

#[test]
fn a_source_can_be_switched_on_and_off() {
    let config = Config::parse("[sampling]\nhwmon = \"off\"\nmodule = \"5m\"\nverbs = \"1s\"\n").unwrap();
    let interval = |source| config.sampling.interval(source);
    assert_eq!(interval(SourceKind::Hwmon), None);
    assert_eq!(interval(SourceKind::Module), Some(Duration::from_secs(300)));
    assert_eq!(interval(SourceKind::Verbs), Some(Duration::from_secs(1)));
    let text = toml::to_string(&config).unwrap();
    assert_eq!(Config::parse(&text), Ok(config));
}

#[test]
fn every_unknown_key_is_named_with_its_line_and_the_nearest() {
    let text = problems("lisen = \"127.0.0.1:1\"\n\n[sampling]\nhw_counter = \"1s\"\n[sampeling]\nx = 1\n");
    assert!(
        text.contains("line 1: unknown key `lisen`; did you mean `listen`?"),
        "{text}"
    );
    assert!(
        text.contains("line 4: unknown key `sampling.hw_counter`; did you mean `hw_counters`?"),
        "{text}"
    );
    assert!(
        text.contains("line 5: unknown key `sampeling`; did you mean `sampling`?"),
        "{text}"
    );
}

#[test]
fn a_key_with_a_line_end_is_still_one_line() {
    let text = problems("\"a\\n  b\" = 1\n");
    assert!(
        text.starts_with("  line 1: unknown key `a\\n  b`; known here"),
        "{text}"
    );
    assert_eq!(text.lines().count(), 1);
}

#[test]
fn a_key_like_none_lists_what_there_is() {
    let text = problems("[http]\nzzzzzz = 1\n");
    assert!(
        text.contains("known here are `header_timeout`, `max_connections`, `request_timeout`, `web_config`"),
        "{text}"
    );
}

#[test]
fn a_value_of_the_wrong_kind_names_its_line() {
    let text = problems("\n\nlisten = 7\n");
    assert!(text.contains("line 3:"), "{text}");
    let text = problems("[sampling]\nethtool = \"fast\"\n");
    assert!(
        text.contains("line 2:") && text.contains("\"fast\" is not a duration"),
        "{text}"
    );
}

#[test]
fn a_file_that_is_not_toml_names_its_line() {
    assert!(problems("a = 1\nb = [\n").contains("line 2"));
}

#[test]
fn limits_that_make_no_sense_are_refused() {
    assert!(problems("[sampling]\nrtnl_duty_percent = 0.0\n").contains("sampling.rtnl_duty_percent: 0"));
    assert!(
        problems("[sampling]\nethtool = \"0s\"\n").contains("sampling.ethtool: an interval is at least 1ms")
    );
    assert!(problems("[http]\nmax_connections = 0\n").contains("http.max_connections"));
    assert!(
        problems("[sampling]\nmodule = \"1s\"\n").contains("sampling.module: an interval is at least 10s")
    );
}

#[test]
fn what_would_overflow_the_clock_is_refused() {
    let text = problems("[http]\nheader_timeout = \"18446744073709551615s\"\n");
    assert!(
        text.contains("line 2:") && text.contains("is longer than 30days"),
        "{text}"
    );
    assert!(Config::parse("[sampling]\ndiscovery = \"30days\"\n").is_ok());
    assert!(problems("[sampling]\ndiscovery = \"30days 1ns\"\n").contains("longer than 30days"));
    let text = problems("[sampling]\ndevice_duty_percent = 1e-300\n");
    assert!(text.contains("is not between 0.001 and 100"), "{text}");
}

#[test]
fn the_readme_shows_every_key_with_its_default() {
    let readme = include_str!("../../../../README.md");
    let block = readme
        .split_once("All keys, with their defaults:\n")
        .expect("the README has the block")
        .1;
    let block = block.split_once("\n## ").expect("a heading follows").0;
    assert_eq!(Config::parse(block), Ok(Config::default()));
    let keys = |table: &toml::Table| {
        let nested = table
            .values()
            .filter_map(toml::Value::as_table)
            .map(toml::Table::len)
            .sum::<usize>();
        table.len() + nested
    };
    let shown: toml::Table = block.parse().expect("it is TOML");
    let all = toml::Table::try_from(Config::default()).expect("the configuration is a table");
    assert_eq!(keys(&shown), keys(&all), "a key is missing in the README");
}

#[test]
fn a_profile_decides_what_is_shown_and_raw_has_the_last_word() {
    let metrics = |text: &str| Config::parse(&format!("[metrics]\n{text}\n")).unwrap().metrics;
    let raw = |text: &str| {
        let metrics = metrics(text);
        [Some(true), Some(false), None].map(|otherwise| metrics.shows_raw(otherwise))
    };
    assert_eq!(raw("profile = \"minimal\""), [false, false, false]);
    assert_eq!(raw(""), [false, true, false]);
    assert_eq!(raw("profile = \"full\""), [true, true, true]);
    assert_eq!(raw("profile = \"full\"\nraw = \"none\""), [false, false, false]);
    assert_eq!(raw("profile = \"minimal\"\nraw = \"all\""), [true, true, true]);

    let shows =
        |text: &str, name: &str| metrics(text).shows(catalog::family(name).expect("the family is there"));
    for (profile, essential, other) in [
        ("minimal", true, false),
        ("standard", true, true),
        ("full", true, true),
    ] {
        let text = format!("profile = \"{profile}\"");
        assert_eq!(shows(&text, "event_active"), essential, "{profile}");
        assert_eq!(shows(&text, "priority_bytes"), other, "{profile}");
    }
}

#[test]
fn devices_are_chosen_by_any_of_their_names() {
    let config =
        Config::parse("[devices]\ninclude = [\"mlx5_*\"]\nexclude = [\"0000:1a:*\", \"eth7\"]\n").unwrap();
    let names = ["mlx5_0", "eth0", "0000:19:00.0"];
    assert!(config.devices.watches(&names));
    assert!(!config.devices.watches(&["mlx5_0", "eth0", "0000:1a:00.0"]));
    assert!(!config.devices.watches(&["mlx5_7", "eth7", "0000:20:00.0"]));
    assert!(!config.devices.watches(&["bnxt_re0", "eth1", "0000:21:00.0"]));
    assert!(Devices::default().watches(&names));
}
