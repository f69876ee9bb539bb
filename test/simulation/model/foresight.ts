/**
 * What an answer about a gift says of all states before it: what never changes back, and the answer does not show, was not
 * there. By this a search leaves out effects of requests with an unknown outcome that a later answer disproves.
 */
import type { GiftState, Redemption } from './giftState.js';
import { type Answer, field, listField, textField } from './history.js';
import { keyScope } from './giftModel.js';
import type { GiftOperation, LookUpKey } from './operations.js';

/** @returns whether no order that explains the answer has had a state; `undefined` where it says nothing */
export function excludedBy(
  client: string,
  operation: GiftOperation,
  answer: Answer,
  keyInProgress: boolean,
): ((state: GiftState) => boolean) | undefined {
  if (answer.status !== 200) return undefined;
  if (operation.kind === 'listRedemptions') return excludedByList(listField(answer.body, 'data'));
  return operation.kind === 'lookUpKey' ? excludedByKey(client, operation, answer, keyInProgress) : undefined;
}

/** Redemptions only get more, and none that is reversed is redeemed again. */
function excludedByList(shown: readonly unknown[]): (state: GiftState) => boolean {
  const differs = (one: Redemption, entry: unknown): boolean =>
    (!one.id.startsWith('?') && textField(entry, 'id') !== one.id) ||
    textField(entry, 'location_id') !== one.location ||
    (!one.redeemed && field(entry, 'redeemed') === true);
  return ({ redemptions }) =>
    redemptions.length > shown.length || redemptions.some((one, index) => differs(one, shown.at(-1 - index)));
}

/** A key that has redeemed, is void, or keeps a refusal does so for ever. */
function excludedByKey(
  user: string,
  { gift, of: key }: LookUpKey,
  { body }: Answer,
  keyInProgress: boolean,
): ((state: GiftState) => boolean) | undefined {
  const seen = ({ redemptions, voids, kept }: GiftState): readonly [boolean, boolean, number | undefined] => [
    redemptions.some((one) => one.user === user && one.key === key),
    voids.includes(`${user} ${key}`),
    kept[keyScope(user, `redeem ${gift}`, key)]?.answer.status,
  ];
  const status = field(body, 'data', 'answer', 'status');
  switch (textField(body, 'data', 'status')) {
    case 'unseen':
      return (state) => {
        const [redeemed, isVoid, kept] = seen(state);
        return redeemed || isVoid || (kept !== undefined && !keyInProgress);
      };
    case 'void':
      return (state) => seen(state)[0];
    case 'done':
      return (state) => {
        const [redeemed, isVoid, kept] = seen(state);
        if (status === undefined || status === 201) return !redeemed && (isVoid || kept !== undefined);
        return redeemed || isVoid || (kept !== undefined && kept !== status);
      };
    default:
      return undefined;
  }
}
