//! An alarm that one thread sets before work that may not end, and that another thread waits for: timerfd(2).

use rustix::io::{Errno, read};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

/// A timer that wakes whoever waits for it, once for each time it is set. Setting and clearing it wakes nobody and costs
/// a system call each.
#[derive(Debug)]
pub struct Alarm {
    timer: OwnedFd,
}

impl Alarm {
    /// An alarm that is not set.
    ///
    /// # Errors
    /// The process or the system has no descriptor left, or a filter forbids timers.
    pub fn new() -> io::Result<Self> {
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC)?;
        Ok(Self { timer })
    }

    /// Has it go off once, so long from now at the earliest, whatever it was set to before.
    pub fn set(&self, after: Duration) {
        // Of zero the kernel would clear it.
        self.arm(after.max(Duration::from_nanos(1)));
    }

    /// It will not go off, unless it has already and nobody has noticed yet: that is forgotten too.
    pub fn clear(&self) {
        self.arm(Duration::ZERO);
    }

    fn arm(&self, after: Duration) {
        let once = Itimerspec {
            it_interval: Timespec::default(),
            it_value: Timespec {
                tv_sec: i64::try_from(after.as_secs()).unwrap_or(i64::MAX),
                tv_nsec: after.subsec_nanos().into(),
            },
        };
        // The kernel refuses what is no timer or no time only.
        let set = timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &once);
        debug_assert!(set.is_ok(), "{set:?}");
    }

    /// Waits until it goes off.
    ///
    /// # Errors
    /// Of read(2), which has no reason to fail.
    pub fn wait(&self) -> io::Result<()> {
        let mut expirations = [0; 8];
        loop {
            match read(&self.timer, &mut expirations) {
                Ok(_) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{PollFd, PollFlags, poll};

    /// True if it goes off within so many milliseconds.
    fn goes_off_within(alarm: &Alarm, milliseconds: i64) -> bool {
        let limit = Timespec {
            tv_sec: 0,
            tv_nsec: milliseconds * 1_000_000,
        };
        let mut fds = [PollFd::new(&alarm.timer, PollFlags::IN)];
        poll(&mut fds, Some(&limit)).expect("it can be waited for") == 1
    }

    #[test]
    fn it_goes_off_once_for_each_time_that_it_is_set() {
        let alarm = Alarm::new().expect("a timer");
        assert!(!goes_off_within(&alarm, 1));
        for after in [0, 1] {
            alarm.set(Duration::from_millis(after));
            alarm.wait().expect("it goes off");
            assert!(!goes_off_within(&alarm, 5));
        }
    }

    #[test]
    fn what_was_cleared_does_not_go_off() {
        let alarm = Alarm::new().expect("a timer");
        alarm.set(Duration::from_millis(20));
        alarm.clear();
        assert!(!goes_off_within(&alarm, 60));
    }

    #[test]
    fn what_nobody_noticed_is_forgotten() {
        let alarm = Alarm::new().expect("a timer");
        alarm.set(Duration::ZERO);
        assert!(goes_off_within(&alarm, 900));
        alarm.clear();
        assert!(!goes_off_within(&alarm, 1));
    }
}
