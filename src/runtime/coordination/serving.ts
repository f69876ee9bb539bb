/**
 * Processes that answer requests report their load once a second, in a record that expires. Long work in any process
 * reads it (`pace.ts`).
 */
import type { Logger } from 'pino';
import { everyBeats } from '../../lib/async/beats.js';
import { loopDelay, systemMs } from '../../lib/world.js';
import type { Records } from '../../ports/readStore.js';

const PREFIX = 'serving/';
const EVERY_MS = 1_000;
const EXPIRES_MS = 3_500;
const RESOLUTION_MS = 5;

interface Report {
  readonly requests: number;
  /** 99th percentile of the event loop's delay, in ms. */
  readonly delayMs: number;
}

interface Serving {
  /** Requests per second in all processes. */
  readonly requests: number;
  /** Highest event-loop delay of all processes. */
  readonly delayMs: number;
}

interface ServingReporter {
  /** Counts an answered request. `route`: pattern of its route; only routes under `/api/` count. */
  answered(route: string | undefined): void;
  close(): Promise<void>;
}

export function reportServing({
  records,
  holder,
  logger,
}: {
  readonly records: Records;
  readonly holder: string;
  readonly logger: Logger;
}): ServingReporter {
  const delays = loopDelay(RESOLUTION_MS);
  let requests = 0;
  let putting: Promise<unknown> = Promise.resolve();
  const stop = everyBeats(EVERY_MS, () => {
    const report: Report = { requests, delayMs: Math.max(0, delays.percentile(99) / 1e6 - RESOLUTION_MS) };
    requests = 0;
    delays.reset();
    // An idle process stops the measurement, which wakes it up all the time.
    if (report.requests === 0) {
      delays.disable();
      return;
    }
    putting = records
      .put(PREFIX + holder, report, { expiresAt: systemMs() + EXPIRES_MS })
      .catch((error: unknown) => logger.debug({ err: error }, 'could not tell how busy this process is'));
  });
  return {
    answered(route) {
      if (route?.startsWith('/api/') !== true) return;
      if (requests === 0) delays.enable();
      requests += 1;
    },
    async close() {
      stop();
      delays.disable();
      await putting;
    },
  };
}

export async function servingNow(records: Records): Promise<Serving> {
  const reports = await records.list<Report>(PREFIX);
  return {
    requests: reports.reduce((sum, { value }) => sum + value.requests, 0),
    delayMs: Math.max(0, ...reports.map(({ value }) => value.delayMs)),
  };
}
