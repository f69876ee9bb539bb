/**
 * How busy the processes are that answer requests: each says so once a second, as long as there are any, in a record
 * that expires. Whoever does long work beside them goes by it (`pace.ts`), in whatever process.
 */
import { monitorEventLoopDelay } from 'node:perf_hooks';
import type { Logger } from 'pino';
import type { Records } from '../../ports/readStore.js';

const PREFIX = 'serving/';
const EVERY_MS = 1_000;
/** A report that was not renewed tells of nothing any more. */
const EXPIRES_MS = 3_500;
const RESOLUTION_MS = 5;

/** What a process says of its last second. */
interface Report {
  readonly requests: number;
  /** 99th percentile of how late its event loop was. */
  readonly delayMs: number;
}

/** The processes that answer requests, together. */
export interface Serving {
  /** Requests a second; 0: nobody asks for anything. */
  readonly requests: number;
  /** The longest 99th percentile of an event loop's delay among them, in ms. */
  readonly delayMs: number;
}

/** Tells how busy this process is. */
export interface ServingReporter {
  /** A request was answered. `route`: its pattern; only those under `/api/` count. */
  answered(route: string | undefined): void;
  close(): Promise<void>;
}

/** Begins to report. */
export function reportServing({
  records,
  holder,
  logger,
}: {
  readonly records: Records;
  readonly holder: string;
  readonly logger: Logger;
}): ServingReporter {
  const delays = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  delays.enable();
  let requests = 0;
  let putting: Promise<unknown> = Promise.resolve();
  const timer = setInterval(() => {
    const report: Report = { requests, delayMs: Math.max(0, delays.percentile(99) / 1e6 - RESOLUTION_MS) };
    requests = 0;
    delays.reset();
    if (report.requests === 0) return;
    putting = records
      .put(PREFIX + holder, report, { expiresAt: Date.now() + EXPIRES_MS })
      .catch((error: unknown) => logger.debug({ err: error }, 'could not tell how busy this process is'));
  }, EVERY_MS);
  timer.unref();
  return {
    answered(route) {
      if (route?.startsWith('/api/') === true) requests += 1;
    },
    async close() {
      clearInterval(timer);
      delays.disable();
      await putting;
    },
  };
}

/** How busy they are now. @throws UnavailableError */
export async function servingNow(records: Records): Promise<Serving> {
  const reports = await records.list<Report>(PREFIX);
  return {
    requests: reports.reduce((sum, { value }) => sum + value.requests, 0),
    delayMs: Math.max(0, ...reports.map(({ value }) => value.delayMs)),
  };
}
