/**
 * CopyLog: copies an event log to another engine, in order, with ids, times and metadata; then seals the source. The
 * target always holds a prefix of the source, so repeating an interrupted copy finishes it.
 */
import { sleep } from '../../lib/world.js';
import {
  ConflictError,
  type EventStore,
  LogSealedError,
  MAX_APPEND_BYTES,
  type Position,
  type RecordedEvent,
  type StreamAppend,
} from '../../ports/eventStore.js';
import { AlteredEventError, UnavailableError } from '../../ports/unavailable.js';
import { shareOf } from '../../runtime/coordination/index.js';
import { canonicalText, logHash } from './logHash.js';

const BATCH = 2_000;
/** Milliseconds to wait before each retry of an unreachable target. */
const PAUSES = [100, 400, 1_600, 6_400];

export type CopySource = Pick<EventStore, 'logId' | 'end' | 'readAll' | 'sealed' | 'seal'>;

interface CopyDeps {
  readonly source: CopySource;
  readonly target: EventStore;
}

interface CopyOptions {
  readonly seal: boolean;
  readonly signal?: AbortSignal | undefined;
  readonly onProgress?: ((progress: CopyProgress) => void) | undefined;
}

export interface CopyProgress {
  /** Step of the copy. `compare` checks the events of an earlier copy; `verify` reads the copied events back. */
  readonly step: 'compare' | 'copy' | 'verify';
  /** Number of events processed in this step, including those of earlier copies. */
  readonly events: number;
  /** Processed part of the log, from 0 to 1; `undefined` where it is unknown. */
  readonly share: number | undefined;
}

interface CopyReport {
  readonly events: number;
  /** Number of events that this copy wrote, without those of earlier copies. */
  readonly copied: number;
  /** Hash of the events (`logHash`), the same for source and target. */
  readonly hash: string;
  readonly sealed: boolean;
}

/** The copy can't be made or resumed; the message says what to do. */
export class CopyRefusedError extends Error {
  override readonly name = 'CopyRefusedError';
}

/** The copy was stopped, or an engine is unreachable. A repeat resumes the copy. */
export class CopyInterruptedError extends Error {
  override readonly name = 'CopyInterruptedError';
  /** Failure of an engine; absent where `signal` stopped the copy. */
  declare readonly cause?: UnavailableError;
  constructor(events: number, sealed: boolean, cause?: UnavailableError) {
    const seal = sealed ? 'the source is sealed already' : 'the source is not sealed';
    super(
      `${cause?.message ?? 'interrupted'}; the first ${events} events are in the target, ${seal}: repeat the copy, it goes on from there`,
      { cause },
    );
  }
}

/**
 * Copies the source's events to `target`, which must be empty or hold an earlier copy. The copy is read back: count and
 * hash of its events must be the source's. After the seal, events that were appended during the copy are copied too.
 * @throws CopyRefusedError where the target holds other events or has another writer, the source has lost events, or
 * the logs differ in the end; AlteredEventError; CopyInterruptedError
 */
