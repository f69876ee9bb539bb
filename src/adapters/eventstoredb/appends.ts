import { type Appended, type ExpectedRevision, ConflictError } from '../../ports/eventStore.js';
import { UnavailableError, withUnknownOutcome } from '../../ports/unavailable.js';
import type { AppendAnswer, Appender } from './batchAppend.js';
import { type EncodedEvent, positionOf, possiblePosition } from './records.js';
import type { Reads } from './reads.js';

export interface AppendTarget {
  readonly appender: Appender;
  readonly reads: Reads;
}

interface Guarded extends AppendTarget {
  readonly refuseWhenSealed: () => Promise<void>;
}

export type Append = (stream: string, events: readonly EncodedEvent[], expected: ExpectedRevision) => Promise<Appended>;

/**
 * Appends that start with the same event run one after the other: the server silently drops a repeat of an append that
 * is not replicated yet, and reports it only after 2 s. (A repeat of another process is dropped, too, and retried.)
 */
export function appendsTo({ appender, reads }: AppendTarget, refuseWhenSealed: () => Promise<void>): Append {
  const target: Guarded = {
    reads,
    refuseWhenSealed,
    appender: {
      // The seal is checked right before sending: a wait for another append, or a search for ids, may outlast an
      // earlier check.
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
 * Appends without retries. May be called again with the same events and expectation, whatever the outcome.
 * @throws LogSealedError; ConflictError when other events are stored there; EventTooLargeError, StreamDeletedError,
 * UnavailableError
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
  // The server recognises most repeats, but not where the stream's first events were deleted.
  const from = expected === 'none' ? 0 : expected + 1;
  const standing = answer.actual < from ? undefined : await afterSending(reads.standing(stream, idsOf(events), from));
  if (standing === undefined) throw new ConflictError(stream, expected, answer.actual);
  return standing;
}

/**
 * Appends with the expectation `any`. A restarted server does not recognise a repeat of it, so the stream is searched
 * for the ids first.
 */
async function appendAnywhere(
  { appender, reads, refuseWhenSealed }: Guarded,
  stream: string,
  events: readonly EncodedEvent[],
): Promise<Appended> {
  await refuseWhenSealed();
  const ids = idsOf(events);
  const found = await reads.revisionOf(stream, ids[0]!);
  const standing = found === undefined ? undefined : await reads.standing(stream, ids, found);
  if (standing !== undefined) return standing;
  let answer = await appender.send(stream, events, 'any');
  // The server knows some of the ids, and refuses `any`. Its answer alone names the revision of a deleted stream.
  while (answer.kind === 'conflict')
    answer = await appender.send(stream, events, answer.actual === -1 ? 'none' : answer.actual);
  return appendedOf(answer, reads);
}

async function appendedOf({ revision, commit }: AppendAnswer & { kind: 'stored' }, reads: Reads): Promise<Appended> {
  // The events were deleted since, or are stored at a position that the server misreports: in both cases before the
  // log's end.
  const position = (commit === undefined ? undefined : possiblePosition(commit)) ?? (await afterSending(reads.end()));
  return { revision, position: position ?? positionOf('0') };
}

/** Reads after an append was sent. Without the result, nothing is known of the append but that it may be stored. */
async function afterSending<T>(reading: Promise<T>): Promise<T> {
  try {
    return await reading;
  } catch (error) {
    if (!(error instanceof UnavailableError)) throw error;
    throw withUnknownOutcome(error);
  }
}

function idsOf(events: readonly EncodedEvent[]): string[] {
  return events.map(({ id }) => id);
}
