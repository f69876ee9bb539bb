/** The refunds of a history: requests with one key are one refund, whichever of them was answered. */
import { type History, type Observation, describe, listField, textField, toldBy } from './history.js';
import { scopeOf } from './keys.js';

export interface KnownRefund {
  readonly transaction: string;
  /** The gifts that were named; none: all. */
  readonly requested: readonly string[];
  /** When the first request was sent, ms. */
  readonly sent: number;
  /** When the first answer that tells its outcome came; `undefined` while there is none. */
  readonly answered: number | undefined;
  /** Gifts whose price went back, as the answer says; `undefined` while none says it. */
  readonly gifts: readonly string[] | undefined;
  /** Pence. */
  readonly amount: number;
  /** Whether the provider has accepted it, for sure. */
  readonly accepted: boolean;
  /** Gifts that it left out since they are redeemed. */
  readonly redeemed: readonly string[];
  /** In one line. */
  readonly text: string;
}

/** All refunds that may have had an effect: those that were refused are left out. */
export function refundsOf(history: History): KnownRefund[] {
  const groups = new Map<string, Observation[]>();
  const numbers = new Map<Observation, number>();
  for (const [index, observation] of history.entries()) {
    if (observation.operation.kind !== 'refund') continue;
    const scope = scopeOf(observation) ?? `#${index}`;
    groups.set(scope, [...(groups.get(scope) ?? []), observation]);
    numbers.set(observation, index);
  }
  return [...groups.values()].flatMap((some) => {
    const [first] = some;
    if (first === undefined || first.operation.kind !== 'refund') return [];
    const { transaction, gifts: requested } = first.operation;
    const told = some.find((one) => toldBy(one)?.status === 200);
    // 202: it is still in progress.
    const isRefused = ({ answer }: Observation): boolean =>
      answer !== undefined && answer.status >= 400 && answer.status < 500;
    if (told === undefined && some.every(isRefused)) return [];
    const body = told?.answer?.body;
    return [
      {
        transaction,
        requested,
        sent: first.sent,
        answered: told?.answered,
        gifts: told === undefined ? undefined : listField(body, 'data', 'gift_ids').map(String),
        amount: Number((body as { data?: { amount?: number } } | undefined)?.data?.amount ?? 0),
        accepted: textField(body, 'data', 'status') === 'refunded',
        redeemed: listField(body, 'data', 'kept', 'redeemed').map(String),
        text: describe(told ?? first, numbers.get(told ?? first) ?? -1),
      },
    ];
  });
}
