import { pages } from '../../../lib/async/pages.js';
import type { KeyStore, SubjectRow } from '../../../ports/keyStore.js';
import { AlteredDataError, type MasterKeys } from '../../../runtime/personal/index.js';

const AT_ONCE = 1_000;

/** Result of `rewrapKeys`. */
interface Rewrapped {
  /** Number of rows that were read. */
  readonly rows: number;
  /** Number of rows that were wrapped under another key than the first. */
  readonly rewrapped: number;
  /** Ids of rows that were altered: they can't be wrapped again, and stay as they are. */
  readonly altered: readonly string[];
}

/**
 * Wraps every secret under the first master key; once it has resolved, the later keys are no longer needed. Repeating
 * an interrupted call finishes it.
 * @throws UnavailableError; EngineError naming MASTER_KEY where a key is missing
 */
export async function rewrapKeys(
  store: Pick<KeyStore, 'page' | 'rewrap'>,
  master: MasterKeys,
  signal: AbortSignal,
): Promise<Rewrapped> {
  let rows = 0;
  let rewrapped = 0;
  const altered: string[] = [];
  for await (const page of pages<SubjectRow>(AT_ONCE, async (last) => store.page(last?.id, AT_ONCE))) {
    signal.throwIfAborted();
    const wrappedAgain: Pick<SubjectRow, 'id' | 'secret'>[] = [];
    for (const { id, secret } of page.filter((row) => !master.isCurrent(row.secret))) {
      try {
        wrappedAgain.push({ id, secret: master.seal(master.open(secret, id), id) });
      } catch (error) {
        if (!(error instanceof AlteredDataError)) throw error;
        altered.push(id);
      }
    }
    await store.rewrap(wrappedAgain);
    rows += page.length;
    rewrapped += wrappedAgain.length;
  }
  return { rows, rewrapped, altered };
}
