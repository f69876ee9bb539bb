import type { EventStore, LogPart, Position, RecordedEvent, TimesWithin } from '../../ports/eventStore.js';

/**
 * A part of the log that has every event of these times (docs/support.md#spans-of-time): the whole log where the
 * engine has no index of times. Readers check each event (`isWithin`). `undefined` where there is no such event.
 */
export async function timeBounds(events: EventStore, within: TimesWithin): Promise<LogPart | undefined> {
  if (events.timeBounds !== undefined) return events.timeBounds(within);
  const through = await events.end();
  return through === undefined || (within.after !== undefined && within.after >= through)
    ? undefined
    : { after: within.after, through };
}

/** Whether an event's time is between `from` and `to`, both included. */
export function isWithin(
  { at }: { readonly at: string },
  { from, to }: { readonly from?: string | null | undefined; readonly to?: string | null | undefined },
): boolean {
  return (from ?? '') <= at && (to === undefined || to === null || at <= to);
}

/**
 * The log as of a time: its events up to a position whose own times are not later (docs/support.md#spans-of-time).
 */
export interface AsOf {
  /** Time of the view: ISO 8601, UTC, milliseconds. */
  readonly time: string;
  /** Position of the last event of that time or before. */
  readonly position: Position;
  /** Number of events before that position that a clock stamped later: they are left out. */
  readonly stampedLater: number;
}

/**
 * The log as of a time; `undefined` where no event is of that time or before. The answer for a past time stays, unless
 * a clock is set back.
 * @throws UnavailableError
 */
export async function asOf(events: EventStore, time: string): Promise<AsOf | undefined> {
  if (events.timeBounds === undefined) return byReading(events, time, undefined, undefined);
  const position = (await events.timeBounds({ to: time }))?.through;
  if (position === undefined) return undefined;
  const later = await events.timeBounds({ from: new Date(Date.parse(time) + 1).toISOString() });
  const isInOrder = later === undefined || (later.after ?? '') >= position;
  return isInOrder ? { time, position, stampedLater: 0 } : byReading(events, time, later.after, position);
}

/** Finds the position by reading the log. Events up to `after` have no later times. */
async function byReading(
  events: EventStore,
  time: string,
  after: Position | undefined,
  through: Position | undefined,
): Promise<AsOf | undefined> {
  let found: AsOf | undefined;
  let later = 0;
  for await (const batch of events.readAll(after)) {
    for (const { at, position } of batch.events) {
      if (at > time) later += 1;
      else found = { time, position, stampedLater: later };
    }
    if (through !== undefined && batch.position >= through) break;
  }
  return found;
}

/** The events of one stream as of a time, in its order. A stream does not exist before its first event. */
export function streamAsOf(
  stream: readonly RecordedEvent[],
  { time, position }: Pick<AsOf, 'time' | 'position'>,
): RecordedEvent[] {
  const then = stream.filter((event) => event.position <= position && event.at <= time);
  return then[0] === stream[0] ? then : [];
}
