/** Voucher codes that the log has under names made with another hash key. */
import { inSlices } from '../lib/async/slices.js';
import type { LogState } from './logState.js';
import type { Wanted, WantedImport } from './wanted.js';

/**
 * A code that the log has keeps its id. A log that was restored without its key has ids of another key, and hands out
 * each code once all the same (docs/decisions.md#voucher-codes).
 */
export async function underKnownIds(wanted: WantedImport, { codes }: Pick<LogState, 'codes'>): Promise<WantedImport> {
  const { voucher_codes } = wanted;
  if (voucher_codes === undefined || voucher_codes.every(({ id }) => codes.has(id))) return wanted;
  const known = new Map<string, string>();
  await inSlices(codes, ([id, { state }]) => void (state.status !== 'none' && known.set(nameOf(state), id)));
  const renamed: Wanted<CodeValue>[] = [];
  await inSlices(
    voucher_codes,
    (one) => void renamed.push(codes.has(one.id) ? one : { ...one, id: known.get(nameOf(one.value)) ?? one.id }),
  );
  return { ...wanted, voucher_codes: renamed };
}

type CodeValue = NonNullable<WantedImport['voucher_codes']>[number]['value'];

function nameOf({ segment_id, code }: Pick<CodeValue, 'segment_id' | 'code'>): string {
  return `${segment_id}\0${code}`;
}
