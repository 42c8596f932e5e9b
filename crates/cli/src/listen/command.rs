//! What is done when it rings: a command is run, one at a time, or rings are printed.

use std::process::Stdio;

use tokio::io::AsyncWriteExt as _;
use tokio::process::Child;

use super::bell::{Ring, Rings};
use crate::failure::Failure;
use crate::process::{Ask, Group, apart, shell, told};
use crate::session::Session;
use crate::signals::{Stop, Urgency};

/// The variables of a command, for the help.
pub(crate) const VARIABLES: &str = "\
Variables of the command (empty where the ring does not say):
  DOORSTEP_RING_ID       the ring's identity, the same over all attempts to bring it
  DOORSTEP_RING_TYPE     todo.ready; inbox.updated for callbacks; hook.test
  DOORSTEP_RING_REASON   created, requeued or backlog
  DOORSTEP_RING_QUEUE    the queue in which something is claimable
  DOORSTEP_RING_EVENT    the item's event";

/// Acts on rings until enough were there, or stopping is asked for.
pub(super) async fn work(
    mut rings: Rings,
    command: Option<&str>,
    limit: Option<u64>,
    session: &Session,
    mut stop: Stop,
) -> Result<(), Failure> {
    let mut heard = 0_u64;
    while limit.is_none_or(|limit| heard < limit) {
        let rung = tokio::select! {
            biased;
            () = stop.asked(Urgency::Soon) => return Ok(()),
            rung = rings.take() => rung,
        };
        heard += rung.len() as u64;
        match command {
            None => rung.iter().try_for_each(|ring| session.record(&ring.text))?,
            // One run finds all that waits: the last ring stands for those before it.
            Some(command) => {
                if let Some(ring) = rung.last()
                    && let Some(failed) = run(command, ring, &mut stop).await?
                {
                    session.note(&format!("the command {failed}"));
                }
            }
        }
    }
    Ok(())
}

/// Runs the command to its end; how it failed, if it did.
async fn run(command: &str, ring: &Ring, stop: &mut Stop) -> Result<Option<String>, Failure> {
    let mut child = spawn(command, ring).map_err(|error| Failure::io(format!("`{command}` cannot be started"), &error))?;
    let input = child.stdin.take();
    let feed = async {
        if let Some(mut input) = input {
            // A command that does not read its input has nothing to answer for.
            let _ = input.write_all(ring.text.as_bytes()).await;
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
            return Err(Failure::Failed("the command was killed".to_owned()));
        }
    };
    let status = status.map_err(|error| Failure::io(format!("`{command}` cannot be waited for"), &error))?;
    Ok((!status.success()).then(|| told(status)))
}

fn spawn(command: &str, ring: &Ring) -> std::io::Result<Child> {
    let event = match ring.member("todo_id") {
        "" => ring.member("event_id"),
        event => event,
    };
    let kind = match ring.member("type") {
        "" => ring.member("signal_type"),
        kind => kind,
    };
    let mut shell = shell(command);
    shell
        .env("DOORSTEP_RING_ID", &ring.id)
        .env("DOORSTEP_RING_TYPE", kind)
        .env("DOORSTEP_RING_REASON", ring.member("reason"))
        .env("DOORSTEP_RING_QUEUE", ring.member("queue"))
        .env("DOORSTEP_RING_EVENT", event)
        .stdin(Stdio::piped())
        .kill_on_drop(true);
    // A signal from the terminal is for this process, which lets the command finish.
    apart(&mut shell);
    shell.spawn()
}
