import type { EventStore, Position, RecordedEvent } from '../../ports/eventStore.js';

const PAGE = 500;

/**
 * The events of a stream after one position of the log and up to another (`undefined`: the stream's end). The cost
 * hardly grows with the stream, which may be very long.
 */
export async function* streamBetween(
  events: Pick<EventStore, 'read'>,
  stream: string,
  after: Position,
  through: Position | undefined,
): AsyncGenerator<RecordedEvent[]> {
  for (let from = await firstAfter(events, stream, after); ;) {
    const page = await events.read(stream, { from, limit: PAGE });
    const matching = page.filter(({ position }) => position > after && (through === undefined || position <= through));
    if (matching.length > 0) yield matching;
    const last = page.at(-1);
    if (last === undefined || page.length < PAGE || (through !== undefined && last.position >= through)) return;
    from = last.revision + 1;
  }
}

/** A revision at most a page before the first event after a position. */
async function firstAfter(events: Pick<EventStore, 'read'>, stream: string, after: Position): Promise<number> {
  const isBefore = async (revision: number): Promise<boolean> => {
    const [event] = await events.read(stream, { from: revision, limit: 1 });
    return event !== undefined && event.position <= after;
  };
  let before = 0;
  let beyond = PAGE;
  while (await isBefore(beyond)) {
    before = beyond;
    beyond *= 2;
  }
  while (beyond - before > PAGE) {
    const middle = Math.floor((before + beyond) / 2);
    if (await isBefore(middle)) before = middle;
    else beyond = middle;
  }
  return before;
}