export async function copyLog(
  { source, target }: CopyDeps,
  { seal, signal, onProgress }: CopyOptions,
): Promise<CopyReport> {
  const written = logHash();
  const verified = logHash();
  let copied = 0;
  let sourceAt: Position | undefined;
  let targetAt: Position | undefined;
  let sealed = false;

  /** Batches of a log's events. The next batch is read while the current one is processed. */
  async function* batches(
    step: CopyProgress['step'] | undefined,
    log: CopySource,
    after: Position | undefined,
  ): AsyncGenerator<readonly RecordedEvent[], void> {
    const end = await log.end();
    const feed = log.readAll(after, {}, { batchSize: BATCH })[Symbol.asyncIterator]();
    try {
      let coming = feed.next();
      for (;;) {
        if (signal?.aborted === true) throw new StoppedError();
        const { done, value } = await coming;
        if (done === true) return;
        coming = feed.next();
        // A failed read is thrown where it is awaited; until then it must not count as an unhandled rejection.
        coming.catch(() => undefined);
        yield value.events;
        if (step !== undefined)
          onProgress?.({
            step,
            events: step === 'verify' ? verified.count : written.count,
            share: shareOf(value.position, end),
          });
      }
    } finally {
      await feed.return?.();
    }
  }

  async function compare(): Promise<void> {
    if ((await target.end()) === undefined) return;
    const events = eachOf(batches(undefined, source, undefined));
    try {
      for await (const copiedBefore of batches('compare', target, undefined)) {
        for (const there of copiedBefore) {
          const { value: here } = await events.next();
          const text = canonicalText(there);
          if (here === undefined || text !== canonicalText(here)) {
            const place = `its event ${verified.count + 1} (${there.stream}, revision ${there.revision})`;
            throw new CopyRefusedError(
              `the target holds something else: ${place} is not the source's. Name an empty target: a new folder, or an EventStoreDB without events`,
            );
          }
          written.add(text);
          verified.add(text);
          sourceAt = here.position;
          targetAt = there.position;
        }
      }
    } finally {
      await events.return(undefined);
    }
  }

  async function copyOn(): Promise<void> {
    for await (const events of batches('copy', source, sourceAt)) {
      const texts = events.map(canonicalText);
      await store(target, appendsOf(events, texts));
      for (const text of texts) written.add(text);
      copied += events.length;
      sourceAt = events.at(-1)?.position ?? sourceAt;
    }
  }

  async function verify(): Promise<void> {
    for await (const events of batches('verify', target, targetAt)) {
      for (const event of events) verified.add(canonicalText(event));
      targetAt = events.at(-1)?.position ?? targetAt;
    }
    if (written.count === verified.count && written.digest() === verified.digest()) return;
    const seen = `${written.count} events with hash ${written.digest()} were copied, ${verified.count} with hash ${verified.digest()} are there`;
    const state = sealed ? 'the source is sealed already, and whole' : 'the source is not sealed';
    throw new CopyRefusedError(
      `the target differs from the source (${seen}): somebody else writes to it. ${state}: copy to an empty target that nothing else uses`,
    );
  }

  try {
    if (source.logId === target.logId)
      throw new CopyRefusedError('source and target are the same log: name another target');
    if (await target.sealed())
      throw new CopyRefusedError(
        'the target is sealed, since it was itself copied to another engine: name another target',
      );
    sealed = await source.sealed();
    await compare();
    await copyOn();
    await verify();
    if (seal && !sealed) {
      await source.seal();
      sealed = true;
      await copyOn();
      await verify();
    }
    return { events: verified.count, copied, hash: verified.digest(), sealed };
  } catch (error) {
    if (error instanceof StoppedError) throw new CopyInterruptedError(written.count, sealed);
    // A repeated copy would end at the same altered event, so this is no interruption.
    if (error instanceof AlteredEventError) throw error;
    if (error instanceof UnavailableError) throw new CopyInterruptedError(written.count, sealed, error);
    throw error;
  }
}

class StoppedError extends Error {}

async function* eachOf(batches: AsyncIterable<readonly RecordedEvent[]>): AsyncGenerator<RecordedEvent, undefined> {
  for await (const events of batches) yield* events;
  return undefined;
}

/** Consecutive events of one stream as one append, within an append's limits. */
function appendsOf(events: readonly RecordedEvent[], texts: readonly string[]): StreamAppend[] {
  const appends: {
    readonly stream: string;
    readonly events: RecordedEvent[];
    readonly expected: StreamAppend['expected'];
  }[] = [];
  let bytes = 0;
  for (const [index, event] of events.entries()) {
    const { stream, revision } = event;
    // The text includes data and metadata, so its size is never less than what the limit counts.
    const size = Buffer.byteLength(texts[index]!);
    const last = appends.at(-1);
    if (last?.stream === stream && last.events.at(-1)!.revision === revision - 1 && bytes + size <= MAX_APPEND_BYTES) {
      last.events.push(event);
      bytes += size;
    } else {
      appends.push({ stream, events: [event], expected: revision === 0 ? 'none' : revision - 1 });
      bytes = size;
    }
  }
  return appends;
}

/**
 * Appends the events to the target. Repeating an append is safe, since ids and revisions are the source's.
 * @throws CopyRefusedError, UnavailableError
 */
async function store(target: EventStore, appends: readonly StreamAppend[]): Promise<void> {
  for (const pause of [...PAUSES, undefined]) {
    try {
      if (target.appendInOrder !== undefined) return await target.appendInOrder(appends);
      for (const { stream, events, expected } of appends) await target.append(stream, events, expected);
      return;
    } catch (error) {
      if (error instanceof ConflictError) throw refusalOf(error);
      if (!(error instanceof UnavailableError) || error instanceof LogSealedError || pause === undefined) throw error;
      await sleep(pause);
    }
  }
}

function refusalOf({ stream, expected, actual }: ConflictError): CopyRefusedError {
  const required = typeof expected === 'number' ? expected : -1;
  return actual > required
    ? new CopyRefusedError(
        `somebody else writes to the target (stream ${stream}): stop that, and copy to an empty target. The source is as it was`,
      )
    : new CopyRefusedError(
        `the source has lost events of stream ${stream} before revision ${required + 1}: such a log can't be copied whole; restore it from a backup`,
      );
}
