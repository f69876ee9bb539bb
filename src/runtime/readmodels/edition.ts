/** Editions are counts that rise whenever processes must read something again. */
import type { ReadStore } from '../../ports/readStore.js';

/** Edition of the requests of maintenance: orders, and changes of a rebuild's record. No read model has this name. */
export const MAINTENANCE = '(maintenance)';

export async function raiseEdition({ records }: Pick<ReadStore, 'records'>, name: string): Promise<void> {
  await records.put(`edition/${name}`, {});
}

export async function editionOf({ records }: Pick<ReadStore, 'records'>, name: string): Promise<number> {
  return (await records.get(`edition/${name}`))?.version ?? 0;
}
