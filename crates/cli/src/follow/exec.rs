//! Running a command for an event.

use std::process::Stdio;

use client::Delivery;
use tokio::io::AsyncWriteExt as _;
use tokio::process::Child;

use crate::failure::Failure;
use crate::process::{Ask, Group, apart, shell, told};
use crate::signals::{Stop, Urgency};

/// How a command ended.
#[derive(Debug)]
pub(crate) enum Ran {
    /// It succeeded.
    Success,
    /// It ended otherwise; why, for people.
    Failure(String),
    /// It was killed, because stopping was asked for at once.
    Killed,
}

/// Runs `command` in the shell with the event on standard input and its members in the environment.
pub(crate) async fn run(command: &str, delivery: &Delivery, stop: &mut Stop) -> Result<Ran, Failure> {
    let mut child = spawn(command, delivery).map_err(|error| Failure::io(format!("`{command}` cannot be started"), &error))?;
    let input = child.stdin.take();
    let feed = async {
        if let Some(mut input) = input {
            // A command that does not read its input has nothing to answer for: only its exit counts.
            let _ = input.write_all(delivery.raw.get().as_bytes()).await;
            let _ = input.write_all(b"\n").await;
        }
    };
    let ended = async {
        let (status, ()) = tokio::join!(child.wait(), feed);
        status
    };
    let status = tokio::select! {
        status = ended => status,
        () = stop.asked(Urgency::Now) => {
            Group::of(&child).ask(Ask::Firmly);
            let _ = child.kill().await;
            return Ok(Ran::Killed);
        }
    };
    let status = status.map_err(|error| Failure::io(format!("`{command}` cannot be waited for"), &error))?;
    Ok(if status.success() { Ran::Success } else { Ran::Failure(told(status)) })
}

fn spawn(command: &str, delivery: &Delivery) -> std::io::Result<Child> {
    let event = &delivery.event;
    let mut shell = shell(command);
    shell
        .env("DOORSTEP_EVENT_ID", event.id.to_string())
        .env("DOORSTEP_EVENT_SEQ", event.seq.to_string())
        .env("DOORSTEP_EVENT_TYPE", event.event_type.as_str())
        .env("DOORSTEP_EVENT_CHANNEL", event.channel.as_ref().map_or("", |channel| channel.as_str()))
        .env("DOORSTEP_EVENT_REDELIVERED", if event.redelivered { "1" } else { "" })
        .stdin(Stdio::piped())
        .kill_on_drop(true);
    // A signal from the terminal is for this process, which lets the command finish.
    apart(&mut shell);
    shell.spawn()
}
