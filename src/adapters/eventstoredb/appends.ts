/** What an append means, beyond what the server makes of it. */
import type { Appended, ExpectedRevision } from '../../ports/eventStore.js';
import { ConflictError } from '../../ports/eventStore.js';
import type { AppendAnswer, Appender } from './batchAppend.js';
import type { EncodedEvent } from './records.js';
import { positionOf, possiblePosition } from './records.js';
import type { Reads } from './reads.js';

/** Where appends go, and what is looked at to answer them. */
export interface AppendTarget {
  readonly appender: Appender;
  readonly reads: Reads;
}

/** A target that may be sealed. */
interface Guarded extends AppendTarget {
  readonly refuseWhenSealed: () => Promise<void>;
}

/** As the port's `append`, once. */
export type Append = (stream: string, events: readonly EncodedEvent[], expected: ExpectedRevision) => Promise<Appended>;

/**
 * Appends that begin with the same event go one after the other: the server drops a repeat that comes before the first
 * is replicated, and tells of that only after 2 s. (From another process it is dropped all the same, and tried again.)
 */
export function appendsTo({ appender, reads }: AppendTarget, refuseWhenSealed: () => Promise<void>): Append {
  const target: Guarded = {
    reads,
    refuseWhenSealed,
    appender: {
      // Only now: who waits for another, or looks for ids first, may do so for longer than an answer about the seal is
      // good for.
      async send(...append) {
        await refuseWhenSealed();
        return appender.send(...append);
      },
    },
  };
  const running = new Map<string, Promise<unknown>>();
  return async (stream, events, expected) => {
    const { id } = events[0]!;
    const before = running.get(id);
    const appended =
      before === undefined
        ? appendOnce(target, stream, events, expected)
        : before.then(async () => appendOnce(target, stream, events, expected));
    const settled = appended.catch(() => undefined);
    running.set(id, settled);
    try {
      return await appended;
    } finally {
      if (running.get(id) === settled) running.delete(id);
    }
  };
}

/**
 * One try of an append; another with the same events and expectation is safe, whatever became of this one.
 * @throws LogSealedError; ConflictError when other events stand where these were to; EventTooLargeError,
 * StreamDeletedError, UnavailableError
 */
async function appendOnce(
  target: Guarded,
  stream: string,
  events: readonly EncodedEvent[],
  expected: ExpectedRevision,
): Promise<Appended> {
  if (expected === 'any') return appendAnywhere(target, stream, events);
  const { appender, reads } = target;
  const answer = await appender.send(stream, events, expected);
  if (answer.kind === 'stored') return appendedOf(answer, reads);
  // The server recognises most repeats; where others deleted the stream's beginning it does not.
  const from = expected === 'none' ? 0 : expected + 1;
  const standing = answer.actual < from ? undefined : await reads.standing(stream, idsOf(events), from);
  if (standing === undefined) throw new ConflictError(stream, expected, answer.actual);
  return standing;
}

/**
 * The server recognises such a repeat only while it remembers the ids: not after a restart. So they are looked for in
 * the stream first.
 */
async function appendAnywhere(
  { appender, reads, refuseWhenSealed }: Guarded,
  stream: string,
  events: readonly EncodedEvent[],
): Promise<Appended> {
  await refuseWhenSealed();
  const ids = idsOf(events);
  const place = await reads.revisionOf(stream, ids[0]!);
  const standing = place === undefined ? undefined : await reads.standing(stream, ids, place);
  if (standing !== undefined) return standing;
  let answer = await appender.send(stream, events, 'any');
  // It knows some of the ids and not others, and takes that for a mistake: we name the place, which in a deleted stream
  // it alone knows.
  while (answer.kind === 'conflict')
    answer = await appender.send(stream, events, answer.actual === -1 ? 'none' : answer.actual);
  return appendedOf(answer, reads);
}

async function appendedOf({ revision, commit }: AppendAnswer & { kind: 'stored' }, reads: Reads): Promise<Appended> {
  // A repeat of events that others have deleted since: they are nowhere any more, and before the log's end. So is what
  // was stored just now, where the server names an impossible place.
  const position = (commit === undefined ? undefined : possiblePosition(commit)) ?? (await reads.end());
  return { revision, position: position ?? positionOf('0') };
}

function idsOf(events: readonly EncodedEvent[]): string[] {
  return events.map(({ id }) => id);
}
