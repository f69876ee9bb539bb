/**
 * Does scheduled work once, whatever is killed (docs/design.md#scheduled-work); of several processes, one does it,
 * by a lease. The read model tells which streams to read; each decision is made from the streams.
 */
import type { Logger } from 'pino';
import { pauseForBeats } from '../../lib/async/beats.js';
import type { EventStore } from '../../ports/eventStore.js';
import type { Records } from '../../ports/readStore.js';
import type { GiftChangeDeps } from '../purchase/giftChanges.js';
import { openWriter } from '../runner/index.js';
import { NotOursError, whileHeld, workByLease } from '../../runtime/coordination/index.js';
import type { Followers } from '../../runtime/supervision/followers.js';
import type { DueGifts } from './due.js';
import type { Round } from './expiryRounds.js';
import { type ReminderDeps, reminderRounds, type ReminderSettings } from './remind.js';
import { sendDue } from './sendDue.js';
import { expiryEventRounds } from './tellExpiry.js';

const POLL_MS = 500;
/** What is due can wait a moment longer for a takeover: a standby has three leases to poll. */
const LEASE_POLL_MS = 1_000;
/** First and longest wait before a restart, in ms: a round of a day may be long, and begins again after a failure. */
const DAY_RESTART_MS = [500, 60_000] as const;

export interface SchedulerOptions extends Pick<ReminderDeps, 'contact' | 'numberOf'> {
  readonly reminders: ReminderSettings;
  readonly events: EventStore;
  /** Store of the leases, and of the last days that were done. */
  readonly records: Records;
  readonly due: DueGifts;
  /** Present time: ISO 8601, UTC, milliseconds. */
  readonly now: () => string;
  /** See `LeaseOptions.holder`. */
  readonly holder: string;
  readonly logger: Logger;
  readonly followers: Pick<Followers, 'start'>;
  /** The leases' duration, milliseconds; the same in all processes. */
  readonly leaseMs?: number;
}

export function startScheduler(options: SchedulerOptions): { close(): Promise<void> } {
  const { due, records, contact, numberOf, reminders } = options;
  const work = [
    follow(options, 'sending', (deps) => async (now, signal) => sendDue({ ...deps, due }, now, signal)),
    follow(options, 'expiry', (deps) => expiryEventRounds({ ...deps, due, records }), DAY_RESTART_MS),
    follow(
      options,
      'reminders',
      (deps) => reminderRounds({ ...deps, ...reminders, contact, numberOf, due, records }),
      DAY_RESTART_MS,
    ),
  ];
  return { close: async () => void (await Promise.all(work.map(async (one) => one.close()))) };
}

/** Follower and lease of this name: rounds of work, one after the other. */
function follow(
  { events, records, now, holder, logger, followers, leaseMs: ttlMs }: SchedulerOptions,
  name: string,
  rounds: (deps: GiftChangeDeps) => Round,
  restartMs?: readonly [first: number, most: number],
): { close(): Promise<void> } {
  const writer = openWriter(events, () => Date.parse(now()));
  return followers.start(
    name,
    async ({ signal: closing, onTrouble, well }) => {
      const options = { holder, signal: closing, logger, ttlMs, pollMs: LEASE_POLL_MS, onTrouble };
      await workByLease(records, name, options, async (lease, signal) => {
        const round = rounds({ events, writer, mayAct: whileHeld(() => lease.held, signal) });
        try {
          while (!signal.aborted) {
            await round(now(), signal);
            well();
            await pauseForBeats(POLL_MS, signal);
          }
        } catch (error) {
          if (!signal.aborted && !(error instanceof NotOursError)) throw error;
        }
      });
    },
    { aside: true, ...(restartMs === undefined ? {} : { restartMs }) },
  );
}
