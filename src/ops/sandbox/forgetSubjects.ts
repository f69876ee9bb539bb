import { idOf } from '../../domain/streamName.js';
import { pages } from '../../lib/async/pages.js';
import type { KeyStore, SubjectRow } from '../../ports/keyStore.js';

const ROWS_AT_ONCE = 1_000;
const ID = /"([\w-]{22})"/g;

/** Collects the rows of the key store that events name. */
interface NamedSubjects {
  add(stream: string, ...texts: readonly string[]): void;
  has(id: string): boolean;
}

export function namedSubjects(): NamedSubjects {
  const ids = new Set<string>();
  return {
    add(stream, ...texts) {
      ids.add(idOf(stream));
      for (const text of texts) for (const [, id = ''] of text.matchAll(ID)) ids.add(id);
    },
    has: (id) => ids.has(id),
  };
}

/**
 * Removes from the key store, for good, each subject that no event of the new log names: the messages and receivers'
 * numbers of the log that is gone. Safe to repeat.
 * @throws UnavailableError
 */
export async function forgetSubjects(keys: KeyStore, named: Pick<NamedSubjects, 'has'>): Promise<void> {
  for await (const rows of pages<SubjectRow>(ROWS_AT_ONCE, async (last) => keys.page(last?.id, ROWS_AT_ONCE))) {
    const unnamed = rows.map(({ id }) => id).filter((id) => !named.has(id));
    if (unnamed.length > 0) await keys.remove(unnamed);
  }
}
