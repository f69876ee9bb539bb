import { clockMs } from '../lib/clock.js';
import type { ProcessStatus, StepStatus } from '../processors/runner/index.js';
import type { Exposition, Sample } from './exposition.js';

export function showProcesses(show: Exposition, read: () => ProcessStatus | undefined): void {
  const one = (value: (status: ProcessStatus) => number | undefined) => (): readonly Sample[] => {
    const status = read();
    const found = status === undefined ? undefined : value(status);
    return found === undefined ? [] : [[[], found]];
  };
  const bySteps = (value: (step: StepStatus) => number) => (): readonly Sample[] =>
    Array.from(read()?.steps ?? [], ([step, status]): Sample => [[step], value(status)]);

  show.gauge(
    {
      name: 'gift_process_leader',
      help: 'Whether the process managers of this process do the work (1) or stand by (0)',
    },
    one(({ leading }) => (leading ? 1 : 0)),
  );
  show.gauge(
    {
      name: 'gift_process_open',
      help: 'Purchases, refunds, disputes and the like with something left to do; shown by the process that leads',
    },
    one(({ leading, open }) => (leading ? open : undefined)),
  );
  show.gauge(
    {
      name: 'gift_process_oldest_open_seconds',
      help: 'Age of the oldest purchase, refund, dispute or the like with something left to do, but for messages that a limit of our own holds back; shown by the process that leads, once it has read all',
    },
    // Before all is read nothing is known: 0 would tell `gift diagnose` that nothing waits.
    one(({ leading, caughtUp, oldestAt }) => (leading && caughtUp ? ageOf(oldestAt) : undefined)),
  );
  show.gauge(
    {
      name: 'gift_process_in_flight',
      help: 'Work under way or waiting for its next attempt, by step',
      labels: ['step'],
    },
    bySteps(({ inFlight }) => inFlight),
  );
  show.counter(
    { name: 'gift_process_failures_total', help: 'Attempts that failed, by step', labels: ['step'] },
    bySteps(({ failed }) => failed),
  );
  show.counter(
    { name: 'gift_process_parked_total', help: 'Work given up, by step', labels: ['step'] },
    bySteps(({ parked }) => parked),
  );
}

/** Seconds since `at`; `undefined`: 0. */
const ageOf = (at: string | undefined): number =>
  at === undefined ? 0 : Math.max(0, (clockMs() - Date.parse(at)) / 1000);
