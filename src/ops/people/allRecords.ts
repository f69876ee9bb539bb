import type { Records, StoredRecord } from '../../ports/readStore.js';

const PAGE = 500;

/** Records whose keys start with the prefix, in pages. @throws UnavailableError */
export async function* allRecords<V>(records: Records, prefix: string): AsyncGenerator<StoredRecord<V>, void> {
  for (let after: string | undefined; ;) {
    const page = await records.list<V>(prefix, PAGE, after);
    yield* page;
    after = page.at(-1)?.key;
    if (after === undefined || page.length < PAGE) return;
  }
}
