//! `doorstep watch`: prints the rings of the agent's inbox.

use std::time::Duration;

use clap::Args;
use client::{Ring, Seq, SignalOptions};
use protocol::Label;
use tokio::sync::watch;

use crate::arguments::seq;
use crate::duration;
use crate::failure::Failure;
use crate::session::Session;
use crate::signals::{Stop, Urgency, forward};

/// What `doorstep watch` takes.
#[derive(Clone, Debug, Args)]
pub struct WatchArguments {
    /// The head that is known already: what lies above it rings at once.
    #[arg(long, value_name = "SEQ", value_parser = seq)]
    after: Option<Seq>,
    /// End after this many rings.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,
    /// End when nothing has rung for this long.
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    idle_timeout: Option<Duration>,
}

/// Watches.
pub(crate) async fn run(arguments: WatchArguments, session: &Session) -> Result<(), Failure> {
    let client = session.client()?;
    let (sender, _) = watch::channel(Urgency::No);
    let mut stop = Stop::asked_by(&sender);
    let device = Label::parse(format!("doorstep watch, process {}", std::process::id())).ok();
    let mut signals = client.signals(SignalOptions { last_seen: arguments.after, device, ..SignalOptions::default() });
    let watching = async {
        let (mut rung, mut lost) = (0, false);
        while arguments.limit.is_none_or(|limit| rung < limit) {
            let next = tokio::select! {
                biased;
                () = stop.asked(Urgency::Soon) => return Ok(()),
                next = ring(&mut signals, session, &mut lost) => next?,
                () = idle(arguments.idle_timeout) => return Ok(()),
            };
            session.record(&next)?;
            rung += 1;
        }
        Ok(())
    };
    tokio::select! {
        biased;
        result = watching => result,
        () = forward(&sender) => Ok(()),
    }
}

/// The next ring as JSON. Says once when the stream is lost and once when it is back.
async fn ring(signals: &mut client::Signals, session: &Session, lost: &mut bool) -> Result<String, Failure> {
    loop {
        match signals.next().await? {
            Ring::Signal { raw, .. } => return Ok(raw.replace('\n', " ")),
            Ring::Waiting { cause, .. } if !*lost => {
                *lost = true;
                session.note(&format!("not connected: {cause}; trying again"));
            }
            Ring::Connected if *lost => {
                *lost = false;
                session.note("connected again");
            }
            _ => {}
        }
    }
}

async fn idle(timeout: Option<Duration>) {
    match timeout {
        Some(timeout) => tokio::time::sleep(timeout).await,
        None => std::future::pending().await,
    }
}
