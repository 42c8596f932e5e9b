//! Commands as process groups: what a command starts is stopped with it.

use std::process::ExitStatus;

use tokio::process::{Child, Command};

/// How a group is asked to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ask {
    /// In an orderly way (SIGTERM).
    Politely,
    /// At once (SIGKILL).
    Firmly,
}

/// A child process with what it has started, as far as that has stayed in its process group.
///
/// Windows has no such groups: there it is the child alone, which cannot be asked politely.
#[derive(Debug)]
pub(crate) struct Group {
    #[cfg(unix)]
    leader: Option<rustix::process::Pid>,
}

/// Has the child lead a group of its own: a signal from the terminal is then for this process, which decides what follows.
#[cfg(unix)]
pub(crate) fn apart(command: &mut Command) {
    command.process_group(0);
}

/// There are no groups.
#[cfg(not(unix))]
pub(crate) fn apart(_: &mut Command) {}

#[cfg(unix)]
impl Group {
    /// The group of a child that was made [`apart`].
    pub(crate) fn of(child: &Child) -> Self {
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        Self { leader: id.and_then(rustix::process::Pid::from_raw) }
    }

    /// Asks every process of the group to end. That none is left is as good.
    pub(crate) fn ask(&self, ask: Ask) {
        use rustix::process::{Signal, kill_process_group};

        let signal = match ask {
            Ask::Politely => Signal::TERM,
            Ask::Firmly => Signal::KILL,
        };
        if let Some(leader) = self.leader {
            let _ = kill_process_group(leader, signal);
        }
    }

    /// Whether a process of the group is left.
    pub(crate) fn is_alive(&self) -> bool {
        self.leader.is_some_and(|leader| rustix::process::test_kill_process_group(leader).is_ok())
    }
}

#[cfg(not(unix))]
impl Group {
    pub(crate) fn of(_: &Child) -> Self {
        Self {}
    }

    pub(crate) fn ask(&self, _: Ask) {}

    pub(crate) fn is_alive(&self) -> bool {
        false
    }
}

/// A command line in the shell.
#[cfg(unix)]
pub(crate) fn shell(command: &str) -> Command {
    let mut shell = Command::new("/bin/sh");
    shell.arg("-c").arg(command);
    shell
}

/// A command line in the shell.
#[cfg(not(unix))]
pub(crate) fn shell(command: &str) -> Command {
    let mut shell = Command::new("cmd");
    shell.arg("/C").arg(command);
    shell
}

/// How a command ended, for people.
pub(crate) fn told(status: ExitStatus) -> String {
    #[cfg(unix)]
    {
        use std::os::unix::process::ExitStatusExt as _;

        if let Some(signal) = status.signal() {
            return format!("was ended by signal {signal}");
        }
    }
    status.code().map_or_else(|| "failed".to_owned(), |code| format!("ended with exit code {code}"))
}
