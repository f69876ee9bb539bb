/** Codes of vouchers: each belongs to one gift, and those of a segment with a pool are of that pool. */
import type { Finding } from './finding.js';
import { type History, describe, listField, textField, toldBy } from './history.js';
import type { Installation } from './installation.js';

/** A code that an answer shows. */
interface ShownCode {
  readonly gift: string;
  readonly code: string;
  readonly segment: string;
  readonly index: number;
}

function shownCodes(history: History): ShownCode[] {
  return history.flatMap((observation, index): ShownCode[] => {
    const { operation } = observation;
    const answer = toldBy(observation);
    if (answer?.status !== 200 || (operation.kind !== 'makeVoucher' && operation.kind !== 'getVoucher')) return [];
    const v1 = listField(answer.body, 'embedded', 'vouchers')[0];
    const code = textField(v1, 'code') ?? textField(answer.body, 'data', 0, 'value');
    const segment = textField(v1, 'segment_id') ?? textField(answer.body, 'segment', 'id') ?? '';
    return code === undefined ? [] : [{ gift: operation.gift, code, segment, index }];
  });
}

/** Findings about codes (docs/api/vouchers.md#voucher-codes). */
export function checkVouchers(history: History, { pools }: Installation): Finding[] {
  const gifts = new Map<string, ShownCode>();
  return shownCodes(history).flatMap((shown) => {
    const { gift, code, segment, index } = shown;
    const other = gifts.get(`${segment} ${code}`);
    gifts.set(`${segment} ${code}`, other ?? shown);
    const line = (at: number): string => {
      const observation = history[at];
      return observation === undefined ? '' : describe(observation, at);
    };
    if (other !== undefined && other.gift !== gift)
      return [{ rule: 'voucher', text: `Two gifts have one code.\n${line(other.index)}\n${line(index)}` }];
    if (pools.get(segment)?.includes(code) === false)
      return [{ rule: 'voucher', text: `The pool of ${segment} has no such code.\n${line(index)}` }];
    return [];
  });
}
