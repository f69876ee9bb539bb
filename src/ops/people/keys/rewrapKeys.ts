import type { KeyStore, SubjectRow } from '../../../ports/keyStore.js';
import { AlteredDataError, type MasterKeys } from '../../../runtime/personal/index.js';

const AT_ONCE = 1_000;

/** Result of `rewrapKeys`. */
export interface Rewrapped {
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
  let done: Rewrapped = { rows: 0, rewrapped: 0, altered: [] };
  let after: string | undefined;
  for (;;) {
    signal.throwIfAborted();
    const page = await store.page(after, AT_ONCE);
    if (page.length === 0) return done;
    const old = page.filter(({ secret }) => !master.isCurrent(secret));
    const anew: Pick<SubjectRow, 'id' | 'secret'>[] = [];
    const altered: string[] = [];
    for (const { id, secret } of old) {
      try {
        anew.push({ id, secret: master.seal(master.open(secret, id), id) });
      } catch (error) {
        if (!(error instanceof AlteredDataError)) throw error;
        altered.push(id);
      }
    }
    await store.rewrap(anew);
    after = page.at(-1)?.id;
    done = {
      rows: done.rows + page.length,
      rewrapped: done.rewrapped + anew.length,
      altered: [...done.altered, ...altered],
    };
  }
}
