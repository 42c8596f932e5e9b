//! What the operating system allows, and what it says about a process.

use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Files that a process needs beside its connections.
const OTHER_FILES: u64 = 200;

/// Allows this process, and the servers that it starts, as many open files as the system lets it, and says how many connections fit.
pub(crate) fn connections_allowed() -> usize {
    let limit = getrlimit(Resource::Nofile);
    // When it is refused, the present limit holds.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
    let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    usize::try_from(files.saturating_sub(OTHER_FILES)).unwrap_or(usize::MAX)
}

/// How many processes wanted a core at once over the last minute; `None` where the system does not tell.
pub(crate) fn load() -> Option<f64> {
    std::fs::read_to_string("/proc/loadavg").ok()?.split(' ').next()?.parse().ok()
}

/// The processor time that a process has used; `None` where the system does not tell.
pub(crate) fn processor_time(pid: u32) -> Option<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let ticks = ticks(&stat)?;
    Some(Duration::from_secs_f64(ticks as f64 / rustix::param::clock_ticks_per_second() as f64))
}

/// User and system time in a line of `/proc/PID/stat`: the 14th and 15th field. The name before them may hold anything.
fn ticks(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut times = fields.split_ascii_whitespace().skip(11);
    let (user, system): (u64, u64) = (times.next()?.parse().ok()?, times.next()?.parse().ok()?);
    Some(user + system)
}

#[cfg(test)]
mod tests {
    use super::ticks;

    #[test]
    fn processor_time_is_found_behind_any_program_name() {
        let stat = "4711 (odd) name) S 1 4711 4711 0 -1 4194304 100 0 0 0 250 50 7 8 20 0 1 0 100 1000 50";
        assert_eq!(ticks(stat), Some(300));
        assert_eq!(ticks("4711"), None);
    }
}
