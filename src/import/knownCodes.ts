import { inSlices } from '../lib/async/slices.js';
import type { LogState } from './logState.js';
import type { WantedCode, WantedImport } from './wanted.js';

/**
 * Voucher codes that the log has keep their ids, also those of a lost hash key: a log restored without its key still
 * hands out each code once (docs/api/vouchers.md#voucher-codes).
 */
export async function underKnownIds(wanted: WantedImport, { codes }: Pick<LogState, 'codes'>): Promise<WantedImport> {
  const { voucher_codes } = wanted;
  if (voucher_codes === undefined || voucher_codes.every(({ id }) => codes.has(id))) return wanted;
  const known = new Map<string, string>();
  await inSlices(codes, ([id, { state }]) => void (state.status !== 'none' && known.set(nameOf(state), id)));
  const renamed: WantedCode[] = [];
  await inSlices(
    voucher_codes,
    (one) => void renamed.push(codes.has(one.id) ? one : { ...one, id: known.get(nameOf(one.value)) ?? one.id }),
  );
  return { ...wanted, voucher_codes: renamed };
}

function nameOf({ segment_id, code }: Pick<WantedCode['value'], 'segment_id' | 'code'>): string {
  return `${segment_id}\0${code}`;
}
