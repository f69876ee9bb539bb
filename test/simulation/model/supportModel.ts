/**
 * Support's actions in the model of a gift (docs/support.md#support-refusals). Where several refusals hold, the contract
 * has no order of them.
 */
import { type GiftState, isExpired, isRedeemed, reverse, withEvent } from './giftState.js';
import type { User } from './installation.js';
import type { Extend, Reassign, SupportOperation } from './operations.js';
import type { Expected } from './pattern.js';
import {
  ALREADY_REDEEMED,
  CANCELLED,
  EXPIRED,
  NOTIFICATION_PENDING,
  NOT_PAID,
  type Possible,
  done,
  error,
  first,
  isCancelled,
  refused,
} from './refusals.js';
import { type GiftWorld } from './shown.js';

const TEN_YEARS = 10;

/** What an action of support does. */
export function support(world: GiftWorld, state: GiftState, user: User, operation: SupportOperation): Possible[] {
  if (!user.roles.includes('support')) return [refused(state, error(403, 'Forbidden.'), false)];
  switch (operation.kind) {
    case 'block':
      return block(world, state);
    case 'unblock':
      return [changed(world, state.blocked ? blocked(world, state, false) : state)];
    case 'extend':
      return extend(world, state, operation);
    case 'reassign':
      return reassign(world, state, operation);
    case 'supportUnredeem':
      return unredeem(world, state);
    case 'replace':
      return replace(world, state);
  }
}

/** Done, and the gift as it is now. An action that changes nothing is answered alike. */
function changed({ gift }: GiftWorld, state: GiftState): Possible {
  const { holder, expiresOn, replacedBy } = state;
  // A number is shown as one, whoever owns it.
  const named = holder.kind === 'user' && ['name', 'support', 'claim'].includes(holder.by);
  const receiver = named ? holder.user : null;
  return done(
    state,
    first(200, {
      data: { gift_id: gift.id, receiver_id: receiver, expiry_date: expiresOn, replaced_by: replacedBy },
    }),
  );
}

const later = (state: GiftState, answer: Expected): Possible => refused(state, answer, false);
const isOver = (state: GiftState): boolean => isCancelled(state) && !isRedeemed(state);

const blocked = ({ gift }: GiftWorld, state: GiftState, on: boolean): GiftState =>
  withEvent({ ...state, blocked: on }, gift, on ? 'blocked' : 'unblocked', { blocked: on });

/** A cancelled gift is not blocked any more; of one that stays redeemed the documents leave it open. */
function block(world: GiftWorld, state: GiftState): Possible[] {
  if (state.payment === 'pending') return [refused(state, NOT_PAID)];
  const effect = changed(world, state.blocked ? state : blocked(world, state, true));
  if (!isCancelled(state)) return [effect];
  return isRedeemed(state) ? [effect, changed(world, state)] : [changed(world, state)];
}

function extend(world: GiftWorld, state: GiftState, { expiryDate }: Extend): Possible[] {
  const refusals: Possible[] = [];
  if (state.payment === 'pending') refusals.push(refused(state, NOT_PAID));
  if (isCancelled(state)) refusals.push(refused(state, CANCELLED));
  // The same day again changes nothing. Of a cancelled gift that stays redeemed the documents leave it open.
  const isPossible = state.payment !== 'pending' && !isOver(state) && !isExpired(state);
  if (expiryDate === state.expiresOn && isPossible) return [...refusals, changed(world, state)];
  const latestDay = `${Number(state.today.slice(0, 4)) + TEN_YEARS}${state.today.slice(4)}`;
  if (expiryDate <= state.expiresOn || expiryDate <= state.today || expiryDate > latestDay)
    refusals.push(later(state, INVALID_DATE));
  if (refusals.length > 0 && (isOver(state) || !isCancelled(state) || refusals.length > 1)) return refusals;
  const extended = withEvent({ ...state, expiresOn: expiryDate }, world.gift, 'extended', { expires_on: expiryDate });
  return [...refusals, changed(world, extended)];
}

const INVALID_DATE = error(
  422,
  'expiry_date must be a day to come, later than the present one and at most ten years ahead.',
);

function reassign(world: GiftWorld, state: GiftState, { user: id }: Reassign): Possible[] {
  const user = world.installation.users.get(id);
  const refusals: Possible[] = [];
  if (user === undefined) refusals.push(refused(state, error(422, 'Receiver not found.')));
  if (user !== undefined && user.roles.length > 0)
    refusals.push(later(state, error(403, 'Staff accounts receive no gifts.')));
  if (state.payment === 'pending') refusals.push(refused(state, NOT_PAID));
  if (isRedeemed(state)) refusals.push(refused(state, ALREADY_REDEEMED));
  if (isOver(state)) refusals.push(refused(state, CANCELLED));
  if (state.voucher !== null) refusals.push(later(state, error(409, 'a voucher code of this gift is out.')));
  if (isExpired(state)) refusals.push(refused(state, EXPIRED));
  if (refusals.length > 0) return refusals;
  const { holder } = state;
  const named = holder.kind === 'user' && (holder.by === 'name' || holder.by === 'support');
  const same = named && holder.user === id;
  const given: GiftState = { ...state, holder: { kind: 'user', user: id, by: 'support' } };
  const effect = changed(world, same ? state : withEvent(given, world.gift, 'reassigned', {}, { before: state }));
  return [effect, later(state, NOTIFICATION_PENDING)];
}

function unredeem(world: GiftWorld, state: GiftState): Possible[] {
  if (isRedeemed(state)) return [changed(world, reverse(world, state, state.redemptions.length - 1, true))];
  if (state.payment === 'pending') return [refused(state, NOT_PAID)];
  const notRedeemed = refused(state, error(422, 'gift not redeemed.'));
  return isCancelled(state) ? [refused(state, CANCELLED), notRedeemed] : [notRedeemed];
}

function replace(world: GiftWorld, state: GiftState): Possible[] {
  const refusals: Possible[] = [];
  if (state.payment === 'pending') refusals.push(refused(state, NOT_PAID));
  if (state.replacedBy !== null) refusals.push(later(state, error(409, 'gift was replaced by another one already.')));
  else if (isOver(state)) refusals.push(refused(state, CANCELLED));
  if (state.voucher !== null)
    refusals.push(later(state, error(409, 'gift has a voucher: say voided once its code is worthless.')));
  if (isExpired(state)) refusals.push(refused(state, EXPIRED));
  if (refusals.length > 0) return refusals;
  const replaced = { ...state, cancelled: true, replacedBy: '?replacement' };
  return [changed(world, withEvent(replaced, world.gift, 'replaced', { replaced_by: '?replacement' }))];
}
