//! The command line itself.

use clap::{CommandFactory as _, Parser as _};

use crate::support::Line;

/// Every command that does something, with its path.
fn leaves(command: &clap::Command, path: &str) -> Vec<(String, clap::Command)> {
    let subcommands: Vec<_> = command.get_subcommands().filter(|sub| sub.get_name() != "help").collect();
    if subcommands.is_empty() {
        return vec![(path.to_owned(), command.clone())];
    }
    subcommands.into_iter().flat_map(|sub| leaves(sub, format!("{path} {}", sub.get_name()).trim())).collect()
}

#[test]
fn the_command_line_is_consistent() {
    Line::command().debug_assert();
}

#[test]
fn every_command_has_an_example_that_parses() {
    let leaves = leaves(&Line::command(), "");
    assert!(leaves.len() > 25, "{}", leaves.len());
    for (path, command) in leaves {
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let examples: Vec<_> = help.lines().filter_map(|line| line.strip_prefix("  ")).filter(|line| line.contains("doorstep ")).collect();
        assert!(examples.iter().any(|example| example.contains(&format!("doorstep {path}"))), "{path} has no example");
        for example in examples {
            let arguments = words(example.split(" | ").last().unwrap().split(" > ").next().unwrap());
            assert!(Line::try_parse_from(&arguments).is_ok(), "{path}: {example}: {}", Line::try_parse_from(&arguments).unwrap_err());
        }
    }
}

#[test]
fn every_argument_is_described() {
    for (path, command) in leaves(&Line::command(), "") {
        assert!(command.get_about().is_some(), "{path}");
        for argument in command.get_arguments() {
            assert!(argument.get_help().is_some(), "{path}: {}", argument.get_id());
        }
    }
}

#[test]
fn no_argument_of_a_command_is_mistaken_for_one_that_all_have() {
    let global: Vec<_> =
        Line::command().get_arguments().filter(|argument| argument.is_global_set()).map(|argument| argument.get_id().clone()).collect();
    assert!(global.len() >= 4, "{global:?}");
    for (path, command) in leaves(&Line::command(), "") {
        for argument in command.get_arguments().filter(|argument| !argument.is_global_set()) {
            assert!(!global.contains(argument.get_id()), "{path}: {}", argument.get_id());
        }
    }
}

#[test]
fn values_are_judged_when_they_are_given() {
    for line in [
        "publish --type A",
        "publish --channel s/c",
        "publish f --type a",
        "publish --batch 0",
        "publish --retry-for soon",
        "publish --type a --max-attempts 3",
        "publish --type a --recipient b --max-attempts 0",
        "inbox policy alpha --max-in-flight 0",
        "follow --consumer Work",
        "follow --on-failure retry",
        "follow --limit 0",
        "consumer ack work -1",
        "consumer ack work 9007199254740992",
        "principal create robot r",
        "principal create agent R",
        "principal update a",
        "token create a --scopes all",
        "token revoke a b",
        "grant create a s/c/d read",
        "grant create a s write",
        "channel create support",
        "audit --decision maybe",
        "me --token a --token-file b",
        "events ls --after 1 --last 2",
        "work --timeout 0s -- true",
    ] {
        let arguments = std::iter::once("doorstep").chain(line.split(' '));
        assert!(Line::try_parse_from(arguments).is_err(), "{line}");
    }
}

#[test]
fn a_ceiling_of_nothing_names_what_is_meant_instead() {
    let error = Line::try_parse_from(["doorstep", "inbox", "policy", "alpha", "--max-in-flight", "0"]).unwrap_err().to_string();
    assert!(error.contains("inbox pause") && !error.contains("non-zero"), "{error}");
}

#[test]
fn the_default_address_is_in_the_help() {
    let help = Line::command().render_long_help().to_string();
    assert!(help.contains("http://127.0.0.1:7420"), "{help}");
}

#[test]
fn a_wrong_word_names_the_right_ones() {
    let error = Line::try_parse_from(["doorstep", "grant", "create", "a", "s", "write"]).unwrap_err().to_string();
    for word in ["read", "post", "manage"] {
        assert!(error.contains(word), "{error}");
    }
}

/// The words of a command line with single quotes.
fn words(text: &str) -> Vec<String> {
    let (mut words, mut word, mut quoted) = (Vec::new(), String::new(), false);
    for c in text.chars() {
        match c {
            '\'' => quoted = !quoted,
            ' ' if !quoted => words.extend((!word.is_empty()).then(|| std::mem::take(&mut word))),
            c => word.push(c),
        }
    }
    words.extend((!word.is_empty()).then_some(word));
    words
}
