//! Short texts and secrets.

use protocol::{DisplayName, Label, QueueName, Secret, Summary};

#[test]
fn labels_are_short_lines() {
    assert!(Label::parse("meeting room ü".to_owned()).is_ok());
    assert!(Label::parse("ü".repeat(256)).is_ok());
    for bad in [String::new(), "a\nb".to_owned(), "a\0".to_owned(), "ü".repeat(257)] {
        assert!(Label::parse(bad.clone()).is_err(), "{bad:?}");
    }
    assert!(DisplayName::parse("x".repeat(200)).is_ok());
    assert!(DisplayName::parse("x".repeat(201)).is_err());
}

#[test]
fn queue_names_follow_their_pattern() {
    for good in ["inbox", "0", "a-b_c", &"x".repeat(64)] {
        assert!(QueueName::parse((*good).to_owned()).is_ok(), "{good}");
    }
    for bad in ["", "-a", "A", "a.b", "ä", &"x".repeat(65)] {
        assert!(QueueName::parse((*bad).to_owned()).is_err(), "{bad}");
    }
}

#[test]
fn a_summary_is_one_line_that_informs() {
    let line = |text: &str| Summary::parse(text).map(|summary| summary.as_str().to_owned());
    assert_eq!(line("  one\r\n\ttwo\u{0}three\u{2028}four ").as_deref(), Ok("one two three four"));
    assert_eq!(line("pay \u{202E}gnihton\u{202C} now").as_deref(), Ok("pay gnihton now"));
    assert_eq!(line(&"ü".repeat(200)).map(|line| line.chars().count()), Ok(200));
    for bad in ["", " \n\u{7f} ", &"x".repeat(201)] {
        assert!(line(bad).is_err(), "{bad:?}");
    }
}

#[test]
fn a_secret_is_not_shown_by_debugging() {
    let secret = Secret::new("dsp_agent_abc".to_owned());
    assert!(!format!("{secret:?}").contains("abc"));
    assert_eq!(secret.expose(), "dsp_agent_abc");
    assert_eq!(serde_json::to_string(&secret).unwrap(), r#""dsp_agent_abc""#);
}
