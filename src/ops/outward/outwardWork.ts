/** Whether the log's outward work is held, as the log records it (docs/design.md#outward-work). */
import { type CommandContext, recordable, append, appendEvent } from '../../commands/transact.js';
import { OUTWARD_STREAM, type OutwardEvent, type OutwardOwner, ownerAfter, whyHeld } from '../../domain/outward.js';
import { currentTime } from '../../lib/clock.js';
import {
  type Caller,
  ConflictError,
  type EventStore,
  LogSealedError,
  type Position,
  type Recorded,
  type RecordedEvent,
} from '../../ports/eventStore.js';
import { UnavailableError } from '../../ports/unavailable.js';
import type { Followers } from '../../runtime/supervision/followers.js';

export interface OutwardState {
  /** Reason why outward work is held, in words for any reader; `undefined` where the work is done. */
  readonly held: string | undefined;
  /** Position of the last resumption; `undefined` where there was none. Webhooks deliver no events from before it. */
  readonly resumedAt: Position | undefined;
}

export interface OutwardWork {
  state(): OutwardState;
  /** Registers a function that is called after each change. */
  onChange(call: () => void): void;
  close(): Promise<void>;
}

interface Known {
  readonly owner: OutwardOwner;
  readonly resumedAt: Position | undefined;
}

const TYPES = {
  types: ['OutwardWorkStarted', 'OutwardWorkHeld', 'OutwardWorkResumed'] satisfies OutwardEvent['type'][],
};
const NOT_STARTED = 'that it begins could not be recorded yet';
const SERVICE: Caller = { user: 'system:service' };

function after(known: Known, event: RecordedEvent): Known {
  const owner = ownerAfter(event as Recorded<OutwardEvent>);
  return { owner, resumedAt: event.type === 'OutwardWorkResumed' ? event.position : known.resumedAt };
}

async function readState(events: Pick<EventStore, 'read'>): Promise<Known> {
  return (await events.read(OUTWARD_STREAM)).reduce(after, { owner: undefined, resumedAt: undefined });
}

const stateOf = ({ owner, resumedAt }: Known, logId: string): OutwardState => ({
  held: whyHeld(owner, logId),
  resumedAt,
});

/** @throws UnavailableError */
export async function outwardState(events: Pick<EventStore, 'logId' | 'read'>): Promise<OutwardState> {
  return stateOf(await readState(events), events.logId);
}

/**
 * Records the start of outward work in a new log; of several processes, one records it.
 * @throws UnavailableError, LogSealedError
 */
async function start(events: EventStore): Promise<void> {
  const started: OutwardEvent = { type: 'OutwardWorkStarted', data: { log_id: events.logId } };
  const asService = { by: SERVICE, now: currentTime() };
  await appendEvent(events, OUTWARD_STREAM, started, 'none', asService).catch((error: unknown) => {
    if (!(error instanceof ConflictError)) throw error;
  });
}

/** Ignores the error of a sealed log: nothing is appended to it, by outward work neither. */
function unlessSealed(error: unknown): void {
  if (!(error instanceof LogSealedError)) throw error;
}

/**
 * Follows the outward work of a log from its present end.
 * @param does whether this process does outward work: it records so before it begins, so that each copy of the log
 * knows that it is a copy
 * @throws UnavailableError
 */
export async function followOutwardWork(
  events: EventStore,
  followers: Pick<Followers, 'start'>,
  does: boolean,
): Promise<OutwardWork> {
  let passedOn = await events.end();
  let known = await readState(events);
  const calls: (() => void)[] = [];
  const startWhereNew = async (): Promise<void> => {
    if (!does || known.owner !== undefined) return;
    await start(events);
    known = await readState(events);
    for (const call of calls) call();
  };
  await startWhereNew().catch((error: unknown) => {
    // The follower below tries the start again.
    if (!(error instanceof UnavailableError)) throw error;
  });
  const follower = followers.start('outward work', async ({ signal, well, onTrouble }) => {
    await startWhereNew().catch(unlessSealed);
    well();
    for await (const batch of events.follow(passedOn, TYPES, { signal, onTrouble })) {
      known = batch.events.reduce(after, known);
      passedOn = batch.position;
      well();
      if (batch.events.length > 0) for (const call of calls) call();
    }
  });
  return {
    state() {
      const state = stateOf(known, events.logId);
      return does && known.owner === undefined ? { ...state, held: NOT_STARTED } : state;
    },
    onChange: (call) => void calls.push(call),
    close: () => follower.close(),
  };
}

/**
 * Holds or resumes outward work.
 * @returns false where that is its state already
 * @throws UnavailableError, LogSealedError
 */
export async function changeOutwardWork(
  events: EventStore,
  to: 'held' | 'resumed',
  reason: string,
  context: CommandContext,
): Promise<boolean> {
  const { held } = await outwardState(events);
  if ((held !== undefined) === (to === 'held')) return false;
  const event: OutwardEvent = {
    type: to === 'held' ? 'OutwardWorkHeld' : 'OutwardWorkResumed',
    data: { log_id: events.logId, reason },
  };
  await append(events, OUTWARD_STREAM, recordable([event], context), 'any');
  return true;
}
