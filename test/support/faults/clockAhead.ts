/** Puts the wall clock forward, for a library's circuit breaker, which takes no other clock. */

/** Runs `work`; `advance` puts `Date.now` forward by milliseconds until it has ended. Timers go on as they are. */
export async function withClockAhead(work: (advance: (ms: number) => void) => Promise<void>): Promise<void> {
  const real = Date.now;
  let ahead = 0;
  Date.now = () => real() + ahead;
  try {
    await work((ms) => {
      ahead += ms;
    });
  } finally {
    Date.now = real;
  }
}
