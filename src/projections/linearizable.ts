/**
 * Linearizable reads of a read model whose log is on this machine: a document by id shows all that its stream held when it was asked for, whichever process appended it. Who appends
 * need not wait for the read model then, and of those who read only the few wait whose document is behind at that moment.
 */
import type { LocalLog, Position } from '../ports/eventStore.js';
import type { Body } from '../ports/readStore.js';
import type { ReadModel } from './readModel.js';

/** How long a read waits for a document that is behind, in ms. Later it is answered as it is: so it would be, too, had the write waited. */
const BEHIND_WAIT_MS = 1_000;
/** The streams of more documents are not looked at one by one: some 5 µs each. */
const FEW = 100;
/** How often at most it is asked how far the model has come, in ms: to find out may take looking into its store. */
const FOLLOW_MS = 10;

/**
 * The model with linearizable `get` and `getMany`, which need the log then: where it can't be read they throw UnavailableError as it does. All else is as it was.
 * @param log absent: where the log is far away, nothing can be said in time, and the model is given back as it is
 * @param streamOf the stream that the document with this id is made of; what other streams hold of it may come later
 */
export function linearizable<B extends Body>(model: ReadModel<B>, log: LocalLog | undefined, streamOf: (id: string) => string): ReadModel<B> {
  if (log === undefined) return model;
  const from = log;
  /** Every document of this edition is known to show the log up to here. */
  let seen: Position = '';
  let edition = model.edition();
  let following = false;
  let followed = Number.NEGATIVE_INFINITY;

  function shownSoFar(): Position {
    // Another build may stand elsewhere.
    if (edition !== model.edition()) {
      edition = model.edition();
      seen = '';
    }
    return seen;
  }

  /** Notes, beside those who read, when the model has come to the log's end: then nobody need look at streams any more. */
  function follow(end: Position): void {
    const now = performance.now();
    if (following || now - followed < FOLLOW_MS) return;
    following = true;
    followed = now;
    const of = edition;
    // What fails here whoever reads next meets, too, and is told.
    const reached = model.reached(end, BEHIND_WAIT_MS).catch(() => false);
    void reached.then((isThere) => {
      following = false;
      if (isThere && of === edition && end > seen) seen = end;
    });
  }

  /** Up to where the log tells of these documents beyond `shown`; `undefined`: it tells nothing more. */
  function beyond(shown: Position, ids: readonly string[]): Position | undefined {
    const end = from.end();
    if (end === undefined || end <= shown) return undefined;
    follow(end);
    let last: Position | undefined;
    for (const id of ids) {
      const one = from.lastOf(streamOf(id));
      if (one !== undefined && one > (last ?? shown)) last = one;
    }
    return last;
  }

  /** Reads, and where the log held more by then, waits for that and reads again. */
  async function read<T>(ids: readonly string[], work: () => Promise<T>): Promise<T> {
    const shown = shownSoFar();
    const of = edition;
    const found = await work();
    const behind = beyond(of === model.edition() ? shown : '', ids);
    if (behind === undefined) return found;
    await model.reached(behind, BEHIND_WAIT_MS);
    return work();
  }

  /** Waits until all that the log holds is shown, and reads then: once, since there is much to read. */
  async function readMany<T>(work: () => Promise<T>): Promise<T> {
    const end = from.end();
    if (end !== undefined && end > shownSoFar()) await model.reached(end, BEHIND_WAIT_MS);
    return work();
  }

  return {
    ...model,
    linearizable: true,
    get: (id) => read([id], () => model.get(id)),
    getMany: (ids) => (ids.length > FEW ? readMany(() => model.getMany(ids)) : read(ids, () => model.getMany(ids))),
  };
}
