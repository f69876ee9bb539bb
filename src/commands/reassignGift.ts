import { type GiftReassigned, isSomebody } from '../domain/gift/events.js';
import { holderOf, isStaff, phoneStream, reservationAggregate } from '../domain/account.js';
import { fold } from '../domain/decider.js';
import { reassign } from '../domain/supportActions.js';
import { notificationAttempts } from '../domain/notification.js';
import { phoneSubject } from '../domain/personalFields.js';
import { normalisePhoneNumber } from '../domain/phoneNumber.js';
import { Refusal } from '../domain/refusal.js';
import { type AccountDocument, accountAtLogEnd } from '../projections/accounts.js';
import type { Subjects } from '../runtime/personal/index.js';
import type { ReadModel } from '../runtime/readmodels/index.js';
import type { CommandContext, Transacted } from './transact.js';
import { readGiftAndNotification } from './readStreams.js';
import { type SupportDeps, supportAction } from './supportAction.js';

export interface ReassignDeps extends SupportDeps {
  readonly accounts: ReadModel<AccountDocument>;
  readonly subjects: Subjects;
}

/** The new receiver, by exactly one of the two fields. */
export interface NewReceiver {
  readonly user_id?: string;
  readonly phone_number?: string;
}

/**
 * No event where the receiver stays the same. The previous receiver may no longer redeem the gift. The command is
 * refused while they are being notified.
 * @throws Refusal `gift_not_found`, `receiver_not_found`, `invalid_phone_number`, `staff_receives_no_gifts`,
 * `notification_pending`, or as `reassign`; UnavailableError
 */
export async function reassignGift(
  deps: ReassignDeps,
  giftId: string,
  context: CommandContext,
  to: NewReceiver,
  reason: string,
): Promise<Transacted> {
  return supportAction(deps, giftId, context, async ({ gift, payment, issue }) => {
    const target = await targetOf(deps, to);
    const events = reassign(gift, { now: context.now, payment }, { ...target, reason });
    if (
      events.length > 0 &&
      (issue !== undefined ? isSomebody(issue.data.receiver) : await isBeingNotified(deps, giftId))
    )
      throw new Refusal('notification_pending');
    return events;
  });
}

async function isBeingNotified({ events }: ReassignDeps, giftId: string): Promise<boolean> {
  const [gift, notification] = await readGiftAndNotification(events, giftId);
  return notificationAttempts(gift, notification).next.do !== 'nothing';
}

async function targetOf(
  { events, accounts, subjects }: ReassignDeps,
  { user_id, phone_number }: NewReceiver,
): Promise<Omit<GiftReassigned['data'], 'reason' | 'transaction_id'>> {
  if (user_id !== undefined) {
    const user = await accountAtLogEnd(
      { events, accounts },
      `user-${user_id}`,
      (shown) => shown.entry === 'user' && shown.active,
    );
    if (user?.entry !== 'user' || !user.active) throw new Refusal('receiver_not_found', 'user_id');
    if (isStaff(user)) throw new Refusal('staff_receives_no_gifts', 'user_id');
    return { receiver: { user_id } };
  }
  const number = phone_number === undefined ? undefined : normalisePhoneNumber(phone_number);
  if (number === undefined) throw new Refusal('invalid_phone_number', 'phone_number');
  const [phoneId = ''] = await subjects.ids([phoneSubject(number)]);
  const holder = holderOf(fold(reservationAggregate, await events.read(phoneStream(phoneId))));
  const user =
    holder === undefined
      ? undefined
      : await accountAtLogEnd({ events, accounts }, `user-${holder}`, (shown) => shown.entry === 'user');
  if (user?.entry === 'user' && isStaff(user)) throw new Refusal('staff_receives_no_gifts', 'phone_number');
  return { receiver: { phone_id: phoneId } };
}
